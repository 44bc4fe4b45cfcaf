"""A step recorded as a CUDA graph and replayed: on a GPU small networks spend their time launching.

The first steps of a recording are ordinary ones and count, so nothing has to be put back.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from operator import itemgetter
from typing import Any

import torch
from torch import Tensor

from .presenting import Chunk
from .trees import changed, leaves, outline

__all__ = ["Replay", "one_by_one"]

_WARM_UP = 3  # steps, so that libraries have chosen their kernels and the optimiser has its state

# objective, chunk, which of its steps (a number, or a tensor that holds it) -> losses (E, 2)
Step = Callable[[Any, Chunk, "int | Tensor"], Tensor]


class Replay:
    """Runs the steps of a chunk, as a graph where that can be done."""

    def __init__(self, step: Step) -> None:
        self._step = step
        self._recordings: dict[object, _Recording] = {}
        self._pool: Any = None
        self._refused = False

    def run(self, objective: Any, chunk: Chunk, kind: object) -> Tensor:  # (steps, E, 2)
        """Losses of every step. ``kind`` is all that a step depends on beside its tensors."""
        if self._refused or not chunk.share.is_cuda:
            return one_by_one(self._step, objective, chunk)
        shapes = outline(changed((chunk.batch, chunk.share), itemgetter(0)))
        key = (kind, outline(objective), shapes, chunk.awake is None)
        if key not in self._recordings or self._recordings[key].room < len(chunk):
            self._pool = self._pool or torch.cuda.graph_pool_handle()
            self._recordings[key] = _Recording(self._step, objective, chunk, self._pool)
        recording = self._recordings[key]
        losses = recording.run(objective, chunk)
        if recording.refused:
            self._refused = True
            logging.getLogger(__name__).warning(
                "steps are not replayed as a CUDA graph, which this network, loss or optimiser "
                "does not allow: %s",
                recording.refused,
            )
        return losses


def one_by_one(take_step: Step, objective: Any, chunk: Chunk) -> Tensor:  # (steps, E, 2)
    """The same without a graph."""
    return torch.stack([take_step(objective, chunk, s) for s in range(len(chunk))])


class _Recording:
    """One graph, and the tensors that it reads and writes."""

    def __init__(self, step: Step, objective: Any, chunk: Chunk, pool: Any) -> None:
        self._step, self._pool = step, pool
        self.room = len(chunk)
        self._static = changed((objective, chunk), torch.clone)
        self._position = torch.zeros(1, dtype=torch.long, device=chunk.share.device)
        self._losses: Tensor | None = None  # (steps, E, 2)
        self._graph: torch.cuda.CUDAGraph | None = None
        self._warm = 0
        self.refused = ""

    def run(self, objective: Any, chunk: Chunk) -> Tensor:
        for static, live in zip(leaves(self._static), leaves((objective, chunk)), strict=True):
            (static[: len(live)] if live.ndim else static).copy_(live)
        self._position.zero_()
        for _ in range(len(chunk)):
            if self._graph is None and not self.refused:
                self._begin()
            elif self._graph is None:
                self._one()
            else:
                self._graph.replay()
        assert self._losses is not None
        return self._losses[: len(chunk)].clone()

    def _begin(self) -> None:
        """An ordinary step, on a stream of its own as recordings want it; after a few, record."""
        if self._warm < _WARM_UP:
            stream = torch.cuda.Stream()
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                self._one()
            torch.cuda.current_stream().wait_stream(stream)
            self._warm += 1
            return
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph, pool=self._pool):
                self._one()
            self._graph = graph
            graph.replay()
        except torch.OutOfMemoryError:
            raise
        except RuntimeError as error:
            self.refused = str(error).partition("\n")[0]
            torch.cuda.synchronize()
            self._one()

    def _one(self) -> None:
        losses = self._step(*self._static, self._position)
        if self._losses is None:  # at the first, ordinary step
            self._losses = losses.new_zeros(self.room, *losses.shape)
        self._losses.index_copy_(0, self._position, losses.unsqueeze(0))
        self._position += 1
