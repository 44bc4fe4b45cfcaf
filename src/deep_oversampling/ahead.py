"""What will be needed next is made by a thread while what is there is used."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import torch

from .trees import leaves

__all__ = ["ahead"]

A = TypeVar("A")
T = TypeVar("T")


def ahead(
    make: Callable[[A], T], items: Iterable[A], device: torch.device
) -> Generator[T, None, None]:
    """What is made of each, in order, the next one meanwhile. Errors are raised here.

    On a GPU it is made on a stream of its own, so neither waits for what the other has queued.
    """
    lane = _Lane(device) if device.type == "cuda" else None
    make = lane.beside(make) if lane else make
    waiting: Future[T] | None = None
    with ThreadPoolExecutor(1) as reader:
        for item in items:
            upcoming = reader.submit(make, item)
            if waiting:
                yield lane.taken(waiting.result()) if lane else waiting.result()
            waiting = upcoming
        if waiting:
            yield lane.taken(waiting.result()) if lane else waiting.result()


class _Lane:
    """A stream beside that of whoever uses what is made on it."""

    def __init__(self, device: torch.device) -> None:
        self._user = torch.cuda.current_stream(device)
        self._own = torch.cuda.Stream(device)
        self._own.wait_stream(self._user)  # what things are made of is there

    def beside(self, make: Callable[[A], T]) -> Callable[[A], T]:
        def made(item: A) -> T:
            with torch.cuda.stream(self._own):
                found = make(item)
            self._own.synchronize()  # in the thread, which has time
            return found

        return made

    def taken(self, found: T) -> T:
        """Its memory is not given to others before the user's stream has done with it."""
        for tensor in leaves(found):
            tensor.record_stream(self._user)
        return found
