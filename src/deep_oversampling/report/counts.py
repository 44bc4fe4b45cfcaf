"""Class counts: training samples, and how many of them a round of DOS presents."""

from __future__ import annotations

from typing import Any

import numpy as np

from .story import Story

__all__ = ["by_frequency", "counts"]


def by_frequency(story: Story) -> list[int]:
    """Classes from the most to the least frequent in training, so that rare ones stand together."""
    order: list[int] = np.argsort(-story.counts, kind="stable").tolist()
    return order


def counts(story: Story) -> dict[str, Any]:
    """For the bars, frequent classes first."""
    return {
        "order": by_frequency(story),
        "before": story.counts.tolist(),
        "after": story.presented.tolist(),
        "k": story.k.tolist(),
    }
