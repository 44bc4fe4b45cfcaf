"""Precision, recall, F1 and AUPRC with their intervals: of classes and of groups of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..metrics import MEASURES, measure
from .bootstrap import group_mean, interval, resampled
from .checks import METHODS
from .story import Story

__all__ = ["Estimate", "Scores", "minority_mask", "score"]

Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Estimate:
    """A number and its 95 % interval; NaN where there is no sample to tell it from."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Scores:
    """Every measure of every class, and what it is on each resample."""

    methods: tuple[str, ...]  # those there are, in the order of METHODS
    values: dict[str, dict[str, Floats]]  # method -> measure -> (n,)
    drawn: dict[str, dict[str, Floats]]  # method -> measure -> (n, B)

    @property
    def paired(self) -> bool:
        """Whether there is a baseline to compare with."""
        return len(self.methods) == 2

    def group(self, method: str, name: str, group: NDArray[np.bool_]) -> Estimate:
        """The mean of a measure over a group of classes."""
        low, high = interval(group_mean(self.drawn[method][name], group))
        return Estimate(_mean(self.values[method][name][group]), low, high)

    def group_difference(self, name: str, group: NDArray[np.bool_]) -> Estimate:
        """DOS less plain, on the same resamples."""
        plain, dos = (_mean(self.values[m][name][group]) for m in METHODS)
        means = (group_mean(self.drawn[m][name], group) for m in METHODS)
        before, after = means
        return Estimate(dos - plain, *interval(after - before))

    def table(self) -> dict[str, Any]:
        """measure -> method or "difference" -> value, low, high: a number per class each."""
        found: dict[str, Any] = {}
        for name in MEASURES:
            found[name] = {
                method: _columns(self.values[method][name], self.drawn[method][name])
                for method in self.methods
            }
            if self.paired:
                plain, dos = METHODS
                found[name]["difference"] = _columns(
                    self.values[dos][name] - self.values[plain][name],
                    self.drawn[dos][name] - self.drawn[plain][name],
                )
        return found


def score(story: Story, *, resamples: int = 1000, seed: int = 0) -> Scores:
    """Measure every method on the validation samples, and on resamples of them."""
    methods = tuple(method for method in METHODS if method in story.probabilities)
    reports = {m: measure(story.probabilities[m], story.labels) for m in methods}
    values = {m: {name: getattr(reports[m], name) for name in MEASURES} for m in methods}
    p = {method: story.probabilities[method] for method in methods}
    drawn = resampled(story.labels, p, resamples=resamples, seed=seed)
    return Scores(methods, values, drawn)


def minority_mask(story: Story) -> NDArray[np.bool_]:  # (n,)
    """Which classes are rare."""
    return np.isin(np.arange(len(story.classes)), story.minority)


def _columns(values: Floats, drawn: Floats) -> dict[str, list[float]]:
    bounds = [interval(row) for row in drawn]
    return {
        "value": np.round(values, 4).tolist(),
        "low": np.round([low for low, _ in bounds], 4).tolist(),
        "high": np.round([high for _, high in bounds], 4).tolist(),
    }


def _mean(values: Floats) -> float:  # as metrics.Report.mean does
    values = values[~np.isnan(values)]
    return float(values.mean()) if values.size else float("nan")
