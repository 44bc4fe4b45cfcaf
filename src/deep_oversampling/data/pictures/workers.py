"""Many files at once, in order."""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

__all__ = ["Progress", "in_parallel", "processors"]

A = TypeVar("A")
B = TypeVar("B")

Progress = Callable[[int, int], None]  # done, of how many

_AHEAD = 4  # results per thread that may wait to be taken, so that they do not fill the memory


def in_parallel(function: Callable[[A], B], items: Iterable[A], threads: int) -> Generator[B]:
    """``function`` of every item, in order; one thread is the caller's own."""
    if threads == 1:
        yield from map(function, items)
        return
    with ThreadPoolExecutor(threads) as pool:
        waiting: deque[Future[B]] = deque()
        for item in items:
            waiting.append(pool.submit(function, item))
            if len(waiting) > _AHEAD * threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def processors() -> int:
    """Those that this process may use."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
