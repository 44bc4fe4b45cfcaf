"""Logit adjustment: rare classes must win by a margin in training, and are free of it in use.

Menon et al., Long-tail Learning via Logit Adjustment, ICLR 2021. With τ = 1 it is the balanced
softmax of Ren et al., NeurIPS 2020.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from ..losses import Loss
from ..network import Network
from ..stages import Stage
from .method import Contest, Method, Training, passes, with_loss

__all__ = ["LOGIT_ADJUSTMENT", "logit_adjusted"]


def logit_adjusted(counts: Tensor, tau: float = 1.0) -> Loss:  # (n,)
    """ℋ of the logits plus τ log π, π the classes' shares of the training set."""
    shares = counts.cpu().double() / counts.sum().cpu()
    offset = tau * shares.clamp(min=torch.finfo(torch.float32).tiny).log()
    return partial(_adjusted, offset=offset)


def _adjusted(logits: Tensor, labels: Tensor, *, offset: Tensor) -> Tensor:
    return cross_entropy(logits + offset.to(logits), labels, reduction="none")


def stages(network: Network, contest: Contest) -> Iterator[Stage]:
    loss = logit_adjusted(contest.samples.class_counts)
    return passes(contest, contest.initial_rounds + contest.rounds, with_loss(loss))


LOGIT_ADJUSTMENT = Method(
    "logit-adjustment",
    "logit adjustment",
    "Menon et al., ICLR 2021",
    Training("logit-adjustment", stages),
)
