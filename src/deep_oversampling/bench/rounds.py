"""Rounds of training that can be timed: networks, their tables, and the loop over them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence

from ..errors import TrainingError
from ..network import Network, embed
from ..objectives import Objective, multi_task, single_task
from ..oversampling import Overloaded, oversample
from ..plan import Plan
from ..presenting import Table
from ..samples import Samples
from ..seeding import streams
from ..training import Trainer

__all__ = ["OBJECTIVES", "copies", "make_round", "overloaded"]

OBJECTIVES: dict[str, Objective] = {"plain": single_task, "DOS": multi_task(10.0, 0.3)}


def copies(network: Network, many: int) -> list[Network]:
    return [copy.deepcopy(network) for _ in range(many)]


def overloaded(networks: Sequence[Network], samples: Samples, plan: Plan) -> list[Overloaded]:
    """𝒵′ of each, as Algorithm 1 makes it."""
    return [
        oversample(samples, embed(network, samples.x), plan, generator=streams(e)("weights"))
        for e, network in enumerate(networks)
    ]


def make_round(
    trainer: Trainer, tables: Sequence[Table], objective: Objective, batch_size: int
) -> Callable[[], None]:
    """A round that can be trained again and again."""

    def train() -> None:
        outcomes = trainer.train_round(
            tables,
            [objective] * len(tables),
            batch_size=batch_size,
            generators=[streams(e)("training") for e in range(len(tables))],
        )
        for outcome in outcomes:
            if isinstance(outcome, TrainingError):
                raise outcome

    return train
