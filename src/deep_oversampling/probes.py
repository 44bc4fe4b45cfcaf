"""Classical classifiers on frozen embeddings: the paper's CNN-CL, DOS-LR and DOS-kNN."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.neighbors import KNeighborsClassifier
from torch import Tensor

from .errors import InputError
from .logistic import logistic_regression, logistic_regressions
from .network import Network, embed
from .samples import Samples

__all__ = ["knn_probe", "logistic_probe", "logistic_probe_all", "neighbour_votes"]


def knn_probe(
    network: Network, train: Samples, test: Samples, *, k: int = 5
) -> NDArray[np.float64]:
    """P(C|x) of the test samples by their k nearest training embeddings, shape (m, n)."""
    v, queries = embed(network, train.x), embed(network, test.x)
    return neighbour_votes(v, train.y, queries, train.n, k=k).cpu().numpy()


def logistic_probe(network: Network, train: Samples, test: Samples) -> NDArray[np.float64]:
    """P(C|x) of the test samples by logistic regression on the embeddings, shape (m, n)."""
    v, queries = embed(network, train.x), embed(network, test.x)
    model = logistic_regression(v, train.y, train.n)
    return model.probabilities(queries).cpu().numpy()


def logistic_probe_all(
    members: Sequence[tuple[Tensor, Tensor]],  # E times (m, d) and (m,): embeddings and labels
    queries: Sequence[Tensor],  # E times (q, d)
    n: int,
) -> list[Tensor]:  # E times (q, n)
    """P(C|x) of the queries of E networks, by a logistic regression on the embeddings of each."""
    models = logistic_regressions(members, n)
    return [model.probabilities(q) for model, q in zip(models, queries, strict=True)]


def neighbour_votes(
    v: Tensor,  # (m, d)  embeddings
    y: Tensor,  # (m,)
    queries: Tensor,  # (q, d)
    n: int,
    *,
    k: int = 5,
) -> Tensor:  # (q, n)
    """The shares of the classes among the k nearest embeddings, all of them if there are fewer.

    Of embeddings that are equally far, any may be the k-th. The search is exact: scikit-learn's on
    the CPU, where it is the fastest (and has trees for few dimensions), else by blocks of distances
    on the device.
    """
    if k < 1:
        raise InputError(f"k must be 1 or more, found {k}")
    k = min(k, len(v))
    if v.device.type not in ("cpu", "mps"):  # which has no float64
        return _votes_by_blocks(v.double(), y.to(v.device), queries.double(), n, k)
    model = KNeighborsClassifier(n_neighbors=k).fit(v.cpu().numpy(), y.cpu().numpy())
    votes = torch.zeros(len(queries), n, dtype=torch.float64)  # none for a class without samples
    votes[:, model.classes_] = torch.from_numpy(model.predict_proba(queries.cpu().numpy())).double()
    return votes


def _votes_by_blocks(
    v: Tensor, y: Tensor, queries: Tensor, n: int, k: int, memory: int = 256 * 2**20
) -> Tensor:
    # ‖a − b‖² without ‖a‖², as in overloading.py: centred, since the formula loses small distances
    # beside large norms
    mean = v.mean(0)
    v, queries = v - mean, queries - mean
    norms = v.square().sum(1)
    votes = v.new_zeros(len(queries), n)
    step = max(1, memory // (len(v) * v.element_size()))
    for part, counted in zip(queries.split(step), votes.split(step), strict=True):
        distances = torch.addmm(norms, part, v.T, alpha=-2)  # (step, m)
        nearest = distances.topk(k, largest=False, sorted=False).indices
        counted.scatter_add_(1, y[nearest], counted.new_ones(1, 1).expand(len(part), k))
    return votes / k
