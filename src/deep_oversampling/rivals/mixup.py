"""Mixup and remix: images are mixed, and so are their labels.

Zhang, Cisse, Dauphin and Lopez-Paz, mixup, ICLR 2018. Chou, Chang, Pan, Wei and Juan, Remix:
Rebalanced Mixup, ECCV workshops 2020: where one class is much rarer, the label is its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import Tensor

from ..losses import Loss, entropy
from ..network import Network
from ..objectives import Objective
from ..stages import Stage
from .logit_adjustment import logit_adjusted
from .method import Contest, Method, Training
from .retraining import head_stages
from .tables import Mixed, MixedBatch

__all__ = [
    "MIXUP",
    "MIXUP_CRT",
    "MIXUP_LOGIT_ADJUSTMENT",
    "REMIX",
    "adjusted_passes",
    "mixup",
    "remix",
]

# share of the image (b,), its label (b,), that of its partner (b,) -> share of its label (b,)
LabelShare = Callable[[Tensor, Tensor, Tensor], Tensor]


def mixup(loss: Loss = entropy) -> Objective:
    """ℋ for both labels, in the shares of the images."""
    return partial(_mixing, label_share=_as_the_image, loss=loss)


def remix(counts: Tensor, kappa: float = 3.0, tau: float = 0.5) -> Objective:
    """As mixup, but the label is that of a class κ times rarer, if its image has above 1 − τ.

    With shares λ of image i and 1 − λ of image j: λ_y = 0 where m_i ≥ κ m_j and λ < τ, λ_y = 1
    where κ m_i ≤ m_j and 1 − λ < τ, else λ.
    """
    label_share = partial(_rarer, counts=counts, kappa=kappa, tau=tau)
    return partial(_mixing, label_share=label_share, loss=entropy)


def _as_the_image(share: Tensor, y: Tensor, other: Tensor) -> Tensor:
    return share


def _rarer(
    share: Tensor, y: Tensor, other: Tensor, *, counts: Tensor, kappa: float, tau: float
) -> Tensor:
    mine, theirs = (counts.to(y.device)[labels] for labels in (y, other))
    theirs_wins = (mine >= kappa * theirs) & (share < tau)
    mine_wins = (kappa * mine <= theirs) & (1 - share < tau)
    share = torch.where(theirs_wins, torch.zeros_like(share), share)
    return torch.where(mine_wins, torch.ones_like(share), share)


def _mixing(
    network: Network, batch: MixedBatch, *, label_share: LabelShare, loss: Loss
) -> tuple[Tensor, Tensor]:
    x, other = network.normalize(batch.x), batch.y.flip(0)
    share = batch.share.view(-1, *[1] * (x.ndim - 1))
    logits = network.classifier(network.embedder(share * x + (1 - share) * x.flip(0)))
    mine = label_share(batch.share, batch.y, other)
    ell = mine * loss(logits, batch.y) + (1 - mine) * loss(logits, other)
    return ell, torch.zeros_like(ell)


def mixed_passes(contest: Contest, rounds: int, objective: Objective) -> Iterator[Stage]:
    """So many rounds over the samples, mixed anew in each."""
    for t in range(rounds):
        yield Stage("mixed", Mixed.drawn(contest.samples, contest.rng("mix", t)), objective)


def mixup_stages(network: Network, contest: Contest) -> Iterator[Stage]:
    return mixed_passes(contest, contest.initial_rounds + contest.rounds, mixup())


def remix_stages(network: Network, contest: Contest) -> Iterator[Stage]:
    objective = remix(contest.samples.class_counts)
    return mixed_passes(contest, contest.initial_rounds + contest.rounds, objective)


def adjusted_passes(contest: Contest, rounds: int) -> Iterator[Stage]:
    """Mixed rounds with logit adjustment."""
    objective = mixup(logit_adjusted(contest.samples.class_counts, contest.tau))
    return mixed_passes(contest, rounds, objective)


def adjusted_stages(network: Network, contest: Contest) -> Iterator[Stage]:
    return adjusted_passes(contest, contest.initial_rounds + contest.rounds)


def retrained_stages(network: Network, contest: Contest) -> Iterator[Stage]:
    """Mixed images teach f, images as they are g."""
    yield from mixed_passes(contest, contest.before_head, mixup())
    yield from head_stages(network, contest)


MIXUP = Method(
    "mixup", "mixup", "Zhang et al., ICLR 2018", Training("mixup", mixup_stages, begins_as="mixup")
)
MIXUP_LOGIT_ADJUSTMENT = Method(
    "mixup-la",
    "mixup, logit adjustment",
    "Zhang et al., ICLR 2018; Menon et al., ICLR 2021",
    Training("mixup-la", adjusted_stages, begins_as="mixup, logit adjustment"),
)
MIXUP_CRT = Method(
    "mixup-crt",
    "mixup, cRT",
    "Zhang et al., ICLR 2018; Kang et al., ICLR 2020",
    Training("mixup-crt", retrained_stages, begins_as="mixup"),
)
REMIX = Method(
    "remix", "remix", "Chou et al., ECCV workshops 2020", Training("remix", remix_stages)
)
