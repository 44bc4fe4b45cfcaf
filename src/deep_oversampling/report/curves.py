"""Precision-recall curves: of every class, and averaged over the rare ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .checks import METHODS
from .story import Story

__all__ = ["average_curve", "curve", "curves", "thin"]

_POINTS, _ALL_POINTS = 200, 40_000  # of a curve, and of all of them, about: half a megabyte
_GRID = np.linspace(0, 1, 101)  # recall at which curves are averaged

Floats = NDArray[np.floating[Any]]


def curve(scores: Floats, hit: NDArray[np.bool_]) -> tuple[Floats, Floats]:  # (t,), (t,)
    """Recall and precision at every threshold, from the highest on: recall never falls."""
    order = np.argsort(-scores, kind="stable")
    last = np.append(np.diff(scores[order]) != 0, True)  # equal scores pass together
    tp = np.cumsum(hit[order])[last]
    passed = np.flatnonzero(last) + 1
    return tp / tp[-1], tp / passed


def thin(recall: Floats, precision: Floats, points: int = _POINTS) -> tuple[Floats, Floats]:
    """As few points as draw nearly the same line; all of them are points of the curve.

    Thresholds that gain no hit are left out but for the last of each fall, which draws the tooth.
    """
    gains = np.diff(recall, prepend=-1) > 0
    keep = np.flatnonzero(gains | np.append(gains[1:], True))
    if len(keep) > points:
        keep = keep[np.linspace(0, len(keep) - 1, points).round().astype(int)]
    return recall[keep], precision[keep]


def average_curve(found: list[tuple[Floats, Floats]]) -> tuple[Floats, Floats]:
    """The mean precision at the first threshold that reaches each recall; at 0, the first hit's.

    Thresholds before the first hit reach no recall, and their precision of 0 is none of a recall.
    """
    least = np.maximum(_GRID - 1e-12, 1e-12)
    reached = [p[np.minimum(np.searchsorted(r, least), len(p) - 1)] for r, p in found]
    return _GRID, np.mean(reached, axis=0)


def curves(story: Story) -> dict[str, Any]:
    """method -> a curve per class (None: no sample), and the mean over the rare classes."""
    n = len(story.classes)
    most = max(20, min(_POINTS, _ALL_POINTS // (n * len(story.probabilities))))
    found: dict[str, Any] = {}
    for method in (m for m in METHODS if m in story.probabilities):
        p = story.probabilities[method]
        whole = {
            j: curve(p[:, j], story.labels == j) for j in range(n) if (story.labels == j).any()
        }
        rare = [whole[j] for j in story.minority if j in whole]
        found[method] = {
            "classes": [_lists(thin(*whole[j], most)) if j in whole else None for j in range(n)],
            "rare": _lists(average_curve(rare)) if rare else None,
        }
    return found


def _lists(points: tuple[Floats, Floats]) -> dict[str, list[float]]:
    recall, precision = points
    return {"recall": np.round(recall, 3).tolist(), "precision": np.round(precision, 3).tolist()}
