"""Many files at once, in order."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from PIL import Image

__all__ = ["Progress", "in_parallel"]

A = TypeVar("A")
B = TypeVar("B")

Progress = Callable[[int, int], None]  # done, of how many

_AT_ONCE = 256  # results in flight, so that they do not pile up in memory


def in_parallel(function: Callable[[A], B], items: Sequence[A]) -> Iterator[B]:
    """``function`` of every item, in order; Pillow lets go of Python's lock, so threads do."""
    with warnings.catch_warnings(), ThreadPoolExecutor(_processors()) as pool:
        warnings.simplefilter("ignore")  # remarks on odd files
        warnings.simplefilter("error", Image.DecompressionBombWarning)  # a giant is not decoded
        for start in range(0, len(items), _AT_ONCE):
            yield from pool.map(function, items[start : start + _AT_ONCE])


def _processors() -> int:
    """Those that this process may use."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
