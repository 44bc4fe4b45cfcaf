"""𝒩(x; k): in-class neighbours in the feature space; the only neighbour search."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

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
    memory: int = 64 * 2**20,
) -> Neighborhoods:
    """The k_j nearest in-class neighbours of every sample, nearest first, exact.

    ``memory`` bounds the bytes of one block of distances: a class of m_j samples is searched in
    blocks of rows, and its whole m_j × m_j distance matrix D(c_j) never exists.

    >>> v = torch.tensor([[0.0], [1.0], [5.0], [5.0]])
    >>> in_class_neighbors(v, torch.tensor([0, 0, 0, 1]), torch.tensor([2, 0])).index
    tensor([[0, 1, 2],
            [1, 0, 2],
            [2, 1, 0],
            [3, 3, 3]])
    """
    width = int(k.max())  # K
    index = torch.arange(len(v), device=v.device).unsqueeze(1).repeat(1, width + 1)
    counts = torch.bincount(y, minlength=len(k)).tolist()
    classes = torch.split(y.argsort(stable=True), counts)  # the rows of each class
    for k_j, members in zip(k.tolist(), classes, strict=True):
        if k_j > 0:  # line 11: classes without overloading need no search
            index[members, 1 : k_j + 1] = members[_nearest(v[members], k_j, memory)]
    columns = torch.arange(width + 1, device=v.device)
    mask = columns <= k.to(v.device)[y].unsqueeze(1)
    return Neighborhoods(index, mask)


def _nearest(
    v: Tensor,  # (m_j, d)  one class
    k: int,
    memory: int,
) -> Tensor:  # (m_j, k)   rows of v
    # ‖a − b‖² = ‖a‖² − 2ab + ‖b‖²: ‖a‖² is the same for a whole row, so ranks do without it.
    # The formula loses small distances beside large norms, hence double precision (mps has none)
    # and centring.
    v = v if v.device.type == "mps" else v.double()
    v = v - v.mean(0)
    norms = v.square().sum(1)
    nearest = torch.empty(len(v), k, dtype=torch.long, device=v.device)
    step = max(1, memory // (len(v) * v.element_size()))
    for start in range(0, len(v), step):
        rows = torch.arange(start, min(start + step, len(v)), device=v.device)
        distances = torch.addmm(norms, v[rows], v.T, alpha=-2)  # (rows, m_j)
        distances[rows - start, rows] = torch.inf  # self by index: duplicates are neighbours
        nearest[rows] = distances.topk(k, largest=False).indices
    return nearest
