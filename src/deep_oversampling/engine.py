"""How steps are run on the machine at hand."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import torch

from .errors import InputError

__all__ = ["Engine"]


@dataclass(frozen=True)
class Engine:
    """What makes steps faster; only ``bf16`` changes results beyond rounding.

    ``compile`` takes half a minute before the first step and pays on a GPU, in long trainings.
    """

    replay: bool = True  # on an NVIDIA GPU, steps are recorded as a CUDA graph and replayed
    compile: bool = False  # by torch.compile
    bf16: bool = False  # mixed precision, on an NVIDIA GPU

    def compiled(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return torch.compile(function) if self.compile else function

    def check(self, device: torch.device) -> None:
        if self.bf16 and device.type != "cuda":  # many CPUs are slow with it, some break off
            raise InputError(
                f"bf16 needs an NVIDIA GPU, found a training on {device.type}; leave it out"
            )

    def precision(self, device: torch.device) -> AbstractContextManager[Any]:
        return torch.autocast(device.type, torch.bfloat16, enabled=self.bf16)
