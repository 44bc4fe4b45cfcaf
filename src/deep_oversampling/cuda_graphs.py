"""Recording by CUDA graphs."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

__all__ = ["CudaGraphs"]


class CudaGraphs:
    """Graphs that share their memory, as only one of them is replayed at a time."""

    def __init__(
        self,
        device: torch.device,
        objection: Callable[[], str],  # why not to record, if there is a reason
        *,
        try_convolutions: bool = False,  # all algorithms of cuDNN: pays for large ones only
    ) -> None:
        self._device, self._objection = device, objection
        self._try_convolutions = try_convolutions
        with torch.cuda.device(device):
            here = torch.cuda.current_stream()
            # on the default one nothing can be recorded; a training with a stream of its own
            # records there
            self._stream = torch.cuda.Stream() if here == torch.cuda.default_stream() else here
            self._pool: Any = torch.cuda.graph_pool_handle()
            # a pool that its last graph has left cannot be recorded into again, and graphs go with
            # the learning rate that they were recorded for: this one stays
            self._holder = torch.cuda.CUDAGraph()
            recording = torch.cuda.graph(self._holder, pool=self._pool, stream=self._stream)
            with _kept_garbage(), recording:
                torch.zeros(1, device=device)

    def aside(self, function: Callable[[], None]) -> None:
        with torch.cuda.device(self._device):
            self._stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(self._stream), self._convolutions():
                function()
            torch.cuda.current_stream().wait_stream(self._stream)

    def record(self, function: Callable[[], None]) -> Callable[[], object]:
        if reason := self._objection():
            raise RuntimeError(reason)
        with torch.cuda.device(self._device):
            graph = torch.cuda.CUDAGraph()
            # not on the stream that torch has for all recordings: cuBLAS has a workspace for each
            # stream, and two graphs that are replayed at once must not share one
            # nor is it a matter of this one what other threads do, which may read ahead
            recording = torch.cuda.graph(
                graph, pool=self._pool, stream=self._stream, capture_error_mode="thread_local"
            )
            try:
                with _kept_garbage(), recording, self._convolutions():
                    function()
            except RuntimeError:
                torch.cuda.synchronize()
                self._end_recording_of_random_numbers()
                raise
        return lambda: self._replay(graph)

    @contextmanager
    def _convolutions(self) -> Iterator[None]:
        """Steps are of one shape, so cuDNN may try what is fastest, unless the user forbids it."""
        cudnn, before = torch.backends.cudnn, torch.backends.cudnn.benchmark
        fixed = cudnn.deterministic or torch.are_deterministic_algorithms_enabled()
        cudnn.benchmark = before or (self._try_convolutions and not fixed)
        try:
            yield
        finally:
            cudnn.benchmark = before

    def _replay(self, graph: torch.cuda.CUDAGraph) -> None:
        with torch.cuda.device(self._device):
            graph.replay()

    def _end_recording_of_random_numbers(self) -> None:
        """A recording that fails leaves torch's generator in a state in which dropout fails."""
        generator = torch.cuda.default_generators[torch.cuda.current_device()]
        generator.graphsafe_set_state(generator.clone_state())


@contextmanager
def _kept_garbage() -> Iterator[None]:
    """Another training's graph may be among it, and to free one breaks a recording."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
