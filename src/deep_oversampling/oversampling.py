"""𝒵′: every sample paired with r_j targets in the convex hull of its in-class neighbours."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Generator, Tensor

from .errors import TrainingError
from .overloading import Neighborhoods, in_class_neighbors
from .plan import Plan
from .samples import Samples

__all__ = ["MicroClusters", "Overloaded", "oversample", "sample_simplex"]


@dataclass(frozen=True, eq=False)
class MicroClusters:
    """A batch of z_i^(j) = (x_i, y_i, 𝒩(x_i), w^(i,j)).

    Only the first c rows have neighbours, the others have k_j = 0: nothing is gathered for them.
    """

    x: Tensor  # (b, …)
    y: Tensor  # (b,)
    v: Tensor  # (c, K, d)  the neighbours; x itself, their column 0 in 𝒩(x), is not among them
    w: Tensor  # (c, K)     per unit of squared distance, the round's total variance (R5)
    mask: Tensor  # (c, K)     False where padded, and w is 0

    def with_x(self, x: Tensor) -> MicroClusters:
        """The same targets for changed copies of the samples."""
        return replace(self, x=x)


@dataclass(frozen=True, eq=False)
class Overloaded:
    """𝒵′ as an index table: no sample and no embedding is copied r times."""

    samples: Samples
    v: Tensor  # (m, d)       embeddings of the round, constant
    neighborhoods: Neighborhoods
    anchor: Tensor  # (rows,)      which sample a row presents
    w: Tensor  # (rows, K+1)  its weights
    variance: Tensor  # ()
    heads: int | None = None  # c: the rows of a batch that come first and have neighbours; None: b

    def __len__(self) -> int:
        return len(self.anchor)

    def __getitem__(self, rows: Tensor) -> MicroClusters:  # (…, b)
        i = self.anchor[rows]
        first, head = rows[..., : self.heads], i[..., : self.heads]
        return MicroClusters(
            x=self.samples.x[i],
            y=self.samples.y[i],
            v=self.v[self.neighborhoods.index[head, 1:]],
            w=self.w[first][..., 1:] / self.variance,
            mask=self.neighborhoods.mask[head][..., 1:],
        )

    @property
    def has_neighbours(self) -> Tensor:  # (rows,)
        return self.neighborhoods.mask[:, 1:].any(1)[self.anchor]


def sample_simplex(
    mask: Tensor,  # (rows, K+1)  which members there are
    generator: Generator,
) -> Tensor:  # (rows, K+1)  ≥ 0, rows sum to 1
    """Uniform on the simplex of the members: normalised exponentials, Dirichlet(1) (R6)."""
    # float64, and drawn on the CPU: every device gets the same weights. −log(1 − u) is what
    # exponential_ draws, six times as fast
    u = torch.rand(mask.shape, dtype=torch.float64, generator=generator)
    u = u if mask.device.type == "mps" else u.to(mask.device)  # which has no float64
    e = -torch.log1p(-u).masked_fill(~mask.to(u.device), 0.0)
    return (e / e.sum(1, keepdim=True)).float().to(mask.device)


def oversample(
    samples: Samples,
    v: Tensor,  # (m, d)  f(x_i), constant
    plan: Plan,
    *,
    generator: Generator,
    weighted: bool = True,
    approximate_above: int | None = None,
) -> Overloaded:
    """Lines 10–21: select 𝒩(x) in every class and pair each sample with r_j weight vectors.

    With ``weighted=False`` every member has weight 1: the losses ℓ_f, ℓ_g of the unweighted
    overloaded set 𝒵.
    """
    neighborhoods = in_class_neighbors(v, samples.y, plan.k, approximate_above=approximate_above)
    anchor = torch.arange(len(samples), device=v.device)
    anchor = anchor.repeat_interleave(plan.r.to(v.device)[samples.y])
    members = neighborhoods.mask[anchor]
    w = sample_simplex(members, generator) if weighted else members.float()
    return Overloaded(samples, v, neighborhoods, anchor, w, total_variance(v))


def total_variance(v: Tensor) -> Tensor:  # (m, d) -> ()
    """Mean squared distance of the embeddings from their mean."""
    variance = v.var(0, correction=0).sum()
    if not bool(variance > 0):
        raise TrainingError(
            f"embeddings must differ between samples, found all {len(v)} alike: the embedder "
            "has collapsed to one point; lower the learning rate or check that it uses its input"
        )
    return variance
