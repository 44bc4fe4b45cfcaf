"""What a place to run trials is, and the nearest one: this process."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Protocol, Self

import torch

from ..network import pick_device
from ..rivals.missing import run_missing
from ..rivals.trials import Trial
from .cells import Order

__all__ = ["Here", "Place", "tell"]

log = logging.getLogger(__name__)


class Place(Protocol):
    """Runs trials while it is entered; each comes once, as soon as it is finished."""

    device: str  # that trials are trained on

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...

    def run(self, order: Order) -> Iterator[Trial]:
        """Whoever asks writes them down: workers write nothing."""
        ...


class Here:
    """One after the other in this process; on a GPU all seeds at once."""

    def __init__(self, device: torch.device | str | None = None) -> None:
        self.device = str(pick_device(device))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing to clean up."""

    def run(self, order: Order) -> Iterator[Trial]:
        return run_missing(order.splits, order.setting, order.missing, device=self.device)


def tell(notes: Iterable[str], told: set[str]) -> None:
    """What workers had to say, once: they all find the same."""
    for note in notes:
        if note not in told:
            told.add(note)
            log.warning(note)
