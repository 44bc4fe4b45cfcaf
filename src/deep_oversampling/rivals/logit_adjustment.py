"""Logit adjustment: rare classes must win by a margin in training, and are free of it in use.

Menon et al., Long-tail Learning via Logit Adjustment, ICLR 2021. With τ = 1 it is the balanced
softmax of Ren et al., NeurIPS 2020. The same publication adjusts a network that was trained
without it, when it is used.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from ..errors import InputError
from ..losses import Loss, adjusted
from ..metrics import Report
from ..network import Network, predict
from ..stages import Stage
from .method import Contest, Method, Trained, Training, passes, with_loss
from .plain import CNN

__all__ = ["ADJUSTED_AFTERWARDS", "LOGIT_ADJUSTMENT", "adjusted_afterwards", "logit_adjusted"]


def logit_adjusted(counts: Tensor, tau: float = 1.0) -> Loss:  # (n,)
    """ℋ of the logits plus τ log π, π the classes' shares of the training set."""
    return adjusted(partial(cross_entropy, reduction="none"), counts, tau)


def stages(network: Network, contest: Contest) -> Iterator[Stage]:
    loss = logit_adjusted(contest.samples.class_counts, contest.tau)
    return passes(contest, contest.initial_rounds + contest.rounds, with_loss(loss))


def adjusted_afterwards(
    p: Tensor,  # (m, n)  P(C|x)
    counts: Tensor,  # (n,)  samples per class, in training
    tau: float = 1.0,
) -> Tensor:  # (m, n)
    """P(C|x) / π^τ, scaled to 1: with τ = 1 what it would be, were all classes as frequent.

    A margin that training lacks, or has too much of (τ < 0), to be chosen by validation samples.
    """
    p, counts = torch.as_tensor(p), torch.as_tensor(counts)
    if p.ndim != 2 or counts.shape != p.shape[1:]:
        raise InputError(
            "p must be (samples, classes) and counts one number per class, found shapes "
            f"{tuple(p.shape)} and {tuple(counts.shape)}"
        )
    if not math.isfinite(tau) or not bool(((p >= 0) & (p <= 1.001)).all()):
        raise InputError(
            "p must be probabilities, such as predict gives, and tau finite, found numbers from "
            f"{float(p.min()):g} to {float(p.max()):g} and tau {tau}"
        )
    counts = counts.clamp(min=1)  # who was never trained on has no share
    prior = (counts / counts.sum()).to(p)
    return (p.log() - tau * prior.log()).softmax(1)


def by_adjusted_softmax(trained: Sequence[Trained]) -> list[Report]:
    """What the networks would say if all classes were as frequent, with τ = 1."""
    found = [(one, predict(one.network, one.test.x)) for one in trained]
    return [
        one.measured(adjusted_afterwards(p, one.train.class_counts, one.tau)) for one, p in found
    ]


LOGIT_ADJUSTMENT = Method(
    "logit-adjustment",
    "logit adjustment",
    "Menon et al., ICLR 2021",
    Training("logit-adjustment", stages, begins_as="logit adjustment"),
)
ADJUSTED_AFTERWARDS = Method(
    "cnn-adjusted",
    "CNN, adjusted afterwards",
    "Menon et al., ICLR 2021",
    CNN.training,
    by_adjusted_softmax,
)
