"""Work of other libraries, on several cores: each piece of it on one."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from threadpoolctl import threadpool_limits

__all__ = ["at_once"]

_MOST = 4  # at once: each has its memory

T = TypeVar("T")
R = TypeVar("R")


def at_once(function: Callable[[T], R], pieces: Iterable[T]) -> list[R]:
    """What the function makes of every piece, in their order.

    NumPy and scikit-learn let go of Python's lock while they compute. Their own threads only wait
    for each other where pieces are small.

    >>> at_once(abs, [-1, 2, -3])
    [1, 2, 3]
    """
    with threadpool_limits(1), ThreadPoolExecutor(min(_MOST, os.cpu_count() or 1)) as threads:
        return list(threads.map(function, pieces))
