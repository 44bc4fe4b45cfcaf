"""Whether a probability can be taken at its word, before and after temperature scaling."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..calibration import temperature
from .checks import METHODS
from .story import Story

__all__ = ["bins", "calibration_error", "reliability", "scaled", "tempered"]

_BINS = 15
_SMALLEST = float(np.finfo(np.float32).tiny)  # below it a float32 probability is 0

Floats = NDArray[np.floating[Any]]
Labels = NDArray[np.int64]


def bins(p: Floats, labels: Labels, count: int = _BINS) -> dict[str, list[float]]:
    """Predictions by confidence, in bins of equal width: mean confidence, accuracy, share.

    Empty bins are left out.
    """
    confidence, correct = p.max(1).astype(np.float64), p.argmax(1) == labels
    place = np.minimum((confidence * count).astype(int), count - 1)
    sizes = np.bincount(place, minlength=count)
    there = sizes > 0
    sums = (np.bincount(place, values, count)[there] for values in (confidence, correct))
    mean, accuracy = (total / sizes[there] for total in sums)
    return {
        "confidence": mean.tolist(),
        "accuracy": accuracy.tolist(),
        "share": (sizes[there] / len(labels)).tolist(),
    }


def calibration_error(p: Floats, labels: Labels, count: int = _BINS) -> float:
    """ECE: how far accuracy is from confidence, on the average over the predictions."""
    found = bins(p, labels, count)
    gaps = np.abs(np.subtract(found["accuracy"], found["confidence"]))
    return float(gaps @ found["share"])


def scaled(p: Floats, t: float) -> Floats:
    """softmax(log p / T): above 1 it is less sure, below 1 surer; the ranking stays."""
    result: Floats = (_logits(p) / t).softmax(1).numpy()
    return result


def _logits(p: Floats) -> Tensor:
    """Up to a constant in each row, which changes no probability."""
    return torch.from_numpy(np.log(np.maximum(p.astype(np.float64), _SMALLEST)))


def tempered(p: Floats, labels: Labels, *, seed: int = 0) -> tuple[Floats, tuple[float, float]]:
    """Each half of the samples, scaled by the temperature that the other half asks for.

    So no prediction is judged by a temperature that has seen its label.
    """
    order = np.random.default_rng(seed).permutation(len(labels))
    first, second = order[::2], order[1::2]
    result = p.astype(np.float64)
    if not second.size:  # one sample: nothing to fit on
        return result, (1.0, 1.0)
    of_second = temperature(_logits(p[second]), torch.from_numpy(labels[second]))
    of_first = temperature(_logits(p[first]), torch.from_numpy(labels[first]))
    result[first] = scaled(p[first], of_second)
    result[second] = scaled(p[second], of_first)
    return result, (of_first, of_second)


def reliability(story: Story) -> dict[str, Any]:
    """method -> bins and ECE, as it is and after temperature scaling."""
    found: dict[str, Any] = {}
    for method in (m for m in METHODS if m in story.probabilities):
        p, labels = story.probabilities[method], story.labels
        after, temperatures = tempered(p, labels)
        found[method] = {
            "before": bins(p, labels) | {"ece": calibration_error(p, labels)},
            "after": bins(after, labels) | {"ece": calibration_error(after, labels)},
            "temperatures": temperatures,
        }
    return found
