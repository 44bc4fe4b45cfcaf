"""When memory does not suffice: how to tell, and what to let go of."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

__all__ = ["as_memory_allows", "free_memory", "is_out_of_memory", "is_recording"]


def is_out_of_memory(error: RuntimeError) -> bool:
    """A GPU has an error of its own for it; main memory only has words."""
    return isinstance(error, torch.OutOfMemoryError) or "DefaultCPUAllocator" in str(error)


def as_memory_allows(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:  # (b, …)
    """What a function makes of a batch, row by row: of its halves where the whole does not fit."""
    try:
        return function(x)
    except RuntimeError as error:
        if not is_out_of_memory(error) or len(x) < 2:
            raise
    free_memory(x.device)  # not in the handler: the error holds on to memory
    halves = x.tensor_split(2)
    return torch.cat([as_memory_allows(function, half) for half in halves])


def free_memory(device: torch.device) -> None:
    """Of a GPU, what torch keeps for later."""
    if device.type == "cuda":
        torch.cuda.empty_cache()


def is_recording() -> bool:
    """A step that is recorded cannot be taken another way."""
    return torch.cuda.is_available() and torch.cuda.is_current_stream_capturing()
