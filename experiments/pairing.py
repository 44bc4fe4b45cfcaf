"""Pairs of one class, mixed inside f: a hull of two, at any layer, that all layers learn from.

With gradients through both samples and everything before the mixed layer, nothing is stored and no
target grows old. A batch has as many images as any other: of the pair (a, b) both w·a + (1 − w)·b
and w·b + (1 − w)·a are presented.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Generator, Tensor, nn

from deep_oversampling import Network, Samples
from deep_oversampling.losses import Loss
from deep_oversampling.overloading import Neighborhoods
from deep_oversampling.rivals.tables import Grouped
from partners import by_class

Draw = Callable[..., Generator]  # the streams of a round


@dataclass(frozen=True, eq=False)
class Pairs:
    """A batch of b pairs."""

    x: Tensor  # (2b, …)  pair after pair
    y: Tensor  # (b,)
    share: Tensor  # (b,)  w

    def with_x(self, x: Tensor) -> Pairs:
        return replace(self, x=x)


@dataclass(frozen=True, eq=False)
class PairTable:
    """What a round presents: half of the samples, each with another of its class."""

    samples: Samples
    index: Tensor  # (rows, 2)
    share: Tensor  # (rows,)

    @classmethod
    def drawn(
        cls,
        samples: Samples,
        hoods: Neighborhoods | None,  # None: the other is any of the class
        draw: Draw,
        *,
        mixed: Tensor,  # (n,)  the share of a class's pairs that are mixed
    ) -> PairTable:
        y, half = samples.y, max(1, len(samples) // 2)
        one = torch.randperm(len(samples), generator=draw("anchors"))[:half].to(y.device)
        if hoods is None:
            other = Grouped(y).one_of(y[one], draw("others"), but=one).to(y.device)
        else:
            other = _one_near(hoods, one, draw("others"))
        share, chosen = torch.rand(2, half, generator=draw("shares")).to(y.device)
        share = torch.where(chosen < mixed.to(y.device)[y[one]], share, torch.ones_like(share))
        return cls(samples, torch.stack([one, other], 1), share)

    def __len__(self) -> int:
        return len(self.index)

    def __getitem__(self, rows: Tensor) -> Pairs:
        pairs = self.index[rows]
        return Pairs(
            self.samples.x[pairs.flatten(-2)], self.samples.y[pairs[..., 0]], self.share[rows]
        )


def _one_near(hoods: Neighborhoods, anchor: Tensor, generator: Generator) -> Tensor:
    """One of the neighbours, all alike; the anchor itself where it has none."""
    count = hoods.mask[anchor].sum(1) - 1
    u = torch.rand(len(anchor), generator=generator).to(count.device)
    place = torch.where(count > 0, 1 + (u * count).long(), 0)
    return hoods.index[anchor].gather(1, place.unsqueeze(1)).squeeze(1)


def mixing_inside(
    network: Network,
    z: Pairs,
    *,
    layer: int,  # modules of f that come before; 0: images themselves are mixed
    loss: Loss,
    weights: Tensor | None,  # (n,)
) -> tuple[Tensor, Tensor]:
    """ℓ of mixed pairs."""
    assert isinstance(network.embedder, nn.Sequential)
    h = network.embedder[:layer](network.normalize(z.x))
    pairs = h.unflatten(0, (-1, 2))
    w = z.share.view(-1, *[1] * h.ndim).to(h.dtype)
    h = (w * pairs + (1 - w) * pairs.flip(1)).flatten(0, 1)
    logits = network.classifier(network.embedder[layer:](h))
    ell = loss(logits, z.y.repeat_interleave(2)).view(-1, 2).mean(1)
    return by_class(ell, z.y, weights), torch.zeros_like(ell)
