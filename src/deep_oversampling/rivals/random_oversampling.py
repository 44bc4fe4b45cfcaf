"""Random over-sampling, exactly as often as DOS presents rare samples, or equally by class."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from ..network import Network
from ..objectives import single_task
from ..stages import Stage
from .method import Contest, Method, Training, passes
from .tables import Redrawn, class_balanced

__all__ = ["DEFERRED_RESAMPLING", "RANDOM_OVERSAMPLING"]


def stages(network: Network, contest: Contest) -> Iterator[Stage]:
    """𝒵′ without neighbours is 𝒳 with r_j copies: nothing to embed, nothing to search."""
    samples = contest.samples
    times = contest.plan.r.to(samples.y.device)[samples.y]
    index = torch.arange(len(samples), device=samples.y.device).repeat_interleave(times)
    yield from passes(contest, contest.initial_rounds)
    for _ in range(contest.rounds):
        yield Stage("single", Redrawn(samples, index), single_task)


def balanced(network: Network, contest: Contest) -> Iterator[Stage]:
    """Deferred re-sampling: plain first, then m draws that are equal over the classes."""
    samples = contest.samples
    yield from passes(contest, contest.before_late)
    for t in range(contest.late):
        index = class_balanced(samples.y, len(samples), contest.rng("balanced", t))
        yield Stage("single", Redrawn(samples, index.to(samples.y.device)), single_task)


RANDOM_OVERSAMPLING = Method(
    "ros", "random over-sampling", "folklore", Training("ros", stages, begins_as="plain")
)
DEFERRED_RESAMPLING = Method(
    "drs",
    "deferred re-sampling",
    "Cao et al., NeurIPS 2019",
    Training("drs", balanced, begins_as="plain"),
)
