"""Protocols that take samples away; each returns what it kept, and never sees test data."""

from __future__ import annotations

import torch
from torch import Generator, Tensor

from ..errors import InputError
from ..samples import Samples

__all__ = ["drop_from_classes"]


def drop_from_classes(
    samples: Samples,
    p: float,
    *,
    generator: Generator,
    classes: int = 4,
) -> tuple[Tensor, list[int]]:  # kept rows, the reduced classes
    """Draw some classes and remove the share p of their samples: the paper's protocol.

    At least one sample of every class is kept.
    """
    if not 0 <= p < 1 or not 0 < classes < samples.n:
        raise InputError(
            f"p must lie in [0, 1) and classes in 1 … {samples.n - 1}, "
            f"found p={p}, classes={classes}"
        )
    reduced = sorted(torch.randperm(samples.n, generator=generator)[:classes].tolist())
    keep = torch.ones(len(samples), dtype=torch.bool)
    for j in reduced:
        rows = (samples.y == j).nonzero().flatten()
        shuffled = rows[torch.randperm(len(rows), generator=generator)]
        keep[shuffled[max(1, round(len(rows) * (1 - p))) :]] = False
    return keep.nonzero().flatten(), reduced
