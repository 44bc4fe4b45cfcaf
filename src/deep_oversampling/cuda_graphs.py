"""Recording by CUDA graphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

__all__ = ["CudaGraphs"]


class CudaGraphs:
    """Graphs that share their memory, as only one of them is replayed at a time."""

    def __init__(self) -> None:
        self._pool: Any = torch.cuda.graph_pool_handle()

    def aside(self, function: Callable[[], None]) -> None:
        stream = torch.cuda.Stream()  # not the default one, on which nothing can be recorded
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            function()
        torch.cuda.current_stream().wait_stream(stream)

    def record(self, function: Callable[[], None]) -> Callable[[], object]:
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph, pool=self._pool):
                function()
        except RuntimeError:
            torch.cuda.synchronize()
            _end_recording_of_random_numbers()
            raise
        return graph.replay


def _end_recording_of_random_numbers() -> None:
    """A recording that fails leaves torch's generator in a state in which dropout fails as well."""
    generator = torch.cuda.default_generators[torch.cuda.current_device()]
    generator.graphsafe_set_state(generator.clone_state())
