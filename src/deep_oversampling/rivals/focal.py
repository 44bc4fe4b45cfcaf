"""Focal loss: what is classified well already counts little.

Lin, Goyal, Girshick, He and Dollár, Focal Loss for Dense Object Detection, ICCV 2017.
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

__all__ = ["FOCAL", "focal"]


def focal(gamma: float = 2.0) -> Loss:
    """(1 − p_y)^γ · −log p_y; γ = 0 is the cross-entropy."""
    return partial(_focal, gamma=gamma)


def _focal(logits: Tensor, labels: Tensor, *, gamma: float) -> Tensor:
    ell = cross_entropy(logits, labels, reduction="none")
    # 1 − p; not 0, where its power has no slope if γ < 1
    wrong = -torch.expm1(-ell).clamp(max=-torch.finfo(ell.dtype).tiny)
    return wrong**gamma * ell


def stages(network: Network, contest: Contest) -> Iterator[Stage]:
    return passes(contest, contest.initial_rounds + contest.rounds, with_loss(focal()))


FOCAL = Method("focal", "focal loss", "Lin et al., ICCV 2017", Training("focal", stages))
