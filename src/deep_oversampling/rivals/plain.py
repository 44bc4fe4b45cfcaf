"""The plain CNN, and classical classifiers on its embeddings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..metrics import Report, measure
from ..network import Network, embed
from ..probes import logistic_regression, neighbour_votes
from ..samples import Samples
from ..stages import Stage
from .method import Contest, Method, Training, passes

__all__ = ["CNN", "CNN_CL"]


def stages(network: Network, contest: Contest) -> Iterator[Stage]:
    yield from passes(contest, contest.initial_rounds + contest.rounds)


def by_classifiers(network: Network, train: Samples, test: Samples) -> Report:
    """AUPRC by logistic regression, the rest by the nearest neighbours, as the paper says."""
    v, queries = embed(network, train.x), embed(network, test.x)
    votes = neighbour_votes(v, train.y, queries, train.n)
    p = logistic_regression(v, train.y, train.n).probabilities(queries)
    return replace(measure(votes, test.y), auprc=measure(p, test.y).auprc)


_TRAINING = Training("cnn", stages)
CNN = Method("cnn", "CNN", "plain training", _TRAINING)
CNN_CL = Method("cnn-cl", "CNN-CL", "Ando and Huang, 2017", _TRAINING, by_classifiers)
