"""𝒵′: every sample paired with r_j targets in the convex hull of its in-class neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise

import torch
from torch import Generator, Tensor

from .embeddings import Embeddings
from .errors import InputError
from .overloading import Neighborhoods, in_class_neighbors
from .peers import Peers
from .plan import Plan
from .samples import Samples

__all__ = ["MicroClusters", "Overloaded", "oversample", "sample_simplex"]

_BLOCK = 2**16  # rows whose weights are drawn at once


@dataclass(frozen=True, eq=False)
class MicroClusters:
    """A batch of z_i^(j) = (x_i, y_i, 𝒩(x_i), w^(i,j)).

    Only the first c rows have neighbours, the others have k_j = 0: nothing is gathered for them.
    """

    x: Tensor  # (b, …)
    y: Tensor  # (b,)
    v: Tensor  # (c, K, d)  the neighbours; x itself, their column 0 in 𝒩(x), is not among them
    w: Tensor  # (c, K)     per unit of squared distance, the round's total variance (R5)
    mask: Tensor  # (c, K)     who is part of ℓ′_g; False where padded, and w is 0; (c, 0): nobody

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

    Only rows of classes with k_j > 0 have neighbours, so the table holds embeddings,
    neighbourhoods and weights of these alone.

    It is a dataset for a loop of one's own as well, drawn anew in every epoch:
    ``DataLoader(z, batch_size=60, shuffle=True, collate_fn=MicroClusters.joined)``.
    """

    samples: Samples
    kept: Tensor  # (s,)      samples of the classes that have neighbours, in their order
    v: Tensor  # (s, d)    their embeddings of the round, constant
    neighborhoods: Neighborhoods  # (s, K+1)  of them, as rows of v
    anchor: Tensor  # (rows,)   which sample a row presents
    crowded: Tensor  # (c,)      rows that have neighbours, in their order
    hood: Tensor  # (c,)      whose: a row of v
    w: Tensor  # (c, K+1)  their weights
    variance: Tensor  # ()        of the embeddings of all samples
    heads: int | None = None  # the rows of a batch that come first and have neighbours; None: b

    def __len__(self) -> int:
        return len(self.anchor)

    def __getitem__(self, rows: Tensor | int) -> MicroClusters:  # (…, b), or a batch of one
        rows = rows if isinstance(rows, Tensor) else torch.tensor([range(len(self))[rows]])
        i = self.anchor[rows]
        place, there = self.places(rows[..., : self.heads if len(self.crowded) else 0])
        hood = self.hood[place]
        return MicroClusters(
            x=self.samples.x[i],
            y=self.samples.y[i],
            v=self.v[self.neighborhoods.index[hood, 1:]],
            w=self.w[place][..., 1:] / self.variance * there,
            mask=self.neighborhoods.mask[hood][..., 1:] & there,
        )

    def __getitems__(self, rows: Sequence[int]) -> list[MicroClusters]:
        """What a DataLoader asks for: a whole batch at once, the rows with neighbours first."""
        found = torch.tensor(rows, device=self.anchor.device)
        crowded = self.places(found)[1].squeeze(-1)
        found = torch.cat([found[crowded], found[~crowded]])
        return [replace(self, heads=int(crowded.sum()))[found]]

    @property
    def has_neighbours(self) -> Tensor:  # (rows,)
        found = torch.zeros(len(self), dtype=torch.bool, device=self.anchor.device)
        return found.index_copy_(0, self.crowded, self.neighborhoods.mask[self.hood, 1:].any(1))

    def some(self, rows: Tensor) -> Overloaded:
        """The table that has these rows, in this order; as often as they are asked for."""
        place, there = self.places(rows)
        crowded = there.squeeze(-1).nonzero().flatten()
        own = place[crowded]
        return replace(
            self, anchor=self.anchor[rows], crowded=crowded, hood=self.hood[own], w=self.w[own]
        )

    def places(self, rows: Tensor) -> tuple[Tensor, Tensor]:  # (…, b), (…, b, 1)
        """Where rows are among those with neighbours, and whether they are there at all."""
        if not len(self.crowded):
            return torch.zeros_like(rows), torch.zeros_like(rows, dtype=torch.bool).unsqueeze(-1)
        place = torch.searchsorted(self.crowded, rows.contiguous())
        place = place.clamp(max=len(self.crowded) - 1)
        return place, (self.crowded[place] == rows).unsqueeze(-1)


