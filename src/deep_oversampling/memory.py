"""When memory does not suffice: how to tell, and what to let go of."""

from __future__ import annotations

import torch

__all__ = ["free_memory", "is_out_of_memory", "is_recording"]


def is_out_of_memory(error: RuntimeError) -> bool:
    """A GPU has an error of its own for it; main memory only has words."""
    return isinstance(error, torch.OutOfMemoryError) or "DefaultCPUAllocator" in str(error)


def free_memory(device: torch.device) -> None:
    """Of a GPU, what torch keeps for later."""
    if device.type == "cuda":
        torch.cuda.empty_cache()


def is_recording() -> bool:
    """A step that is recorded cannot be taken another way."""
    return torch.cuda.is_available() and torch.cuda.is_current_stream_capturing()
