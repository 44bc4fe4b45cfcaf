"""What a method is: stages over the one training loop, and a way to read out the result."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import torch
from torch import Tensor

from ..augmentation import Augmentation
from ..losses import Loss
from ..metrics import Report, measure
from ..network import Network, embed, predict
from ..objectives import Objective, single_task
from ..plan import Plan
from ..samples import Samples
from ..seeding import Streams
from ..stages import Stage
from .tables import some_rows

__all__ = [
    "Contest",
    "Method",
    "Readout",
    "Stages",
    "Trained",
    "Training",
    "by_softmax",
    "evenly",
    "passes",
    "with_loss",
]


@dataclass(frozen=True, eq=False)
class Contest:
    """What every method is given, alike."""

    samples: Samples  # 𝒳, on the network's device
    plan: Plan  # of DOS: which classes are rare, and how often they are presented
    rounds: int  # T
    initial_rounds: int  # before them: plain training, or the method's own loss
    rng: Streams
    augment: Augmentation | None = None  # of what training sees
    late_rounds: int | None = None  # the last, to which some methods defer; None: T
    head_rounds: int = 0  # of g alone, after all others; 0: the last T rounds are
    k: int = 5  # neighbours that were asked for; of the plan, smaller classes have fewer
    tau: float = 1.0  # of logit adjustment, and of the margin that DOS with pieces has

    @property
    def late(self) -> int:
        """Rounds to which some methods defer what they do."""
        return self.rounds if self.late_rounds is None else self.late_rounds

    @property
    def before_late(self) -> int:
        return self.initial_rounds + self.rounds - self.late

    @property
    def before_head(self) -> int:
        """Rounds before those of g alone."""
        return self.initial_rounds + (self.rounds if self.head_rounds else 0)

    @property
    def presented(self) -> int:
        """Σ r_j m_j: the rows of a multi-task round of DOS."""
        return int(self.plan.rows(self.samples.class_counts).sum())


Stages = Callable[[Network, Contest], Iterator[Stage]]


@dataclass(frozen=True, eq=False)
class Trained:
    """A network, what it was trained on and what it is tested on."""

    network: Network
    train: Samples
    test: Samples
    tau: float = 1.0  # of logits that are adjusted afterwards

    @cached_property
    def embedded(self) -> tuple[Tensor, Tensor]:
        """The embeddings of both, computed once."""
        return embed(self.network, self.train.x), embed(self.network, self.test.x)

    def measured(self, probabilities: Tensor) -> Report:  # (m, n)
        return measure(probabilities, self.test.y, trained=self.train.class_counts)


Readout = Callable[[Sequence[Trained]], list[Report]]  # of E trainings at once


def passes(contest: Contest, rounds: int, objective: Objective = single_task) -> Iterator[Stage]:
    """So many rounds over the samples as they are."""
    for _ in range(rounds):
        yield Stage("single", contest.samples, objective)


def evenly(stages: Iterator[Stage], contest: Contest) -> Iterator[Stage]:
    """The stages with tables of m images at most: of longer ones, some rows, drawn anew."""
    m = len(contest.samples)
    for t, stage in enumerate(stages):
        most = max(1, m // stage.images_per_row)
        if len(stage.table) <= most:
            yield stage
            continue
        order = torch.randperm(len(stage.table), generator=contest.rng("evenly", t))
        rows = order[:most].to(contest.samples.y.device)
        yield replace(stage, table=some_rows(stage.table, rows))


def with_loss(loss: Loss) -> Objective:
    """Single-task training with another loss than ℋ."""
    return partial(single_task, loss=loss)


def by_softmax(trained: Sequence[Trained]) -> list[Report]:
    """What the networks themselves say."""
    return [one.measured(predict(one.network, one.test.x)) for one in trained]


@dataclass(frozen=True)
class Training:
    """How a network is trained; methods that differ only in what is read out share one."""

    name: str
    stages: Stages
    prepare: Callable[[Network], Network] | None = None  # where a method has a head of its own
    begins_as: str = ""  # trainings that say the same have the same T0 rounds, and share them


@dataclass(frozen=True)
class Method:
    """A row of the comparison."""

    name: str  # as it is typed
    title: str  # as a table has it
    publication: str
    training: Training
    readout: Readout = by_softmax
