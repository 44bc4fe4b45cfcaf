"""Inverse-frequency weights, and the class-balanced loss, which weighs by effective numbers.

Cui, Jia, Lin, Song and Belongie, Class-Balanced Loss Based on Effective Number of Samples,
CVPR 2019.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..network import Network
from ..stages import Stage
from .method import Contest, Method, Training, passes
from .weights import effective_number, inverse_frequency, weighted

__all__ = ["CLASS_BALANCED", "DEFERRED", "INVERSE_FREQUENCY"]


def by_frequency(network: Network, contest: Contest) -> Iterator[Stage]:
    objective = weighted(inverse_frequency(contest.samples.class_counts))
    return passes(contest, contest.initial_rounds + contest.rounds, objective)


def by_effective_number(network: Network, contest: Contest) -> Iterator[Stage]:
    objective = weighted(effective_number(contest.samples.class_counts))
    return passes(contest, contest.initial_rounds + contest.rounds, objective)


def deferred(network: Network, contest: Contest) -> Iterator[Stage]:
    """Plain first, the weights in the last rounds."""
    yield from passes(contest, contest.before_late)
    objective = weighted(effective_number(contest.samples.class_counts))
    yield from passes(contest, contest.late, objective)


INVERSE_FREQUENCY = Method(
    "weights", "inverse frequency", "folklore", Training("weights", by_frequency)
)
CLASS_BALANCED = Method(
    "class-balanced",
    "class-balanced loss",
    "Cui et al., CVPR 2019",
    Training("class-balanced", by_effective_number),
)
DEFERRED = Method(
    "drw",
    "deferred re-weighting",
    "Cui et al., CVPR 2019; Cao et al., NeurIPS 2019",
    Training("drw", deferred, begins_as="plain"),
)
