"""A training as a sequence of stages: what to present next, and what to ask of the network.

A method is a generator of stages. It goes on when the stage before has been trained, so it may
look at the network: Algorithm 1 embeds all samples with it to make the next targets.
"""

from __future__ import annotations

import copy
import logging
import time
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import SGD, Optimizer
from torch.optim.lr_scheduler import CosineAnnealingLR, LRScheduler

from .augmentation import Augmentation
from .branching import Growing, Trunk
from .engine import Engine
from .errors import TrainingError
from .history import History, Round, Spread
from .memory import is_out_of_memory
from .mishaps import Examination, leapt, slow_down, slowed_before
from .network import Network
from .objectives import Objective
from .peers import Peers
from .presenting import Table
from .resuming import Checkpoints, Keeping
from .seeding import Streams
from .training import Between, Halfway, LastGood, Outcome, Trainer, finished

__all__ = [
    "Judge",
    "Member",
    "Schedule",
    "Stage",
    "cosine",
    "in_parts",
    "sgd",
    "train_members",
    "train_stages",
]

Schedule = Callable[[Optimizer], LRScheduler]  # stepped after every round
Judge = Callable[[Network], dict[str, dict[str, float]]]  # -> group -> measure -> value


@dataclass(frozen=True, eq=False)
class Stage:
    """One pass over a table."""

    task: str  # what the history calls it
    table: Table
    objective: Objective
    images_per_row: int = 1  # batches have so many fewer rows, so that steps see as many images
    starts_anew: bool = False  # the optimiser forgets: what it learned on is there no more
    ends_round: bool = True  # a schedule takes a step after it; False: more of the round follows
    augmented: bool = True  # False: the rows are no images
    spread: Spread | None = None  # of the embeddings, where they were computed for it


def sgd(parameters: Iterable[nn.Parameter]) -> Optimizer:
    """The default optimiser (R9)."""
    return SGD(parameters, lr=0.01, momentum=0.9)


def cosine(rounds: int) -> Schedule:
    """A learning rate that falls to 0, from round to round."""
    return partial(CosineAnnealingLR, T_max=rounds)


@dataclass(eq=False)
class Member:
    """One of several trainings that go on at once."""

    network: Network
    stages: Iterator[Stage]
    rng: Streams
    judge: Judge | None = None  # after every round
    on_round: Callable[[Round], None] | None = None
    history: History = field(default_factory=History)
    error: TrainingError | None = None  # why it was lost; it has its weights from before that
    best: dict[str, Tensor] = field(default_factory=dict)  # weights that early stopping keeps
    examine: Examination | None = None  # after every round
    recover: bool = False  # a round that is lost is made again, slower; of one that is alone
    trunk: Trunk | None = None  # rounds that others begin with, too

    def grow(self) -> Member:
        """It goes on from its trunk, which somebody has trained."""
        assert self.trunk is not None
        assert self.trunk.done is not None
        # targets are made from the weights that a round starts from
        self.network.load_state_dict(self.trunk.done.weights)
        self.history = copy.deepcopy(self.trunk.done.history)
        self.stages = islice(self.stages, self.trunk.rounds, None)
        return self


def train_stages(
    network: Network,
    stages: Iterator[Stage],
    *,
    batch_size: int,
    rng: Streams,
    optimizer: Callable[[Iterable[nn.Parameter]], Optimizer] = sgd,
    schedule: Schedule | None = None,
    augment: Augmentation | None = None,
    engine: Engine | None = None,
    judge: Judge | None = None,
    on_round: Callable[[Round], None] | None = None,
) -> History:
    """Train stage by stage; where one goes wrong the weights from before it are put back."""
    member = Member(network, stages, rng, judge, on_round)
    train_members(
        [member],
        batch_size=batch_size,
        optimizer=optimizer,
        schedule=schedule,
        augment=augment,
        engine=engine,
    )
    if member.error:
        raise member.error
    return member.history


def train_members(members: Sequence[Member], **options: Any) -> None:
    """`in_parts`, all of it."""
    finished(in_parts(members, **options))


