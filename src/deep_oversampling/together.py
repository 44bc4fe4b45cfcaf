"""Many trainings, as many at once as the device gains from and has memory for."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

import torch

from .stages import Member, train_members

__all__ = ["how_many", "train_together"]


def how_many(trainings: int, device: torch.device) -> int:
    """At once: all on a GPU, which small networks leave idle; one where there is no GPU."""
    return trainings if device.type == "cuda" else 1


def train_together(
    makers: Sequence[Callable[[], Member]],  # each gives its member as it is before training
    *,
    at_once: int,
    **options: Any,  # of train_members
) -> list[Member]:
    """Train them all; where memory does not suffice for ``at_once``, half as many at once."""
    done: list[Member] = []
    while len(done) < len(makers):
        members = [make() for make in makers[len(done) : len(done) + at_once]]
        try:
            train_members(members, **options)
        except torch.OutOfMemoryError:
            if len(members) == 1:
                raise
            at_once = (len(members) + 1) // 2
            logging.getLogger(__name__).warning(
                "out of memory with %d trainings at once; going on with %d", len(members), at_once
            )
            continue
        done += members
    return done
