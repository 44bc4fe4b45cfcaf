"""𝒵′: every sample paired with r_j targets in the convex hull of its in-class neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import torch
from torch import Generator, Tensor

from .errors import InputError, TrainingError
from .overloading import Neighborhoods, in_class_neighbors
from .peers import Peers
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

    def __len__(self) -> int:
        return len(self.y)

    def with_x(self, x: Tensor) -> MicroClusters:
        """The same targets for changed copies of the samples."""
        return replace(self, x=x)

    def to(self, device: torch.device | str, non_blocking: bool = False) -> MicroClusters:
        return MicroClusters(*(one.to(device, non_blocking=non_blocking) for one in self._tensors))

    def pin_memory(self) -> MicroClusters:  # DataLoader(pin_memory=True) asks for it
        return MicroClusters(*(one.pin_memory() for one in self._tensors))

    @property
    def _tensors(self) -> list[Tensor]:
        return [getattr(self, field.name) for field in fields(self)]

    @classmethod
    def joined(cls, parts: Sequence[MicroClusters]) -> MicroClusters:
        """Several batches of one table as one: the collate_fn of a DataLoader."""
        if len(parts) == 1:
            return parts[0]
        x, y, v, w, mask = map(torch.cat, zip(*(part._tensors for part in parts), strict=True))
        crowded = torch.cat([torch.arange(len(part.y)) < len(part.v) for part in parts])
        order = crowded.long().argsort(descending=True, stable=True).to(x.device)
        return cls(x[order], y[order], v, w, mask)  # the rows with neighbours stay the first


@dataclass(frozen=True, eq=False)
class Overloaded:
    """𝒵′ as an index table: no sample and no embedding is copied r times.

    It is a dataset for a loop of one's own as well, drawn anew in every epoch:
    ``DataLoader(z, batch_size=60, shuffle=True, collate_fn=MicroClusters.joined)``.
    """

    samples: Samples
    v: Tensor  # (m, d)       embeddings of the round, constant
    neighborhoods: Neighborhoods
    anchor: Tensor  # (rows,)      which sample a row presents
    w: Tensor  # (rows, K+1)  its weights
    variance: Tensor  # ()
    heads: int | None = None  # c: the rows of a batch that come first and have neighbours; None: b

    def __len__(self) -> int:
        return len(self.anchor)

    def __getitem__(self, rows: Tensor | int) -> MicroClusters:  # (…, b), or a batch of one
        rows = rows if isinstance(rows, Tensor) else torch.tensor([range(len(self))[rows]])
        i = self.anchor[rows]
        first, head = rows[..., : self.heads], i[..., : self.heads]
        return MicroClusters(
            x=self.samples.x[i],
            y=self.samples.y[i],
            v=self.v[self.neighborhoods.index[head, 1:]],
            w=self.w[first][..., 1:] / self.variance,
            mask=self.neighborhoods.mask[head][..., 1:],
        )

    def __getitems__(self, rows: Sequence[int]) -> list[MicroClusters]:
        """What a DataLoader asks for: a whole batch at once, the rows with neighbours first."""
        found = torch.tensor(rows, device=self.anchor.device)
        crowded = self.neighborhoods.mask[self.anchor[found], 1:].any(1)
        found = torch.cat([found[crowded], found[~crowded]])
        return [replace(self, heads=int(crowded.sum()))[found]]

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
    peers: Peers | None = None,  # that have the same v, and share the search
) -> Overloaded:
    """Lines 10–21: select 𝒩(x) in every class and pair each sample with r_j weight vectors.

    With ``weighted=False`` every member has weight 1: the losses ℓ_f, ℓ_g of the unweighted
    overloaded set 𝒵.
    """
    _check(samples, v, plan)
    neighborhoods = in_class_neighbors(
        v, samples.y, plan.k, approximate_above=approximate_above, peers=peers
    )
    anchor = torch.arange(len(samples), device=v.device)
    anchor = anchor.repeat_interleave(plan.r.to(v.device)[samples.y])
    members = neighborhoods.mask[anchor]
    w = sample_simplex(members, generator) if weighted else members.float()
    return Overloaded(samples, v, neighborhoods, anchor, w, total_variance(v))


def _check(samples: Samples, v: Tensor, plan: Plan) -> None:
    if len(v) != len(samples) or len(plan.k) != samples.n:
        raise InputError(
            "there must be an embedding of every sample and a k and r for every class, found "
            f"{len(v)} embeddings of {len(samples)} samples and a plan for {len(plan.k)} of "
            f"{samples.n} classes"
        )
    if v.device != samples.y.device:
        raise InputError(
            f"samples and embeddings must be on one device, found {samples.y.device} and "
            f"{v.device}; move the samples, samples.to(device), or the embeddings, v.cpu()"
        )


def total_variance(v: Tensor) -> Tensor:  # (m, d) -> ()
    """Mean squared distance of the embeddings from their mean."""
    variance = v.var(0, correction=0).sum()
    if not bool(variance > 0):
        raise TrainingError(
            f"embeddings must differ between samples, found all {len(v)} alike: the embedder "
            "has collapsed to one point; lower the learning rate or check that it uses its input"
        )
    return variance
