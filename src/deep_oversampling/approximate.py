"""Almost the nearest points of a class: for classes too large to compare everyone with everyone."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from .errors import InputError

__all__ = ["approximately_nearest"]

_PROBES = 8  # cells that are searched for a point
_LEARNED_FROM = 256  # points for each cell; FAISS takes no more
_BLOCK = 2**16  # points that are copied at once


def approximately_nearest(
    v: Tensor,  # (m, d)
    rows: Tensor,  # (m_j,)  the class
    k: int,
    asked: slice = slice(None),  # of the class: for whom neighbours are wanted
) -> Tensor:  # (asked, k)  rows of v
    """The nearest in the cells around every point; k-means makes √m_j cells (FAISS, IVF).

    Beside the result it takes a copy of the class in half precision, which is FAISS's own.
    """
    faiss = _faiss()
    m, d = len(rows), v.shape[1]
    cells = math.isqrt(m)
    every = -(-m // (_LEARNED_FROM * cells))
    centre = v[rows[::every]].mean(0)
    width = float(v.amax()) - float(v.amin()) or 1.0  # half precision ends at 65,504

    def points(some: Tensor) -> Any:  # places in the class
        return v[rows[some]].sub_(centre).div_(width).float().cpu().numpy()

    half = faiss.ScalarQuantizer.QT_fp16
    index = faiss.IndexIVFScalarQuantizer(faiss.IndexFlatL2(d), d, cells, half)  # of a fixed seed
    everyone = torch.arange(m, device=v.device)
    index.train(points(everyone[::every]))
    for part in everyone.split(_BLOCK):
        index.add(points(part))
    wanted = everyone[asked]
    found = torch.empty(len(wanted), k, dtype=torch.long)
    for part, answer in zip(wanted.split(_BLOCK), found.split(_BLOCK), strict=True):
        answer.copy_(_others(index, points(part), part.cpu(), k))
    return rows[found.to(v.device)]


def _others(index: Any, points: Any, own: Tensor, k: int) -> Tensor:  # (b, k)
    """The k nearest of each point but itself."""
    index.nprobe = min(_PROBES, index.nlist)
    found = torch.from_numpy(index.search(points, k + 1)[1])
    few = (found < 0).any(1)  # the cells have not got as many
    if bool(few.any()):
        index.nprobe = index.nlist
        found[few] = torch.from_numpy(index.search(points[few.numpy()], k + 1)[1])
    itself = found == own.unsqueeze(1)
    itself[:, -1] |= ~itself.any(1)  # copies of a point can leave it no room: then without the last
    return found[~itself].view(-1, k)


def _faiss() -> Any:
    try:
        import faiss
    except ImportError as error:
        raise InputError(
            f"approximate_above needs FAISS, found that it cannot be imported ({error}); "
            "pip install 'deep-oversampling[faiss]', or leave it out: the search is then exact"
        ) from None
    return faiss
