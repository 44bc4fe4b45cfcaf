"""Cross-entropy with a weight for every class."""

from __future__ import annotations

from torch import Tensor
from torch.nn.functional import cross_entropy

from ..losses import Loss

__all__ = ["effective_number", "inverse_frequency", "weighted"]


def weighted(weights: Tensor) -> Loss:  # (n,)
    """ℋ times the weight of the class. A batch is averaged by its rows, not by their weights."""

    def loss(logits: Tensor, labels: Tensor) -> Tensor:
        weight = weights.to(logits)
        return weight[labels] * cross_entropy(logits, labels, reduction="none")

    return loss


def inverse_frequency(counts: Tensor) -> Tensor:  # (n,) -> (n,)
    """1/m_j, scaled so that the training set's weights have the mean 1.

    >>> import torch
    >>> inverse_frequency(torch.tensor([30, 10])).tolist()
    [0.666..., 2.0]
    """
    return _mean_one(1 / counts.clamp(min=1).double(), counts)


def effective_number(counts: Tensor, beta: float = 0.9999) -> Tensor:  # (n,) -> (n,)
    """The inverse of the effective number of samples, (1 − β^m_j) / (1 − β).

    Cui, Jia, Lin, Song and Belongie, Class-Balanced Loss, CVPR 2019. β = 0 weighs all alike,
    β → 1 by the inverse frequency.
    """
    return _mean_one((1 - beta) / (1 - beta ** counts.clamp(min=1).double()), counts)


def _mean_one(weights: Tensor, counts: Tensor) -> Tensor:
    """So that the learning rate means the same with weights as without."""
    return (weights * counts.sum() / (weights * counts).sum()).float()
