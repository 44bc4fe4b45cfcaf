"""What to do after a round, for ``fit(on_round=…)``: write it down, or do several such things."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .errors import InputError
from .history import Round

__all__ = ["JSONLines", "TensorBoard", "several"]


def several(*callbacks: Callable[..., Any]) -> Callable[..., None]:
    """One callback that calls all of them, in this order.

    >>> several(print, lambda one: print("and", one))("round")
    round
    and round
    """

    def call_all(*found: Any) -> None:
        for callback in callbacks:
            callback(*found)

    return call_all


class JSONLines:
    """A line of JSON for every round, on disk as soon as it is over.

    Lines are added to a file that exists. A measure that is not defined, of classes without
    validation samples, is null. ``pandas.read_json(path, lines=True)`` reads them.
    """

    def __init__(self, path: str | Path) -> None:
        self.path, self._t = Path(path), 0
        if self.path.is_dir():
            raise InputError(f"JSONLines must be given a file to write, found a folder, {path}")
        self.path.parent.mkdir(parents=True, exist_ok=True)

    def __call__(self, one: Round) -> None:
        self._t += 1
        line: dict[str, Any] = {"round": self._t, "task": one.task, "presented": one.presented}
        for name, value in one.scalars().items():
            line[name] = value if math.isfinite(value) else None
        with self.path.open("a", encoding="utf-8") as file:  # closed at once: nothing is held back
            file.write(json.dumps(line) + "\n")


class TensorBoard:
    """Curves of losses and validation measures, for ``tensorboard --logdir folder``."""

    def __init__(self, folder: str | Path) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise InputError(
                f"this needs tensorboard, found that it cannot be imported ({error}); "
                "pip install 'deep-oversampling[tensorboard]'"
            ) from None
        self._writer, self._t = SummaryWriter(str(folder)), 0

    def __call__(self, one: Round) -> None:
        self._t += 1
        for name, value in one.scalars().items():
            self._writer.add_scalar(name, value, self._t)
        self._writer.flush()

    def close(self) -> None:
        self._writer.close()
