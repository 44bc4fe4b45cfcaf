"""How many threads a training on the CPU gets."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..network import Network

__all__ = ["suit_threads"]

_SMALL = 4_000_000  # weights, as a LeNet has for pictures of 96 pixels; a ResNet-18 has 11 million


def suit_threads(network: Network) -> None:
    """One for a small network, unless the user has said how many (OMP_NUM_THREADS).

    It gains little from more, and on a busy machine threads wait for each other many times longer
    than they work.
    """
    import torch

    if (
        "OMP_NUM_THREADS" not in os.environ
        and sum(p.numel() for p in network.parameters()) < _SMALL
    ):
        torch.set_num_threads(1)
