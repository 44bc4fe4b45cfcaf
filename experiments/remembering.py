"""Synthetic points by index, and a network that remembers the embeddings of its samples.

What a step reads and writes has a fixed place and shape, so steps can be recorded: the memory is a
buffer of the network that is changed in place, and a batch holds rows of it instead of vectors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Generator, Tensor

from deep_oversampling import Network, Samples, embed
from deep_oversampling.losses import (
    Loss,
    classifier_loss,
    embedding_loss,
    entropy,
    proximity,
    weighted_errors,
)
from deep_oversampling.moments import total_variance
from deep_oversampling.overloading import Neighborhoods, in_class_neighbors
from deep_oversampling.oversampling import sample_simplex
from deep_oversampling.pull import limit_pull
from deep_oversampling.rivals.tables import Grouped, class_balanced
from partners import by_class

Draw = Callable[..., Generator]  # the streams of a round


class Remembering(Network):
    """Keeps an embedding of every sample: as it was in training, when it was last presented."""

    memory: Tensor

    def __init__(self, network: Network, samples: Samples) -> None:
        super().__init__(network.embedder, network.classifier, network.normalize)
        self.register_buffer("memory", embed(network, samples.x).float().clone())


@dataclass(frozen=True, eq=False)
class Points:
    """Points in the convex hulls of in-class neighbours, Σ wᵢvᵢ, as rows of some v and weights."""

    corners: Tensor  # (…, K+1)  rows of v
    shares: Tensor  # (…, K+1)  w; rows sum to 1
    label: Tensor  # (…,)
    lent: Tensor  # (…, 2)  two samples of a related, larger class
    strength: Tensor  # (…,)  how much of their difference is borrowed

    def __len__(self) -> int:
        return len(self.label)

    def __getitem__(self, rows: Tensor) -> Points:
        parts = (self.corners, self.shares, self.label, self.lent, self.strength)
        return Points(*(part[rows] for part in parts))

    def among(self, v: Tensor) -> Tensor:  # (m, d) -> (…, d)
        one, other = v[self.lent].unbind(-2)
        # the difference of two samples varies twice as much as one of them
        lent = (self.strength / 2**0.5).unsqueeze(-1) * (one - other)
        return (self.shares.unsqueeze(-1) * v[self.corners]).sum(-2) + lent


def neighbours(v: Tensor, y: Tensor, n: int, k: int) -> Neighborhoods:
    """Of all classes; those with fewer samples have fewer."""
    counts = torch.bincount(y, minlength=n).cpu()
    return in_class_neighbors(v, y, torch.minimum(torch.tensor(k), (counts - 1).clamp(min=0)))


def balanced_points(
    v: Tensor,  # (m, d)
    y: Tensor,  # (m,)
    hoods: Neighborhoods,
    rows: int,
    draw: Draw,
    *,
    borrow: float = 0.0,  # of the variance that a smaller class may lack
    anchor: Tensor | None = None,  # (rows,)
) -> Points:
    """Uniform in the hull of a sample and its neighbours; as many of every class, or as given."""
    if anchor is None:
        anchor = class_balanced(y, rows, draw("anchors")).to(v.device)
    shares = sample_simplex(hoods.mask[anchor], draw("shares"))
    lender, lacking = _lenders(v, y)
    wanted, classes = lender[y.cpu()[anchor.cpu()]], Grouped(y)
    lent = torch.stack([classes.one_of(wanted, draw("lent", i)) for i in range(2)], 1).to(v.device)
    strength = borrow * lacking.to(v.device)[y[anchor]]
    return Points(hoods.index[anchor], shares, y[anchor], lent, strength)


def _lenders(v: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:  # (n,), (n,)
    """For each class the nearest one that is larger, and 1 − m_j / m_lender; else itself, and 0."""
    counts = torch.bincount(y)
    means = v.new_zeros(len(counts), v.shape[1]).index_add(0, y, v)
    means = means / counts.clamp(min=1).unsqueeze(1)
    smaller = counts.unsqueeze(1) >= counts  # (n, n)  [j, l]: l is no larger than j
    far = torch.cdist(means, means).masked_fill(smaller, torch.inf)
    own = torch.arange(len(counts), device=y.device)
    lender = torch.where(far.isfinite().any(1), far.argmin(1), own)
    return lender.cpu(), (1 - counts / counts[lender].clamp(min=1)).float().cpu()


@dataclass(frozen=True, eq=False)
class PointTable:
    """Points as rows of a table: what a classifier behind a fixed f is trained on."""

    samples: Samples  # whose classes they are of
    v: Tensor  # (…, d)
    points: Points

    def __len__(self) -> int:
        return len(self.points)

    def __getitem__(self, rows: Tensor) -> Samples:
        some = self.points[rows]
        return self.samples.with_x(some.among(self.v), some.label)


@dataclass(frozen=True, eq=False)
class Recalled:
    """A batch: images, where they are remembered, their neighbours, and a point beside each."""

    x: Tensor  # (b, …)
    y: Tensor  # (b,)
    i: Tensor  # (b,)  rows of the memory
    near: Tensor  # (b, K)  rows of the memory
    w: Tensor  # (b, K)  per unit of the variance, 0 where padded
    mask: Tensor  # (b, K)
    points: Points  # (b,)  of classes of their own

    def with_x(self, x: Tensor) -> Recalled:
        return replace(self, x=x)


@dataclass(frozen=True, eq=False)
class RecallTable:
    """What a round presents: images, each with neighbours and with a synthetic point."""

    samples: Samples
    row: Tensor  # (rows,)  which image
    hoods: Neighborhoods
    w: Tensor  # (rows, K+1)
    pulled: Tensor  # (n,)  whether a class has neighbours
    points: Points  # (rows,)

    @classmethod
    def drawn(
        cls,
        samples: Samples,
        memory: Tensor,
        draw: Draw,
        *,
        k: int,
        pulled: Tensor,
        balanced: bool,  # images, too, are drawn equally over the classes
        borrow: float,
        own: bool = False,  # the point beside an image is one of its own hull
    ) -> RecallTable:
        y, m = samples.y, len(samples)
        hoods = neighbours(memory, y, samples.n, k)
        row = torch.arange(m, device=y.device)
        row = class_balanced(y, m, draw("images")).to(y.device) if balanced else row
        w = sample_simplex(hoods.mask[row], draw("weights")) / total_variance(memory)
        anchor = row if own else None
        points = balanced_points(memory, y, hoods, m, draw, borrow=borrow, anchor=anchor)
        return cls(samples, row, hoods, w, pulled.to(y.device), points)

    def __len__(self) -> int:
        return len(self.row)

    def __getitem__(self, rows: Tensor) -> Recalled:
        i = self.row[rows]
        y = self.samples.y[i]
        mask = self.hoods.mask[i][..., 1:] & self.pulled[y].unsqueeze(-1)
        return Recalled(
            x=self.samples.x[i],
            y=y,
            i=i,
            near=self.hoods.index[i][..., 1:],
            w=self.w[rows][..., 1:] * mask,
            mask=mask,
            points=self.points[rows],
        )


def recalling(
    network: Remembering,
    z: Recalled,
    *,
    loss: Loss,
    weights: Tensor | None,  # (n,)  of the images' classes
    point_loss: Loss = entropy,
    pull: float,  # λ; 0: no ℓ_f
    limit: float,  # of the pull, next to the gradient of ℓ_g
    single: float,  # ℓ_g of the neighbours one by one, as the paper has it
    synthetic: float,  # ℓ_g of the points; classes are alike in it
    cloud: bool = False,  # g sees the point beside an image instead, and f learns from it
    live: bool,  # the memory is written as images are presented
    momentum: float,  # what an entry keeps of what it was
    to_f: float = 1.0,  # the share of the gradient that f is given
) -> tuple[Tensor, Tensor]:
    """ℓ of the images, as the partner has it, and DOS beside it, from what is remembered."""
    fx = network.embed(z.x)
    now = fx.detach()
    fx = fx if to_f == 1 else now + to_f * (fx - now)
    v, points = network.memory[z.near], z.points.among(network.memory)
    for_g, for_f = limit_pull(fx, limit)
    if cloud:  # the image itself is a corner of its point
        for_g = points + z.points.shares[..., :1] * (for_g - network.memory[z.i])
    b, k, _ = v.shape
    others = v.flatten(0, 1) if single else v.new_zeros(0, v.shape[2])
    logits = network.classifier(torch.cat([for_g, points, others]))
    own = by_class(loss(logits[:b], z.y), z.y, weights)
    errors = weighted_errors(for_f, v, z.w)
    ell_g = own + synthetic * point_loss(logits[b : 2 * b], z.points.label)
    if single:
        apart = point_loss(logits[2 * b :], z.y.repeat_interleave(k)).view(b, k)
        ell_g = classifier_loss(ell_g, single * proximity(errors, z.mask), apart)
    if live:
        now = now.to(network.memory.dtype)
        now = torch.lerp(now, network.memory[z.i], momentum) if momentum else now
        network.memory.index_copy_(0, z.i, now)
    return ell_g, pull * embedding_loss(errors)
