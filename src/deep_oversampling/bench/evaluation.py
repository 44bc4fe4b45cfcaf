"""Measures and probes against scikit-learn's, from the same network and samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, precision_recall_fscore_support
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import Tensor

from ..fitting import fit
from ..metrics import measure
from ..models import small_network
from ..network import Network, embed, predict
from ..probes import knn_probe, logistic_probe
from ..samples import Samples
from .material import NEIGHBOURS, images, rare
from .records import Record, Setting, figure
from .sizes import Sizes
from .timing import fastest

__all__ = ["figures", "measured_by_scikit_learn", "neighbours_model", "probed", "regression"]

_PART = "evaluation"


def figures(device: torch.device, sizes: Sizes) -> Iterator[Record]:
    """What follows a training, for one network."""
    shape = (1, sizes.side, sizes.side)
    train, plan = rare(sizes.majority, shape, share=0.01)
    test = images([sizes.test // train.n] * train.n, shape, seed=1).to(device)
    network, train = small_network(train).to(device), train.to(device)
    fit(network, train, plan, rounds=1, device=device)  # embeddings as they are after training
    p = predict(network, test.x)
    pairs: dict[str, tuple[Callable[[], object], Callable[[], object]]] = {
        "measures": (
            lambda: measure(p, test.y),
            lambda: measured_by_scikit_learn(p, test.y),
        ),
        "kNN probe": (
            lambda: knn_probe(network, train, test),
            lambda: probed(neighbours_model(), network, train, test),
        ),
        "logistic probe": (
            lambda: logistic_probe(network, train, test),
            lambda: probed(regression(), network, train, test),
        ),
    }
    setting: Setting = {"train": len(train), "test": len(test)}
    for what, (ours, theirs) in pairs.items():
        seconds = fastest({"ours": ours, "theirs": theirs}, device, repeats=sizes.repeats)
        own = figure(_PART, what, setting, seconds["ours"], "s")
        yield own
        yield figure(_PART, f"{what}, scikit-learn", setting, seconds["theirs"], "s", to=own)


def measured_by_scikit_learn(probabilities: Tensor, y: Tensor) -> NDArray[np.float64]:  # (4, n)
    p, truth = probabilities.cpu().numpy(), y.cpu().numpy()
    labels = np.arange(p.shape[1])
    first = precision_recall_fscore_support(truth, p.argmax(1), labels=labels, zero_division=0.0)
    auprc = [average_precision_score(truth == j, p[:, j]) for j in labels]
    return np.stack([*first[:3], auprc])


def neighbours_model() -> Any:
    return KNeighborsClassifier(n_neighbors=NEIGHBOURS)


def regression() -> Any:
    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))


def probed(
    model: Any, network: Network, train: Samples, test: Samples
) -> NDArray[np.float64]:  # (m, n)
    model.fit(embed(network, train.x).cpu().numpy(), train.y.cpu().numpy())
    found: NDArray[np.float64] = model.predict_proba(embed(network, test.x).cpu().numpy())
    return found
