"""The neighbour search against others that are exact too, with as many threads."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from sklearn.neighbors import NearestNeighbors
from torch import Tensor

from ..overloading import in_class_neighbors
from .material import vectors
from .records import Note, Record, Setting, figure
from .sizes import Sizes
from .timing import fastest

__all__ = ["DIMENSIONS", "by_faiss", "by_scikit_learn", "figures", "of_one_class"]

_PART = "search"
_K = 10
DIMENSIONS = 120  # d: the LeNet's


def figures(device: torch.device, sizes: Sizes) -> Iterator[Record | Note]:
    """The k nearest of every sample of one class."""
    faiss = _faiss()
    if faiss is None:
        yield Note(_PART, "FAISS is not installed, so it is left out (pip install faiss-cpu)")
    for m in sizes.search:
        v = vectors(m, DIMENSIONS, device)
        array = v.cpu().numpy()
        actions: dict[str, Callable[[], object]] = {
            "ours": partial(of_one_class, v, _K),
            "scikit-learn, brute force": partial(by_scikit_learn, array, _K),
        }
        if faiss is not None:
            actions["FAISS, flat"] = partial(by_faiss, faiss, array, _K)
        ours = None
        for name, value in fastest(actions, device, repeats=sizes.repeats).items():
            one = figure(_PART, name, _setting(m), value, "s", to=ours)
            ours = ours or one
            yield one
    for m in sizes.search_alone:
        alone = {"ours": partial(of_one_class, vectors(m, DIMENSIONS, device), _K)}
        value = fastest(alone, device, repeats=sizes.repeats)["ours"]
        yield figure(_PART, "ours", _setting(m), value, "s")


def _setting(m: int) -> Setting:
    return {"m": m, "d": DIMENSIONS, "k": _K}


def of_one_class(v: Tensor, k: int) -> Tensor:  # (m, d) -> (m, k)
    y = torch.zeros(len(v), dtype=torch.long, device=v.device)
    return in_class_neighbors(v, y, torch.tensor([k])).index[:, 1:]


def by_scikit_learn(v: Any, k: int) -> Any:  # (m, d) -> (m, k)
    model = NearestNeighbors(n_neighbors=k, algorithm="brute").fit(v)
    return model.kneighbors(return_distance=False)  # without a query: not itself


def by_faiss(faiss: Any, v: Any, k: int) -> Any:  # (m, d) -> (m, k+1), itself among them
    faiss.omp_set_num_threads(torch.get_num_threads())
    index = faiss.IndexFlatL2(v.shape[1])
    index.add(v)
    return index.search(v, k + 1)[1]


def _faiss() -> Any:
    try:
        return importlib.import_module("faiss")
    except ImportError:
        return None
