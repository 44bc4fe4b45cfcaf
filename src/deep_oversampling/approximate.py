"""Almost the nearest points of a class: for classes too large to compare everyone with everyone."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from .errors import InputError

__all__ = ["approximately_nearest"]

_PROBES = 8  # cells that are searched for a point


def approximately_nearest(v: Tensor, k: int) -> Tensor:  # (m_j, d) -> (m_j, k)  rows of v
    """The nearest in the cells around every point; k-means makes √m_j cells (FAISS, IVF)."""
    faiss = _faiss()
    m, d = v.shape
    cells = math.isqrt(m)
    points = (v - v.mean(0)).float().cpu().numpy()
    index = faiss.IndexIVFFlat(faiss.IndexFlatL2(d), d, cells)  # its k-means has a fixed seed
    index.train(points)
    index.add(points)
    index.nprobe = min(_PROBES, cells)
    found = torch.from_numpy(index.search(points, k + 1)[1])
    few = (found < 0).any(1)  # the cells have not got as many
    if bool(few.any()):
        index.nprobe = cells
        found[few] = torch.from_numpy(index.search(points[few.numpy()], k + 1)[1])
    own = found == torch.arange(m).unsqueeze(1)
    own[:, -1] |= ~own.any(1)  # copies of a point can leave it no room: then without the last
    return found[~own].view(m, k).to(v.device)


def _faiss() -> Any:
    try:
        import faiss
    except ImportError:
        raise InputError(
            "approximate_above needs FAISS, found that it is not installed; "
            "pip install 'deep-oversampling[faiss]', or leave it out: the search is then exact"
        ) from None
    return faiss
