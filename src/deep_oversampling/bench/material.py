"""Generated data of the shapes and types that count; a time does not depend on what they show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import torch
from torch import Tensor
from torch.nn.functional import interpolate

from ..oversampling import Overloaded
from ..plan import Plan
from ..samples import Samples
from ..seeding import streams

__all__ = ["BATCH", "NEIGHBOURS", "images", "rare", "shortened", "vectors"]

BATCH = 60
NEIGHBOURS = 5  # k
_SHARE = 0.6  # of the classes have many samples

T = TypeVar("T", Samples, Overloaded)


def images(counts: Sequence[int], shape: tuple[int, int, int], *, seed: int = 0) -> Samples:
    """uint8 images (c, h, w): bright and dark patches, the class's own, under noise."""
    rng, (channels, *size) = streams(seed), shape
    y = torch.arange(len(counts)).repeat_interleave(torch.tensor(counts))
    y = y[torch.randperm(len(y), generator=rng("order"))]
    coarse = torch.rand(len(counts), channels, 4, 4, generator=streams(0)("patches"))
    patches = (96 * interpolate(coarse, size=size)).byte()
    noise = torch.randint(160, (len(y), *shape), dtype=torch.uint8, generator=rng("noise"))
    return Samples(patches[y] + noise, y, [str(j) for j in range(len(counts))])


def rare(
    majority: int, shape: tuple[int, int, int], *, n: int = 10, k: int = NEIGHBOURS, share: float
) -> tuple[Samples, Plan]:
    """Four of ten classes have ``share`` of the others' samples, and are levelled: 40 % of 𝒵′."""
    common = round(_SHARE * n)
    few = max(k + 1, round(share * majority))
    samples = images([majority] * common + [few] * (n - common), shape)
    return samples, Plan.for_minority(samples.class_counts, range(common, n), k)


def shortened(table: T, rows: int) -> T:
    """At most so many of its rows, drawn at random: the mixture stays, a round takes less time."""
    if len(table) <= rows:
        return table
    some = torch.randperm(len(table), generator=streams(0)("rows"))[:rows]
    if isinstance(table, Samples):
        return table.subset(some.to(table.y.device))
    return table.some(some.to(table.anchor.device))


def vectors(m: int, d: int, device: torch.device) -> Tensor:  # (m, d)
    """Embeddings as they are after ReLU: half of the numbers are 0."""
    return torch.randn(m, d, generator=streams(0)("vectors")).relu().to(device)
