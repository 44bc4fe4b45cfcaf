"""Random over-sampling: rare samples are repeated, exactly as often as DOS presents them."""

from __future__ import annotations

from collections.abc import Iterator

from ..algorithm import deep_over_sampling
from ..network import Network
from ..stages import Stage
from .method import Contest, Method, Training

__all__ = ["RANDOM_OVERSAMPLING"]


def stages(network: Network, contest: Contest) -> Iterator[Stage]:
    """Algorithm 1 with no neighbours: 𝒵′ is 𝒳 with r_j copies."""
    return deep_over_sampling(
        network,
        contest.samples,
        contest.plan.without_neighbours(),
        rounds=contest.rounds,
        initial_rounds=contest.initial_rounds,
        rng=contest.rng,
    )


RANDOM_OVERSAMPLING = Method("ros", "random over-sampling", "folklore", Training("ros", stages))
