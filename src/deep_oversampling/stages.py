"""A training as a sequence of stages: what to present next, and what to ask of the network.

A method is a generator of stages. It goes on when the stage before has been trained, so it may
look at the network: Algorithm 1 embeds all samples with it to make the next targets.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from torch import Tensor, nn
from torch.optim import SGD, Optimizer
from torch.optim.lr_scheduler import LRScheduler

from .augmentation import Augmentation
from .history import History, Round, spread
from .network import Network
from .seeding import Streams
from .training import LastGood, Objective, Table, train_round

__all__ = ["Judge", "Stage", "sgd", "train_stages"]

Judge = Callable[[Network], dict[str, dict[str, float]]]  # -> group -> measure -> value


@dataclass(frozen=True, eq=False)
class Stage:
    """One pass over a table."""

    task: str  # what the history calls it
    table: Table
    objective: Objective
    images_per_row: int = 1  # batches have so many fewer rows, so that steps see as many images
    starts_anew: bool = False  # the optimiser forgets: what it learned on is there no more
    augmented: bool = True  # False: the rows are no images
    embedded: tuple[Tensor, Tensor, int] | None = None  # v, y, n where v was computed for it


def sgd(parameters: Iterable[nn.Parameter]) -> Optimizer:
    """The default optimiser (R9)."""
    return SGD(parameters, lr=0.01, momentum=0.9)


def train_stages(
    network: Network,
    stages: Iterator[Stage],
    *,
    batch_size: int,
    rng: Streams,
    optimizer: Callable[[Iterable[nn.Parameter]], Optimizer] = sgd,
    schedule: Callable[[Optimizer], LRScheduler] | None = None,
    augment: Augmentation | None = None,
    judge: Judge | None = None,
    on_round: Callable[[Round], None] | None = None,
    at_the_end: Callable[[History], None] | None = None,
) -> History:
    """Train stage by stage; where one goes wrong the weights from before it are put back."""
    stepper = optimizer(network.parameters())
    scheduler = schedule(stepper) if schedule else None
    history, last_good = History(), LastGood(network)
    with last_good:
        start = time.perf_counter()  # what a stage is made of costs time as well
        for t, stage in enumerate(stages):
            if stage.starts_anew:
                stepper.state.clear()
            last_good.keep(f"round {t + 1} ({stage.task}-task)")
            ell_g, ell_f = train_round(
                network,
                stage.table,
                stage.objective,
                stepper,
                batch_size=max(1, batch_size // stage.images_per_row),
                generator=rng("training", t),
                augment=augment if stage.augmented else None,
                images_per_row=stage.images_per_row,
            )
            if scheduler:
                scheduler.step()
            seconds = time.perf_counter() - start
            if stage.embedded:
                history.spreads.append(spread(*stage.embedded))
            scores = judge(network) if judge else None
            presented = len(stage.table) * stage.images_per_row
            history.rounds.append(Round(stage.task, presented, ell_g, ell_f, seconds, scores))
            if on_round:
                on_round(history.rounds[-1])
            start = time.perf_counter()
        if at_the_end:
            at_the_end(history)
    return history
