"""The embeddings in two dimensions at every moment, as small whole numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .scores import minority_mask
from .story import Story

__all__ = ["embedding"]

_WIDTH, _HEIGHT = 1200, 900  # the box that all moments share
_FAR, _ROOM = 0.5, 0.2  # a far percent of the points gets this much room, or lies on the edge
_POINTS, _MOMENTS = 40_000, 30  # of all moments together, about half a megabyte; and moments


def embedding(story: Story) -> dict[str, Any] | None:
    """Titles, labels and points; None where there is nothing to show.

    Rare classes keep all their points where many have to be left out.
    """
    if not story.moments or not len(story.moment_labels):
        return None
    last = len(story.moments) - 1
    chosen = np.unique(np.linspace(0, last, min(last + 1, _MOMENTS)).round().astype(int))
    rows = _rows(story, _POINTS // len(chosen))
    points = np.stack([story.moments[i].points[rows] for i in chosen]).astype(np.float64)
    low, high = np.percentile(points, [_FAR, 100 - _FAR], axis=(0, 1))
    room = _ROOM * (high - low)
    low = np.maximum(low - room, points.min((0, 1)))
    high = np.minimum(high + room, points.max((0, 1)))
    box = np.array([_WIDTH, _HEIGHT])
    scale = min(box / np.maximum(high - low, 1e-12))  # one for both, so distances are true
    placed = np.clip((points - (low + high) / 2) * scale + box / 2, 0, box)
    return {
        "titles": [story.moments[i].title for i in chosen],
        "labels": story.moment_labels[rows].tolist(),
        "points": placed.round().astype(int).reshape(len(chosen), -1).tolist(),  # x, y, x, y, …
        "of": len(story.moment_labels),
    }


def _rows(story: Story, most: int) -> NDArray[np.int64]:
    s = len(story.moment_labels)
    if s <= most:
        return np.arange(s)
    rare = minority_mask(story)[story.moment_labels]
    first, others = np.flatnonzero(rare), np.flatnonzero(~rare)
    first = _evenly(first, most)
    return np.sort(np.concatenate([first, _evenly(others, most - len(first))]))


def _evenly(rows: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    if len(rows) <= most:
        return rows
    return rows[np.linspace(0, len(rows) - 1, most).astype(int)] if most else rows[:0]
