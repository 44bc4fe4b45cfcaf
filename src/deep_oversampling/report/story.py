"""All that the page tells: numbers, names and pictures, without a network or a data set at hand."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Mistake", "Moment", "OverSampled", "Story"]

Image = NDArray[np.uint8]  # (h, w) grey or (h, w, 3)


@dataclass(frozen=True, eq=False)
class Moment:
    """The embeddings of some validation samples at one moment, in two dimensions."""

    title: str  # "before DOS", "after round 3"
    points: NDArray[np.float32]  # (s, 2)  by one projection for all moments


@dataclass(frozen=True, eq=False)
class OverSampled:
    """A training sample of a rare class, and what one of its targets was mixed from."""

    label: int
    image: Image | None  # none where samples are no pictures
    name: str  # its file, or its row
    weight: float  # of the sample itself
    neighbours: tuple[tuple[Image | None, str, float], ...]  # image, name, weight


@dataclass(frozen=True, eq=False)
class Mistake:
    """A validation sample of a rare class that was taken for another, with great certainty."""

    label: int
    predicted: int
    probability: float  # of the prediction
    image: Image | None
    name: str


@dataclass(frozen=True, eq=False)
class Story:
    """One run. Methods are keyed "dos" and, where there is a baseline, "plain"."""

    title: str
    classes: tuple[str, ...]  # (n,)
    minority: tuple[int, ...]  # classes that the plan favours
    counts: NDArray[np.int64]  # (n,)  training samples
    presented: NDArray[np.int64]  # (n,)  of them in a multi-task round, r_j m_j
    k: NDArray[np.int64]  # (n,)  neighbours, k_j
    labels: NDArray[np.int64]  # (t,)  of the validation samples
    probabilities: dict[str, NDArray[np.float32]]  # method -> (t, n)
    histories: dict[str, dict[str, Any]]  # method -> History.to_dict()
    moments: tuple[Moment, ...] = ()
    moment_labels: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))  # (s,)
    over_sampled: tuple[OverSampled, ...] = ()
    mistakes: dict[str, tuple[Mistake, ...]] = field(default_factory=dict)  # method -> the worst
    facts: dict[str, str] = field(default_factory=dict)  # settings, data, versions, time: as shown
