"""Precision, recall, F1 and AUPRC of every class, and their means over groups of classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import average_precision_score, precision_recall_fscore_support
from torch import Tensor

__all__ = ["MEASURES", "Report", "measure"]

MEASURES = ("precision", "recall", "f1", "auprc")


@dataclass(frozen=True, eq=False)
class Report:
    """Class-wise measures, in the usual meaning of the words; NaN for a class without samples."""

    precision: NDArray[np.float64]  # (n,)
    recall: NDArray[np.float64]  # (n,)
    f1: NDArray[np.float64]  # (n,)
    auprc: NDArray[np.float64]  # (n,)

    def mean(self, group: ArrayLike | None = None) -> dict[str, float]:
        """The mean of each measure over a group of classes (a mask or indices; default all)."""
        chosen = slice(None) if group is None else np.asarray(group)
        columns = {name: getattr(self, name)[chosen] for name in MEASURES}
        seen = {name: column[~np.isnan(column)] for name, column in columns.items()}
        return {name: float(c.mean()) if c.size else float("nan") for name, c in seen.items()}


def measure(
    probabilities: Tensor | NDArray[np.floating],  # (m, n)
    y: Tensor | NDArray[np.integer],  # (m,)
) -> Report:
    """Precision, recall and F1 from the confusion matrix of the argmax, AUPRC from P(C|x)."""
    p, truth = _array(probabilities), _array(y)
    labels = np.arange(p.shape[1])
    precision, recall, f1, support = precision_recall_fscore_support(
        truth, p.argmax(1), labels=labels, zero_division=0.0
    )
    auprc = np.full(len(labels), np.nan)
    for j in np.flatnonzero(support):
        auprc[j] = average_precision_score(truth == j, p[:, j])
    absent = support == 0
    for column in (precision, recall, f1):
        column[absent] = np.nan
    return Report(precision, recall, f1, auprc)


def _array(values: Tensor | NDArray[Any]) -> NDArray[Any]:
    return values.cpu().numpy() if isinstance(values, Tensor) else np.asarray(values)
