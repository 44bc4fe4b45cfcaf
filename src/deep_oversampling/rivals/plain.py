"""The plain CNN, and classical classifiers on its embeddings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ..metrics import Report
from ..network import Network
from ..probes import logistic_probe_all, neighbour_votes
from ..stages import Stage
from .method import Contest, Method, Trained, Training, passes

__all__ = ["CNN", "CNN_CL"]


def stages(network: Network, contest: Contest) -> Iterator[Stage]:
    yield from passes(contest, contest.initial_rounds + contest.rounds)


def by_neighbours(trained: Sequence[Trained]) -> list[Report]:
    reports = []
    for one in trained:
        v, queries = one.embedded
        votes = neighbour_votes(v, one.train.y, queries, one.train.n)
        reports.append(one.measured(votes))
    return reports


def by_logistic_regression(trained: Sequence[Trained]) -> list[Report]:
    v, queries = zip(*(one.embedded for one in trained), strict=True)
    labelled = [(own, one.train.y) for own, one in zip(v, trained, strict=True)]
    found = logistic_probe_all(labelled, queries, trained[0].train.n)
    return [one.measured(p) for p, one in zip(found, trained, strict=True)]


def by_classifiers(trained: Sequence[Trained]) -> list[Report]:
    """AUPRC by logistic regression, the rest by the nearest neighbours, as the paper says."""
    both = zip(by_neighbours(trained), by_logistic_regression(trained), strict=True)
    return [replace(report, auprc=other.auprc) for report, other in both]


_TRAINING = Training("cnn", stages, begins_as="plain")
CNN = Method("cnn", "CNN", "plain training", _TRAINING)
CNN_CL = Method("cnn-cl", "CNN-CL", "Ando and Huang, 2017", _TRAINING, by_classifiers)
