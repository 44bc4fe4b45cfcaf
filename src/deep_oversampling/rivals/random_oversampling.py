"""Random over-sampling: rare samples are repeated, exactly as often as DOS presents them."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from ..network import Network
from ..objectives import single_task
from ..stages import Stage
from .method import Contest, Method, Training, passes
from .tables import Redrawn

__all__ = ["RANDOM_OVERSAMPLING"]


def stages(network: Network, contest: Contest) -> Iterator[Stage]:
    """𝒵′ without neighbours is 𝒳 with r_j copies: nothing to embed, nothing to search."""
    samples = contest.samples
    times = contest.plan.r.to(samples.y.device)[samples.y]
    index = torch.arange(len(samples), device=samples.y.device).repeat_interleave(times)
    yield from passes(contest, contest.initial_rounds)
    for _ in range(contest.rounds):
        yield Stage("single", Redrawn(samples, index), single_task)


RANDOM_OVERSAMPLING = Method("ros", "random over-sampling", "folklore", Training("ros", stages))
