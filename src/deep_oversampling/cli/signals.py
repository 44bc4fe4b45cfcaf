"""Ctrl-C and SIGTERM: the first asks whoever is at work to come to an end, the second ends it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

__all__ = ["INTERRUPTED", "Signals"]

INTERRUPTED = 130  # as the shell has it for ctrl-C; 143 for SIGTERM


class Signals:
    """Inside, both raise KeyboardInterrupt, unless somebody wants to be asked."""

    def __init__(self) -> None:
        self._received: int | None = None
        self._ask: Callable[[], None] | None = None
        self._before: dict[int, Any] = {}

    @property
    def exit_code(self) -> int:
        """Of a command that was stopped."""
        return INTERRUPTED if self._received is None else 128 + self._received

    @contextmanager
    def asking(self, ask: Callable[[], None]) -> Iterator[None]:
        """Inside, the first signal calls ``ask`` and nothing else happens."""
        self._ask = ask
        try:
            yield
        finally:
            self._ask = None

    def __enter__(self) -> Signals:
        if threading.current_thread() is threading.main_thread():  # others cannot
            for number in (signal.SIGINT, signal.SIGTERM):
                if signal.getsignal(number) != signal.SIG_IGN:  # as what runs in the background
                    self._before[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(self, *_: object) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        first, self._received = self._received is None, number
        if first and self._ask:
            self._ask()
        else:
            raise KeyboardInterrupt
