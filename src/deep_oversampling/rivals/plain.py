"""The plain CNN, and classical classifiers on its embeddings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..metrics import Report, measure
from ..network import Network
from ..probes import knn_probe, logistic_probe
from ..samples import Samples
from ..stages import Stage
from .method import Contest, Method, Training, passes

__all__ = ["CNN", "CNN_CL"]


def stages(network: Network, contest: Contest) -> Iterator[Stage]:
    yield from passes(contest, contest.initial_rounds + contest.rounds)


def by_classifiers(network: Network, train: Samples, test: Samples) -> Report:
    """AUPRC by logistic regression, the rest by the nearest neighbours, as the paper says."""
    report = measure(knn_probe(network, train, test), test.y)
    return replace(report, auprc=measure(logistic_probe(network, train, test), test.y).auprc)


_TRAINING = Training("cnn", stages)
CNN = Method("cnn", "CNN", "plain training", _TRAINING)
CNN_CL = Method("cnn-cl", "CNN-CL", "Ando and Huang, 2017", _TRAINING, by_classifiers)
