"""Clocks: seconds, of things that take turns, and the most memory that one of them holds."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeVar

import torch
from threadpoolctl import threadpool_limits

__all__ = ["fastest", "limited", "peak", "seconds_of"]

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")

_LONG = 30.0  # seconds: where one of them takes so long, all are run but once more


def seconds_of(action: Callable[[], object], device: torch.device) -> float:
    """From an idle device to one that has done it all."""
    _wait(device)
    start = time.perf_counter()
    action()
    _wait(device)
    return time.perf_counter() - start


def fastest(
    actions: Mapping[K, Callable[[], object]], device: torch.device, *, repeats: int
) -> dict[K, float]:
    """The fastest of the repeats of each, after one that does not count.

    They take turns, so that a machine which is busy for a while is busy for all of them. What
    disturbs a measurement only ever lengthens it, hence the fastest.
    """
    found: dict[K, list[float]] = {name: [] for name in actions}
    for _ in range(repeats + 1):
        for name, action in actions.items():
            found[name].append(seconds_of(action, device))
        turns = len(next(iter(found.values())))
        if turns > 1 and max(times[-1] for times in found.values()) > _LONG:
            break
    return {name: min(times[1:] or times) for name, times in found.items()}


def peak(make: Callable[[], T], device: torch.device) -> tuple[T, int | None]:
    """What is made, and by how many bytes memory grew at most; None where nobody counts."""
    if device.type != "cuda":
        return make(), None
    _wait(device)
    before = torch.cuda.memory_allocated(device)
    torch.cuda.reset_peak_memory_stats(device)
    made = make()
    _wait(device)
    return made, torch.cuda.max_memory_allocated(device) - before


@contextmanager
def limited(threads: int) -> Iterator[None]:
    """So many threads for torch and, alike, for those it is compared with."""
    before = torch.get_num_threads()
    try:
        with threadpool_limits(threads):
            torch.set_num_threads(threads)
            yield
    finally:
        torch.set_num_threads(before)


def _wait(device: torch.device) -> None:
    if device.type != "cpu":
        torch.accelerator.synchronize(device)
