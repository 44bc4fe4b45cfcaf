"""Classes by weight: the loss of a batch is the weighted mean of its rows."""

from __future__ import annotations

from functools import partial

from torch import Tensor

from ..losses import Loss, entropy
from ..network import Network
from ..objectives import Objective, single_task
from ..samples import Samples

__all__ = ["effective_number", "inverse_frequency", "weighted"]


def weighted(weights: Tensor, loss: Loss = entropy) -> Objective:  # (n,)
    """Single-task training by the weights of the classes, as torch's cross-entropy has them.

    Divided by the number of rows instead of by their weights, a single rare sample would make a
    step sixty times as long as the others at p = .99, and training is lost.
    """
    return partial(_weighted, weights=weights, loss=loss)


def _weighted(
    network: Network, batch: Samples, *, weights: Tensor, loss: Loss
) -> tuple[Tensor, ...]:
    ell, nothing = single_task(network, batch, loss=loss)
    return ell, nothing, weights.to(ell)[batch.y]


def inverse_frequency(counts: Tensor) -> Tensor:  # (n,) -> (n,)
    """1/m_j, scaled so that the training set's weights have the mean 1.

    >>> import torch
    >>> inverse_frequency(torch.tensor([30, 10])).tolist()
    [0.666..., 2.0]
    """
    return _mean_one(1 / counts.cpu().clamp(min=1).double(), counts)


def effective_number(counts: Tensor, beta: float = 0.9999) -> Tensor:  # (n,) -> (n,)
    """The inverse of the effective number of samples, (1 − β^m_j) / (1 − β).

    Cui, Jia, Lin, Song and Belongie, Class-Balanced Loss, CVPR 2019. β = 0 weighs all alike,
    β → 1 by the inverse frequency.
    """
    return _mean_one((1 - beta) / (1 - beta ** counts.cpu().clamp(min=1).double()), counts)


def _mean_one(weights: Tensor, counts: Tensor) -> Tensor:
    """To read them by: 2 is twice the weight of the average sample."""
    counts = counts.cpu()
    return (weights * counts.sum() / (weights * counts).sum()).float()
