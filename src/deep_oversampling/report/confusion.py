"""Confusion matrices, and the pairs of classes that are confused most."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .checks import METHODS
from .counts import by_frequency
from .story import Story

__all__ = ["confusion", "confusion_matrix"]

_PAIRS = 10  # listed


def confusion_matrix(labels: NDArray[np.int64], predicted: NDArray[np.int64], n: int) -> Any:
    """(n, n) counts: a row for the truth, a column for what it was taken for."""
    return np.bincount(labels * n + predicted, minlength=n * n).reshape(n, n)


def confusion(story: Story) -> dict[str, Any]:
    """Of each method the cells that are not empty, j · n + i for class j taken for i, and their
    counts; the order of classes to show them in, and the worst pairs."""
    n = len(story.classes)
    matrices = {
        method: confusion_matrix(story.labels, story.probabilities[method].argmax(1), n)
        for method in METHODS
        if method in story.probabilities
    }
    wrong = sum(matrices.values()) * (1 - np.eye(n, dtype=np.int64))
    worst = np.argsort(-wrong, axis=None, kind="stable")[:_PAIRS]
    pairs = [(int(c // n), int(c % n)) for c in worst if wrong.flat[c] > 0]
    return {
        "order": by_frequency(story),
        "methods": {
            method: {
                "cells": np.flatnonzero(matrix).tolist(),
                "counts": matrix[matrix > 0].tolist(),
            }
            for method, matrix in matrices.items()
        },
        "pairs": pairs,
    }
