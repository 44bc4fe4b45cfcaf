"""TL-RS-CSL: triplet loss on re-sampled triplets, with cost-sensitive classification.

The baseline of Huang, Li, Loy and Tang (CVPR 2016) that the paper compares with. The triplet
loss as in Schroff et al., FaceNet, CVPR 2015: squared distances between unit vectors.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Generator, Tensor
from torch.nn.functional import normalize, relu

from ..network import Network
from ..samples import Samples
from ..stages import Stage
from .method import Contest, Method, Training, passes
from .tables import Grouped
from .weights import inverse_frequency, weighted

__all__ = ["MARGIN", "TL_RS_CSL", "Group", "Triplets", "triplet_objective"]

MARGIN = 0.2  # FaceNet's


@dataclass(frozen=True, eq=False)
class Group:
    """A batch of groups of images that are compared with each other."""

    x: Tensor  # (b · size, …)  group after group
    size: int
    counts: Tensor | None = None  # (b, size − 2)  which comparisons count; None: all

    def with_x(self, x: Tensor) -> Group:
        return replace(self, x=x)

    def embedded(self, network: Network) -> Tensor:  # (b, size, d)
        """Unit vectors."""
        v = normalize(network.embed(self.x), dim=1)
        return v.view(-1, self.size, v.shape[1])


@dataclass(frozen=True, eq=False)
class Triplets:
    """Anchors drawn alike over the classes, each with an image of its class and one of another."""

    samples: Samples
    index: Tensor  # (rows, 3)

    @classmethod
    def drawn(cls, samples: Samples, size: int, generator: Generator) -> Triplets:
        y, classes = samples.y.cpu(), Grouped(samples.y)
        present = classes.present
        anchor = classes.balanced(size, generator)
        positive = classes.one_of(y[anchor], generator, but=anchor)
        # another class: so many places on among those present, in a circle
        places = torch.randint(1, max(2, len(present)), (size,), generator=generator)
        other = present[(torch.searchsorted(present, y[anchor]) + places) % len(present)]
        negative = classes.one_of(other, generator)
        index = torch.stack([anchor, positive, negative], 1)
        return cls(samples, index.to(samples.y.device))

    def __len__(self) -> int:
        return len(self.index)

    def __getitem__(self, rows: Tensor) -> Group:
        return Group(self.samples.x[self.index[rows].flatten(-2)], 3)


def triplet_objective(network: Network, batch: Group) -> tuple[Tensor, Tensor]:
    """max(0, D(a, p) − D(a, n) + margin); there is no classifier in it."""
    a, p, n = batch.embedded(network).unbind(1)
    ell_f = relu((a - p).square().sum(1) - (a - n).square().sum(1) + MARGIN)
    return torch.zeros_like(ell_f), ell_f


def stages(network: Network, contest: Contest) -> Iterator[Stage]:
    """Every round a pass with weights, which teaches g, and one of triplets, which teaches f.

    Together they present as many images as a round of DOS; the triplets at least a pass.
    """
    samples, m = contest.samples, len(contest.samples)
    by_cost = weighted(inverse_frequency(samples.class_counts))
    size = max(1, max(contest.presented - m, m) // 3)
    yield from passes(contest, contest.initial_rounds)
    for t in range(contest.rounds):
        triplets = Triplets.drawn(samples, size, contest.rng("triplets", t))
        yield Stage("triplet", triplets, triplet_objective, images_per_row=3, ends_round=False)
        yield from passes(contest, 1, by_cost)


TL_RS_CSL = Method(
    "tl-rs-csl",
    "TL-RS-CSL",
    "triplet loss, re-sampling and costs, after Huang et al., CVPR 2016",
    Training("tl-rs-csl", stages, begins_as="plain"),
)
