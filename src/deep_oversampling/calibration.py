"""How certain a network may sound: one temperature, fitted on samples it was not trained on."""

from __future__ import annotations

import math

from torch import Tensor

from .errors import InputError

__all__ = ["temperature"]

_WIDEST = 1e4  # T is looked for between the logits' spread over this and times this
_HALVINGS = 60


def temperature(
    logits: Tensor,  # (m, n)
    labels: Tensor,  # (m,)
) -> float:
    """The T > 0 for which softmax(logits / T) gives the labels the greatest likelihood.

    The mean negative log-likelihood is convex in 1/T, so its slope, the mean of z_y − Σ p_j z_j,
    changes its sign once. Where it does not, because every sample is right or most are wrong,
    the labels do not say how certain to be, and T is 1.

    >>> import torch
    >>> logits = torch.tensor([[4.0, 0.0]] * 10)
    >>> found = temperature(logits, torch.tensor([0] * 9 + [1]))  # right nine times out of ten
    >>> round(float((logits[0] / found).softmax(0)[0]), 6)
    0.9
    """
    if logits.ndim != 2 or not len(logits) or labels.shape != logits.shape[:1]:
        raise InputError(
            "logits must have a row for each of one or more samples, and labels a class for each, "
            f"found shapes {tuple(logits.shape)} and {tuple(labels.shape)}"
        )
    z = logits.detach().cpu().double()
    z = z - z.mean(1, keepdim=True)  # which changes no probability
    scale = float(z.std(correction=0))
    if not scale > 0 or not bool(z.isfinite().all()):  # all alike, or none that are numbers
        return 1.0
    z, y = z / scale, labels.detach().cpu().long().unsqueeze(1)  # so T follows the logits' scale

    def slope(b: float) -> float:  # of the mean log-likelihood, at 1/T = b
        p = (z * b).softmax(1)
        return float((z.gather(1, y).squeeze(1) - (p * z).sum(1)).mean())

    low, high = 1 / _WIDEST, _WIDEST
    if slope(low) <= 0 or slope(high) >= 0:
        return 1.0
    for _ in range(_HALVINGS):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if slope(middle) > 0 else (low, middle)
    return scale / math.sqrt(low * high)
