"""LDAM: margins that grow as classes get rarer, on a cosine classifier.

Cao, Wei, Gaidon, Arechiga and Ma, Learning Imbalanced Datasets with Label-Distribution-Aware
Margin Loss, NeurIPS 2019; with deferred re-weighting (DRW).
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, linear, normalize

from ..errors import InputError
from ..losses import Loss
from ..network import Network
from ..stages import Stage
from .method import Contest, Method, Training, passes, with_loss
from .weights import effective_number, weighted

__all__ = ["LDAM_DRW", "SCALE", "CosineHead", "Directions", "ldam", "with_cosine_head"]

SCALE = 30.0  # s, of the cosines
_LARGEST = 0.5  # margin, of the rarest class


def ldam(
    counts: Tensor,  # (n,)
    largest: float = _LARGEST,
    scale: float = SCALE,
) -> Loss:
    """ℋ after the logit of the sample's own class lost s·Δ_y, Δ_j ∝ m_j^(−1/4)."""
    margins = torch.as_tensor(counts).cpu().clamp(min=1).double() ** -0.25
    margins = scale * largest * margins / margins.max()
    return partial(_behind, margins=margins)


def _behind(logits: Tensor, labels: Tensor, *, margins: Tensor) -> Tensor:
    margin = margins.to(logits)[labels].unsqueeze(1)
    behind = logits.scatter_add(1, labels.unsqueeze(1), -margin)
    return cross_entropy(behind, labels, reduction="none")


class CosineHead(nn.Module):
    """s times the cosine between what comes in and the weights of each class."""

    def __init__(self, layer: nn.Linear, scale: float = SCALE) -> None:
        super().__init__()
        # of length 1, as published: the shorter a vector, the further a step turns it
        self.weight = nn.Parameter(normalize(layer.weight.detach(), dim=1))
        self.scale = scale

    def forward(self, v: Tensor) -> Tensor:
        return self.scale * linear(normalize(v, dim=1), normalize(self.weight, dim=1))


class Directions(nn.Module):
    """Vectors of length 1."""

    def forward(self, v: Tensor) -> Tensor:
        return normalize(v, dim=1)


def with_cosine_head(network: Network, scale: float = SCALE) -> Network:
    """The network with its last linear layer replaced; the rest, and its weights, are the same.

    Where that layer is all of g, f ends in directions, which is all that cosines ask for. What ℓ_f
    takes from the length of f(x) nothing would give back otherwise, and the shorter it is, the
    further a step turns it.
    """
    network = copy.deepcopy(network)
    g = network.classifier
    layers = g if isinstance(g, nn.Sequential) and len(g) else nn.Sequential(g)
    if not isinstance(layers[-1], nn.Linear):
        raise InputError(
            "LDAM needs a classifier that ends in a linear layer, to make it one of cosines, found "
            f"{type(g).__name__}; leave the method out"
        )
    layers[-1] = CosineHead(layers[-1], scale)
    network.classifier = layers
    if len(layers) == 1:
        network.embedder = nn.Sequential(network.embedder, Directions())
    return network


def stages(network: Network, contest: Contest) -> Iterator[Stage]:
    """The margins from the start, the weights deferred to the last rounds (DRW)."""
    counts = contest.samples.class_counts
    yield from passes(contest, contest.before_late, with_loss(ldam(counts)))
    yield from passes(contest, contest.late, weighted(effective_number(counts), ldam(counts)))


LDAM_DRW = Method(
    "ldam-drw",
    "LDAM-DRW",
    "Cao et al., NeurIPS 2019",
    Training("ldam-drw", stages, with_cosine_head, begins_as="ldam"),
)
