"""Classical classifiers on frozen embeddings: the paper's CNN-CL, DOS-LR and DOS-kNN."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from .network import Network, embed
from .samples import Samples

__all__ = ["knn_probe", "logistic_probe"]


def knn_probe(
    network: Network, train: Samples, test: Samples, *, k: int = 5
) -> NDArray[np.float64]:
    """P(C|x) of the test samples by their k nearest training embeddings, shape (m, n)."""
    k = min(k, len(train))
    return _probe(KNeighborsClassifier(n_neighbors=k), network, train, test)


def logistic_probe(network: Network, train: Samples, test: Samples) -> NDArray[np.float64]:
    """P(C|x) of the test samples by logistic regression on the embeddings, shape (m, n)."""
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    return _probe(model, network, train, test)


def _probe(model, network: Network, train: Samples, test: Samples) -> NDArray[np.float64]:  # type: ignore[no-untyped-def]
    model.fit(embed(network, train.x).cpu().numpy(), train.y.cpu().numpy())
    found = model.predict_proba(embed(network, test.x).cpu().numpy())
    probabilities = np.zeros((len(test), train.n))  # a class without training samples stays at 0
    probabilities[:, model.classes_] = found
    return probabilities
