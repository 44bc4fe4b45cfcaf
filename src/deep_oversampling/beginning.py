"""How a training begins: anew, where a checkpoint is, or once more where memory was short."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from .augmentation import Augmentation
from .embeddings import embed_classes
from .engine import Engine
from .history import History, Round
from .metrics import measure
from .mishaps import Examination, never_predicted
from .network import Network, predict
from .peers import Peers
from .plan import Plan
from .resuming import Checkpoints, described
from .samples import Samples
from .seeding import Streams, streams
from .snapshot_checks import Training
from .snapshots import Snapshot
from .stages import Judge, Member, Schedule, Stage
from .stopping import EarlyStopping, until_no_better

__all__ = ["Asked", "Beginning"]


@dataclass(frozen=True, eq=False)
class Asked:
    """What a call asks of every training, beside what Algorithm 1 is given."""

    batch_size: int
    optimizer: Callable[[Iterable[nn.Parameter]], Optimizer]
    schedule: Schedule | None
    augment: Augmentation | None
    engine: Engine | None
    validation: Samples | None
    stop: EarlyStopping | None
    peers: Peers
    sync_batch_norm: bool
    checkpoint: Checkpoints | None


@dataclass(eq=False)
class Beginning:
    """A training that can begin again: with the weights of now, and all draws as at first."""

    asked: Asked
    algorithm: partial[Iterator[Stage]]  # of the network, samples and plan; its draws are missing
    network: Network
    samples: Samples
    plan: Plan
    seed: int
    on_round: Callable[[Round], None] | None
    _snapshot: Snapshot | None = field(init=False)  # to go on from
    _start: list[Tensor] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        self._snapshot = self._agreed()

    def member(self, *, recover: bool) -> Member:
        tensors = [*self.network.parameters(), *self.network.buffers()]
        for tensor, before in zip(tensors, self._start, strict=False):  # none the first time
            tensor.data.copy_(before)
        self._start = [tensor.detach().clone() for tensor in tensors]
        history, done, best = History(), 0, dict[str, Tensor]()
        if self._snapshot:  # targets are made from the weights that a round starts from
            self.network.load_state_dict(self._snapshot.whole)
            history, done = self._snapshot.history, self._snapshot.rounds
            best = dict(self._snapshot.best)
        rng = streams(self.seed)
        stages = self._stages(rng, history, done, best)
        member = Member(self.network, stages, rng, self._judge(), self.on_round, history, best=best)
        if recover:
            member.recover, member.examine = True, Examination(self.network, self.samples.x)
        return member

    def _stages(
        self, rng: Streams, history: History, done: int, best: dict[str, Tensor]
    ) -> Iterator[Stage]:
        """Algorithm 1 until nobody gains by it, and a last look at what it made."""
        network, asked, peers = self.network, self.asked, self.asked.peers
        made = self.algorithm(rng=rng, done=done, peers=peers)
        stop = asked.stop
        yield from until_no_better(made, network, history, stop, best) if stop else made
        none = torch.zeros(self.samples.n, dtype=torch.bool)
        views = rng("last views")
        last = embed_classes(
            network, self.samples, none, augment=asked.augment, generator=views, peers=peers
        )
        history.spreads.append(last.spread)
        if data := asked.validation:
            p, t = predict(network, data.x, peers=peers), len(history.rounds)
            history.mishaps += never_predicted(p, data.y, data.classes, t)

    def _judge(self) -> Judge | None:
        asked = self.asked
        if asked.validation is None:
            return None
        return partial(_scores, data=asked.validation, plan=self.plan, peers=asked.peers)

    def _agreed(self) -> Snapshot | None:
        """What a checkpoint has of this training; all processes must ask for the same one."""
        asked, peers, checkpoint = self.asked, self.asked.peers, self.asked.checkpoint
        if checkpoint is None and peers.size == 1:
            return None
        told = {name: described(value) for name, value in self._settings().items()}
        if peers.size > 1:
            more = {"validation": described(asked.validation), "kept": checkpoint is not None}
            more |= {"sync_batch_norm": asked.sync_batch_norm}
            peers.check_alike(told | more)
            peers.as_first(list(self.network.state_dict().values()))
        if checkpoint is None:
            return None
        given = self.algorithm.keywords
        presented = int(self.plan.rows(self.samples.class_counts).sum())
        rows = [len(self.samples)] * given["initial_rounds"] + [presented] * given["rounds"]
        steps = [-(-one // asked.batch_size) for one in rows]
        judged = (asked.stop.group, asked.stop.measure) if asked.stop else None
        training = Training(self.network, asked.optimizer, steps, judged)
        return checkpoint.open(told, training, peers=peers)

    def _settings(self) -> dict[str, object]:
        """All that a training hangs on.

        What is not asked for is not named: so checkpoints of before there was such a thing fit.
        """
        asked, plan = self.asked, self.plan
        found = {**self.algorithm.keywords, "k": plan.k.tolist(), "r": plan.r.tolist()}
        found |= {"known": plan.known} if plan.known else {}
        found |= {"batch_size": asked.batch_size, "seed": self.seed, "augment": asked.augment}
        found |= {"optimizer": asked.optimizer(self.network.parameters())}
        found |= {"schedule": asked.schedule, "engine": asked.engine}
        found |= {"network": self.network, "samples": self.samples}
        found |= {"stop": asked.stop, "validation": asked.validation} if asked.stop else {}
        return found


def _scores(
    network: Network, data: Samples, plan: Plan, peers: Peers
) -> dict[str, dict[str, float]]:
    """Measures on validation data, for the classes that the plan favours and the others."""
    report = measure(predict(network, data.x, peers=peers), data.y)
    groups = {"minority": plan.minority.numpy(), "majority": ~plan.minority.numpy()}
    return {name: report.mean(group) for name, group in groups.items() if group.any()}
