"""Threads that share the work as the processes of a training do."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TypeVar

import torch
from torch import Tensor

from deep_oversampling import Peers

T = TypeVar("T")


class InThreads(Peers):
    """One of them."""

    def __init__(self, rank: int, said: list[Tensor], barrier: threading.Barrier) -> None:
        self.rank, self.size, self._said, self._barrier = rank, len(said), said, barrier

    @property
    def total(self) -> Callable[[Tensor], Tensor]:
        return lambda tensor: torch.stack(self._exchanged(tensor)).sum(0)

    def parts(self, count: int) -> list[slice]:
        bounds = [count * i // self.size for i in range(self.size + 1)]
        return [slice(a, b) for a, b in pairwise(bounds)]

    def collected(self, own: Tensor, sizes: Sequence[int]) -> Tensor:
        everyone = self._exchanged(own)
        assert [len(each) for each in everyone] == list(sizes)
        return torch.cat(everyone)

    def _exchanged(self, own: Tensor) -> list[Tensor]:
        self._said[self.rank] = own
        self._barrier.wait(20)
        found = list(self._said)
        self._barrier.wait(20)
        return found


def shared(many: int, work: Callable[[Peers], T]) -> list[T]:
    """What each of them makes of it."""
    said, barrier = [torch.empty(0)] * many, threading.Barrier(many)
    with ThreadPoolExecutor(many) as pool:
        return list(pool.map(work, [InThreads(rank, said, barrier) for rank in range(many)]))