def in_parts(
    members: Sequence[Member],
    *,
    batch_size: int,
    optimizer: Callable[[Iterable[nn.Parameter]], Optimizer] = sgd,
    schedule: Schedule | None = None,
    augment: Augmentation | None = None,
    engine: Engine | None = None,
    checkpoints: Checkpoints | None = None,  # of the only member
    peers: Peers | None = None,  # processes that train the only member together
    sharing: int = 1,  # trainings that take turns: each is charged its part of the time
    most: int | None = None,  # steps of a part
) -> Generator[None, None, None]:
    """Train networks of one shape at once, stage by stage; each ends where it would end alone.

    It stops now and then, so that other trainings may have their turn.

    Their stages must be of the same kinds. One that is lost is left with its last good weights,
    and the others go on.
    """
    networks = [member.network for member in members]
    good = [LastGood(network) for network in networks]
    start = time.perf_counter()  # what a stage is made of costs time as well
    with (
        closing(Trainer(networks, optimizer, engine=engine, peers=peers)) as trainer,
        _short_of_memory(good, batch_size),
    ):
        scheduler = schedule(trainer.optimizer) if schedule else None
        first = members[0]
        keeping = Keeping(checkpoints, networks[0], trainer.optimizer, first.history, first.best)
        growing = Growing(members, trainer.optimizer)
        t = keeping.rounds or growing.rounds
        for done in range(t + 1):  # as in the process that went so far
            slowed_before(done, first.history, trainer.optimizer, scheduler)
            if scheduler and done < t:
                turn(scheduler)
        while stages := _next_stages(members, good, t):
            some = next(stage for stage in stages if stage)
            growing.enter(t)
            if some.starts_anew:
                trainer.start_anew()
            present = partial(
                _present,
                trainer,
                members,
                stages,
                t,
                batch_size=batch_size,
                augment=augment,
                most=most,
            )
            outcomes = yield from present(since=keeping.enter(t), between=keeping.within(t))
            while _can_be_made_again(first, good[0], outcomes, t, trainer, scheduler):
                outcomes = yield from present(since=None, between=keeping.within(t))
            if scheduler and some.ends_round:
                turn(scheduler)
            seconds = (time.perf_counter() - start) / len(members) / sharing
            for member, last, stage, outcome in zip(members, good, stages, outcomes, strict=True):
                if stage:
                    _note(member, last, stage, outcome, seconds)
            t, start = t + 1, time.perf_counter()
            growing.leave(t)
            if not members[0].error:
                keeping.leave(t)


@contextmanager
def _short_of_memory(good: Sequence[LastGood], batch_size: int) -> Iterator[None]:
    """One that is alone has its last good weights then, and the error says what to lower.

    It stays an error of that kind: whoever trains several takes fewer at once.
    """
    try:
        yield
    except RuntimeError as error:
        if len(good) > 1 or not is_out_of_memory(error):
            raise
        found = TrainingError(
            f"memory must hold a batch of {batch_size}, found that it does not; lower the batch "
            "size or the size of samples, or choose another device"
        )
        raise torch.OutOfMemoryError(str(good[0].put_back(found))) from None


def _present(
    trainer: Trainer,
    members: Sequence[Member],
    stages: Sequence[Stage | None],
    t: int,
    *,
    batch_size: int,
    augment: Augmentation | None,
    most: int | None,
    since: Halfway | None,
    between: Between | None,
) -> Generator[None, None, list[Outcome]]:
    """Train a round, and look at what it made of the networks."""
    some = next(stage for stage in stages if stage)
    outcomes = yield from trainer.train_in_parts(
        [stage.table if stage else None for stage in stages],
        [(stage or some).objective for stage in stages],
        batch_size=max(1, batch_size // some.images_per_row),
        generators=[member.rng("training", t) for member in members],
        augment=augment if some.augmented else None,
        images_per_row=some.images_per_row,
        most=most,
        since=since,
        between=between,
    )
    for e, (member, outcome) in enumerate(zip(members, outcomes, strict=True)):
        if member.examine and not isinstance(outcome, TrainingError):
            loss, history = outcome[0], member.history
            error = member.examine(member.network, loss, history)
            outcomes[e] = error or leapt(loss, some.task, history) or outcome
    return trainer.peers.from_first(lambda: outcomes)  # all must go on, or none


def _can_be_made_again(
    member: Member,
    good: LastGood,
    outcomes: list[Outcome],
    t: int,
    trainer: Trainer,
    scheduler: LRScheduler | None,
) -> bool:
    """Whether a round was lost and all is as it was before, but slower."""
    error = outcomes[0]
    if not (member.recover and isinstance(error, TrainingError)):
        return False
    mishap = slow_down(error, t, member.history, trainer.optimizer, scheduler)
    if mishap is None:
        outcomes[0] = TrainingError(f"{error}; a tenth of the learning rate did not help")
        return False
    logging.getLogger(__name__).warning("%s", mishap)
    good.put_back(error)
    trainer.start_anew()  # momentum of what went wrong
    return True


def turn(scheduler: LRScheduler) -> None:
    """A round further."""
    with warnings.catch_warnings():  # that the optimiser must step first: it has, perhaps in a
        warnings.simplefilter("ignore", UserWarning)  # process before this one
        scheduler.step()


def _note(
    member: Member,
    good: LastGood,
    stage: Stage,
    outcome: Outcome,
    seconds: float,
) -> None:
    """What a stage did to a member."""
    if isinstance(outcome, TrainingError):
        member.error = good.put_back(outcome)
        return
    if stage.spread:
        member.history.spreads.append(stage.spread)
    scores = member.judge(member.network) if member.judge else None
    presented = len(stage.table) * stage.images_per_row
    alive = member.examine.alive if member.examine else None
    one = Round(stage.task, presented, *outcome, seconds, scores, alive)
    member.history.rounds.append(one)
    if member.on_round:
        member.on_round(one)


def _next_stages(
    members: Sequence[Member], good: Sequence[LastGood], t: int
) -> list[Stage | None]:  # None: the member is lost; nothing at all where all are done
    stages: list[Stage | None] = []
    for member, last in zip(members, good, strict=True):
        stage = None
        if member.error is None:
            try:
                stage = next(member.stages, None)
            except TrainingError as error:
                member.error = last.put_back(error)
        if stage:
            last.keep(f"round {t + 1} ({stage.task}-task)")
        stages.append(stage)
    return stages if any(stages) else []
