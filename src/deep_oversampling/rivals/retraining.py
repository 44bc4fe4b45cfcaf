"""Classifier re-training (cRT): features first, then a new classifier on balanced batches.

Kang et al., Decoupling Representation and Classifier for Long-Tailed Recognition, ICLR 2020.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from ..losses import entropy
from ..network import Network, embed
from ..samples import Samples
from ..seeding import Streams, isolated
from ..stages import Stage
from .method import Contest, Method, Training, passes
from .smote import imbalanced_learn, with_smote
from .tables import Redrawn, class_balanced

__all__ = ["CRT", "EMBEDDING_SMOTE", "behind_fixed", "head_only", "head_stages", "start_head_anew"]


def start_head_anew(network: Network, rng: Streams) -> None:
    """New initial weights for g; f is left as it was learned."""

    def reset(module: nn.Module) -> None:
        if isinstance(module, nn.Linear):
            module.reset_parameters()

    with isolated(rng("new head")):
        network.classifier.apply(reset)


def head_only(network: Network, batch: Samples) -> tuple[Tensor, Tensor]:
    """ℋ(g(v), y) of embeddings that were computed before: only g learns."""
    ell = entropy(network.classifier(batch.x), batch.y)
    return ell, torch.zeros_like(ell)


def behind_fixed(network: Network, batch: Samples) -> tuple[Tensor, Tensor]:
    """ℋ(g(f(x)), y) with f as it is in use: images may be augmented, and only g learns."""
    network.embedder.eval()  # its batch norm stays as it was learned
    with torch.no_grad():
        v = network.embedder(network.normalize(batch.x))
    ell = entropy(network.classifier(v), batch.y)
    return ell, torch.zeros_like(ell)


def stages(network: Network, contest: Contest) -> Iterator[Stage]:
    yield from passes(contest, contest.before_head)
    yield from head_stages(network, contest)


def head_stages(network: Network, contest: Contest) -> Iterator[Stage]:
    """What follows when f has been trained."""
    samples = contest.samples
    start_head_anew(network, contest.rng)
    for t in range(contest.head_rounds or contest.rounds):
        index = class_balanced(samples.y, contest.presented, contest.rng("balanced", t))
        table = Redrawn(samples, index.to(samples.y.device))
        yield Stage("head", table, behind_fixed, starts_anew=t == 0)


def smote_stages(network: Network, contest: Contest) -> Iterator[Stage]:
    """SMOTE among the embeddings, and the head trained again on the result."""
    imbalanced_learn()  # is there, or nothing is trained in vain
    yield from passes(contest, contest.before_head)
    made = with_smote(_embedded(network, contest.samples), contest.plan, contest.rng)
    start_head_anew(network, contest.rng)
    for t in range(contest.head_rounds or contest.rounds):
        yield Stage("head", made, head_only, starts_anew=t == 0, augmented=False)


def _embedded(network: Network, samples: Samples) -> Samples:
    return Samples(embed(network, samples.x), samples.y, samples.classes)


CRT = Method("crt", "cRT", "Kang et al., ICLR 2020", Training("crt", stages, begins_as="plain"))
EMBEDDING_SMOTE = Method(
    "embedding-smote",
    "SMOTE of embeddings",
    "after Dablain et al., 2022",
    Training("embedding-smote", smote_stages, begins_as="plain"),
)