def sample_simplex(
    mask: Tensor,  # (c, K+1)  which members there are
    generator: Generator,
    *,
    rows: Tensor | None = None,  # (c,)  of a table of ``count`` rows, in order; default: all
    count: int = 0,
) -> Tensor:  # (c, K+1)  ≥ 0, rows sum to 1
    """Uniform on the simplex of the members: normalised exponentials, Dirichlet(1) (R6).

    Rows that are left out are drawn too, so what a row gets does not depend on the others.
    """
    # float64, and drawn on the CPU: every device gets the same weights. −log(1 − u) is what
    # exponential_ draws, six times as fast
    u = _drawn(mask, generator, rows, count)
    u = u if mask.device.type == "mps" else u.to(mask.device)  # which has no float64
    e = -torch.log1p(-u).masked_fill(~mask.to(u.device), 0.0)
    return (e / e.sum(1, keepdim=True)).float().to(mask.device)


def _drawn(mask: Tensor, generator: Generator, rows: Tensor | None, count: int) -> Tensor:
    """Uniform numbers for some rows of a table, as if all of it were drawn at once."""
    c, width = mask.shape
    if rows is None or c == count:
        return torch.rand(c, width, dtype=torch.float64, generator=generator)
    u = torch.empty(c, width, dtype=torch.float64)
    places = rows.cpu()
    starts = torch.arange(0, count + _BLOCK, _BLOCK)
    bounds = torch.searchsorted(places, starts).tolist()
    for start, (first, last) in zip(starts.tolist(), pairwise(bounds), strict=False):
        block = torch.rand(
            min(_BLOCK, count - start), width, dtype=torch.float64, generator=generator
        )
        u[first:last] = block[places[first:last] - start]
    return u


def oversample(
    samples: Samples,
    v: Tensor | Embeddings,  # (m, d)  f(x_i), constant
    plan: Plan,
    *,
    generator: Generator,
    weighted: bool = True,
    approximate_above: int | None = None,
    peers: Peers | None = None,  # that have the same v, and share the search
) -> Overloaded:
    """Lines 10–21: select 𝒩(x) in every class and pair each sample with r_j weight vectors.

    With ``weighted=False`` every member has weight 1: the losses ℓ_f, ℓ_g of the unweighted
    overloaded set 𝒵. Of v, only what classes with k_j > 0 have is kept. A plan that is cautious
    has no neighbours where g knows too little of the classes.
    """
    device, y = samples.y.device, samples.y
    if isinstance(v, Tensor):
        _check(samples, v, plan)
        v = Embeddings.of(v, samples, plan.k > 0)
    if plan.known and v.known is None:
        raise InputError(
            "a cautious plan must know what g makes of the embeddings, found embeddings alone; use "
            "embeddings.embed_classes(network, samples, plan.k > 0), or give the plan that this "
            "round is to have: plan.cautious(0), or plan.without_neighbours()"
        )
    if v.known is not None and v.known < plan.known:
        plan = plan.without_neighbours()
        v = v.of_classes(plan.k > 0, y)
    r = _times(plan, y, generator)
    anchor = torch.arange(len(samples), device=device).repeat_interleave(r)
    crowded = (plan.k > 0).to(device)[y].repeat_interleave(r).nonzero().flatten()
    hood = torch.arange(len(v.rows), device=device).repeat_interleave(r[v.rows])
    if len(hood) != len(crowded):
        raise InputError(
            "embeddings must be kept of the classes with k > 0 and of no others, found those of "
            f"{len(v.rows)} samples; use embed_classes(network, samples, plan.k > 0)"
        )
    neighborhoods = in_class_neighbors(
        v.v, y[v.rows], plan.k, approximate_above=approximate_above, peers=peers
    )
    members = neighborhoods.mask[hood]
    if weighted:
        w = sample_simplex(members, generator, rows=crowded, count=len(anchor))
    else:
        w = members.float()
    return Overloaded(samples, v.rows, v.v, neighborhoods, anchor, crowded, hood, w, v.variance)


def _times(plan: Plan, y: Tensor, generator: Generator) -> Tensor:  # (m,)
    """r_j of every sample; where it is a fraction, some of the class are drawn for one row more."""
    if not plan.r.is_floating_point():
        return plan.r.to(y.device)[y]
    own = y.cpu()
    counts = torch.bincount(own, minlength=len(plan.r))
    least = plan.r.floor().long()
    more = plan.rows(counts) - least * counts  # (n,)
    order = torch.randperm(len(own), generator=generator)
    order = order[own[order].argsort(stable=True)]  # class by class, each in an order of its own
    first = counts.cumsum(0) - counts
    drawn = torch.empty_like(own)
    drawn[order] = (torch.arange(len(own)) - first[own[order]] < more[own[order]]).long()
    return (least[own] + drawn).to(y.device)


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
