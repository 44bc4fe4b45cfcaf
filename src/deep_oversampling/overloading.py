"""𝒩(x; k): in-class neighbours in the feature space; the only neighbour search."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

import torch
from torch import Tensor

from .approximate import approximately_nearest
from .errors import InputError
from .nearest import Classes, budget, nearest, padded, scale_of
from .peers import Peers

__all__ = ["Neighborhoods", "in_class_neighbors"]


@dataclass(frozen=True, eq=False)
class Neighborhoods:
    """Who the in-class neighbours of every sample are.

    Column 0 is the sample itself (R1). Classes may differ in k, so rows are padded to the
    largest, K, and the mask is explicit: a padded weight of 0 would still count in ρ′, where
    exp(−0 · distance) = 1. Padding repeats the sample itself, so every index can be gathered.
    """

    index: Tensor  # (m, K+1)  rows of v
    mask: Tensor  # (m, K+1)  False where padded


def in_class_neighbors(
    v: Tensor,  # (m, d)  embeddings
    y: Tensor,  # (m,)    class indices
    k: Tensor,  # (n,)    neighbours per class, at most m_j - 1
    *,
    memory: int = 256,
    approximate_above: int | None = None,
    peers: Peers | None = None,  # that have the same v, and share the search
) -> Neighborhoods:
    """The k_j nearest in-class neighbours of every sample, nearest first, exact.

    A class is searched in blocks of rows of its distance matrix D(c_j), which never exists as a
    whole: ``memory`` bounds what is in memory beside a copy of the class and the result, in MiB,
    but for one row of distances. On a CPU it is used for classes of more than 100,000 only, as
    smaller blocks stay in the caches.

    Classes with more than ``approximate_above`` samples are searched by FAISS instead, which misses
    some neighbours; it runs on the CPU. How many it misses and what it saves is in docs/speed.md.

    >>> v = torch.tensor([[0.0], [1.0], [5.0], [5.0]])
    >>> in_class_neighbors(v, torch.tensor([0, 0, 0, 1]), torch.tensor([2, 0])).index
    tensor([[0, 1, 2],
            [1, 0, 2],
            [2, 1, 0],
            [3, 3, 3]])
    """
    v, most, peers = v.detach(), int(k.max()), peers or Peers()  # K
    counts, wanted = torch.bincount(y, minlength=len(k)).tolist(), k.tolist()
    _check(counts, wanted, memory)
    order = y.argsort(stable=True)  # class by class
    starts = accumulate([0, *counts[:-1]])
    spans = [_Span(*one) for one in zip(starts, counts, wanted, strict=True)]
    spans = [one for one in spans if one.k > 0]  # line 11: without overloading no search
    own = torch.arange(len(v) + 1, device=v.device).unsqueeze(1)
    index = own.repeat(1, most + 1)  # one row more, for what is found for padding
    if approximate_above is not None:
        for span in [one for one in spans if one.size > approximate_above]:
            # every process makes the cells; to look into them takes far longer, so that is shared
            rows = order[span.start : span.start + span.size]
            if len(own_rows := rows[peers.own]):
                found = approximately_nearest(v, rows, span.k, peers.own)
                index[own_rows, 1 : span.k + 1] = found
        spans = [one for one in spans if one.size <= approximate_above]
    scale = scale_of(v) if spans else 1.0
    for batch in _batches(spans, budget(v.device, memory, 1)):
        classes, limit = _table(v, scale, order, batch), budget(v.device, memory, batch[0].size)
        # every class is shared by those who ask: whatever the sizes, each has as much to do
        asked = torch.arange(classes.members.shape[1], device=v.device)[peers.own]
        if len(asked):
            rows = classes.members.where(classes.real, len(v))[:, peers.own]
            found = nearest(classes, limit, asked)
            index[rows.flatten(), 1 : classes.most + 1] = found.flatten(0, 1)
    index, own = index[:-1], own[:-1]
    if peers.total:  # who was not asked is where it was; only what was searched travels
        searched = k.to(v.device)[y] > 0
        found = peers.total(index[searched, 1:] - own[searched])
        index[searched, 1:] = found + own[searched]
    mask = torch.arange(most + 1, device=v.device) <= k.to(v.device)[y].unsqueeze(1)
    return Neighborhoods(index.where(mask, own), mask)


class _Span(NamedTuple):
    """A class that is searched: where it is in the order, how large, and for how many."""

    start: int
    size: int  # m_j
    k: int


def _by_size(span: _Span) -> int:
    return -span.size


def _batches(spans: list[_Span], limit: int) -> Iterator[list[_Span]]:
    """Classes of similar size whose distances fit into ``limit`` bytes together, else single ones.

    Small classes would otherwise cost more for being many than for what is in them.
    """
    batch: list[_Span] = []
    for span in sorted(spans, key=_by_size):
        if batch:
            largest = padded(batch[0].size)
            distances = (len(batch) + 1) * largest**2
            if 2 * span.size < largest or distances * 4 > limit:
                yield batch
                batch = []
        batch.append(span)
    if batch:
        yield batch


def _table(v: Tensor, scale: float, order: Tensor, batch: list[_Span]) -> Classes:
    """The classes as rows of equal length, filled up with their last members."""
    start, size, k = torch.tensor(batch, device=v.device).T  # (c,) each
    column = torch.arange(padded(batch[0].size), device=v.device)
    members = order[start.unsqueeze(1) + torch.minimum(column, size.unsqueeze(1) - 1)]
    return Classes(v, scale, members, size, k, max(one.k for one in batch))


def _check(counts: list[int], k: list[int], memory: int) -> None:
    for j, (count, wanted) in enumerate(zip(counts, k, strict=True)):
        if wanted > max(count - 1, 0):
            raise InputError(
                f"k must be at most m_j - 1, found k={wanted} for class {j} with {count} "
                "sample(s); Plan.fitted_to clamps it"
            )
    if memory < 1:
        raise InputError(f"memory must be at least 1 MiB, found {memory}")
