"""Cross-entropy with a weight for every class."""

from __future__ import annotations

from torch import Tensor
from torch.nn.functional import cross_entropy

from ..losses import Loss

__all__ = ["by_weight", "effective_number", "inverse_frequency", "weighted"]


def weighted(weights: Tensor) -> Loss:  # (n,)
    """ℋ by the weight of the class; over a batch, the weighted mean."""

    def loss(logits: Tensor, labels: Tensor) -> Tensor:
        return by_weight(cross_entropy(logits, labels, reduction="none"), weights, labels)

    return loss


def by_weight(ell: Tensor, weights: Tensor, labels: Tensor) -> Tensor:  # (b,), (n,), (b,) -> (b,)
    """Rows whose plain mean is the weighted mean: as torch's own cross-entropy has it.

    Divided by the number of rows instead, a single rare sample would make a step sixty times as
    long as the others at p = .99, and training is lost.
    """
    weight = weights.to(ell)[labels]
    return ell * weight / weight.mean()


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
    """To read them by: 2 is twice the weight of the average sample."""
    return (weights * counts.sum() / (weights * counts).sum()).float()
