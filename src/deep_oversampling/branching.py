"""Trainings that begin alike: one is trained from the start, the others go on from there."""

from __future__ import annotations

import copy

from .snapshots import Snapshot

__all__ = ["Branch", "Trunk"]


class Trunk:
    """The first rounds of trainings that begin with the same weights, draws and stages."""

    def __init__(self, rounds: int) -> None:
        self.rounds = rounds
        self.done: Snapshot | None = None  # by the first of them


class Branch:
    """One of them: what it goes on from, or where it puts what the others go on from."""

    def __init__(self, trunk: Trunk) -> None:
        self._trunk, self.snapshot = trunk, trunk.done

    def wants(self, rounds: int) -> bool:
        """A snapshot after so many."""
        return rounds == self._trunk.rounds and self._trunk.done is None

    def write(self, snapshot: Snapshot) -> None:
        snapshot.history = copy.deepcopy(snapshot.history)  # the branch's own goes on
        self._trunk.done = snapshot
