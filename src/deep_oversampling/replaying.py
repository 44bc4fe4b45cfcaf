"""A step recorded as a CUDA graph and replayed: on a GPU small networks spend their time launching.

The first steps of a recording are ordinary ones and count, so nothing has to be put back.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from operator import itemgetter
from typing import Any, Protocol

import torch
from torch import Tensor

from .presenting import Chunk
from .trees import changed, leaves, outline

__all__ = ["Recorder", "Replay", "one_by_one"]

_WARM_UP = 3  # steps, so that libraries have chosen their kernels and the optimiser has its state

# objective, chunk, which of its steps (a number, or a tensor that holds it) -> losses (E, 2)
Step = Callable[[Any, Chunk, "int | Tensor"], Tensor]


class Recorder(Protocol):
    """What can do again what a function did on the device, without the function."""

    def aside(self, function: Callable[[], None]) -> None:
        """Run it as it will be recorded."""

    def record(self, function: Callable[[], None]) -> Callable[[], object]:
        """What replays it; a RuntimeError if that cannot be done. Recording does nothing yet."""


class Replay:
    """Runs the steps of a chunk, replayed where that can be done."""

    def __init__(self, take_step: Step, recorder: Recorder | None) -> None:
        self._take_step, self._recorder = take_step, recorder
        self._recordings: dict[tuple[object, ...], _Recording] = {}

    def run(self, objective: Any, chunk: Chunk, kind: object) -> Tensor:  # (steps, E, 2)
        """Losses of every step. ``kind`` is all that a step depends on beside its tensors."""
        if self._recorder is None:
            return one_by_one(self._take_step, objective, chunk)
        for key in [key for key in self._recordings if key[0] != kind]:
            del self._recordings[key]  # with a learning rate that is over, say
        shapes = outline(changed((chunk.batch, chunk.share), itemgetter(0)))
        key = (kind, outline(objective), shapes, chunk.awake is None)
        if key not in self._recordings or self._recordings[key].room < len(chunk):
            self._recordings[key] = _Recording(self._take_step, self._recorder, objective, chunk)
        recording = self._recordings[key]
        losses = recording.run(objective, chunk)
        if recording.refused:
            self._recorder = None
            logging.getLogger(__name__).warning(
                "steps are not replayed as a CUDA graph, which this network, loss or optimiser "
                "does not allow: %s",
                recording.refused,
            )
        return losses

    def forget(self) -> None:
        self._recordings.clear()


def one_by_one(take_step: Step, objective: Any, chunk: Chunk) -> Tensor:  # (steps, E, 2)
    """The same without a graph."""
    return torch.stack([take_step(objective, chunk, s) for s in range(len(chunk))])


class _Recording:
    """One step, and the tensors that it reads and writes wherever it is replayed."""

    def __init__(self, take_step: Step, recorder: Recorder, objective: Any, chunk: Chunk) -> None:
        self._take_step, self._recorder = take_step, recorder
        self.room = len(chunk)
        self.refused = ""
        self._static = changed((objective, chunk), torch.clone)
        self._position = torch.zeros(1, dtype=torch.long, device=chunk.share.device)
        self._losses: Tensor | None = None  # (steps, E, 2)
        self._replay: Callable[[], object] | None = None
        self._warm = 0

    def run(self, objective: Any, chunk: Chunk) -> Tensor:
        for static, live in zip(leaves(self._static), leaves((objective, chunk)), strict=True):
            (static[: len(live)] if live.ndim else static).copy_(live)
        self._position.zero_()
        for _ in range(len(chunk)):
            if self._replay is None and self._warm == _WARM_UP and not self.refused:
                self._record()
            if self._replay is not None:
                self._replay()
            else:
                self._recorder.aside(self._one)
                self._warm = min(self._warm + 1, _WARM_UP)
        assert self._losses is not None
        return self._losses[: len(chunk)].clone()

    def _record(self) -> None:
        try:
            self._replay = self._recorder.record(self._one)
        except torch.OutOfMemoryError:
            raise
        except RuntimeError as error:
            self.refused = str(error).partition("\n")[0]

    def _one(self) -> None:
        losses = self._take_step(*self._static, self._position)
        if self._losses is None:  # at the first, ordinary step
            self._losses = losses.new_zeros(self.room, *losses.shape)
        self._losses.index_copy_(0, self._position, losses.unsqueeze(0))
        self._position += 1
