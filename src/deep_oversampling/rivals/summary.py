"""Trials in numbers: mean and deviation of each method, and whether DOS differs from it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..metrics import AS_TRAINED, MEASURES
from .trials import GROUPS, Trial

__all__ = ["REFERENCE", "TEST", "Cell", "Row", "cell", "compared", "places", "summarize"]

REFERENCE = "dos"  # what the others are compared with
TEST = "paired t-test over the trials, two-sided"
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Cell:
    """A measure over a group of classes: mean and standard deviation of the trials."""

    mean: float
    sd: float


@dataclass(frozen=True)
class Row:
    """What is known of a method."""

    method: str
    trials: int
    cells: dict[str, dict[str, Cell]]  # group -> measure
    seconds: float  # mean
    difference: float  # of what is compared, to that of the reference, over the trials both have
    p: float  # that it is chance; NaN with fewer than two such trials, or if all differ alike
    left_out: str  # how many trials could not be run, and a reason
    lost: str  # how many trainings were lost, and a reason; those count


def summarize(
    trials: Sequence[Trial],
    *,
    reference: str = REFERENCE,
    group: str = "minority",
    measure: str = "f1",
) -> list[Row]:
    """A row for every method, as they come; ``measure`` of ``group`` is what is compared."""
    names = list(dict.fromkeys(trial.method for trial in trials))
    of = {name: {t.seed: t for t in trials if t.method == name} for name in names}
    done = {name: {s: t for s, t in found.items() if not t.left_out} for name, found in of.items()}
    rows = []
    for name in names:
        found = list(done[name].values())
        cells = {
            g: {m: cell([t.mean(m, g) for t in found]) for m in (*MEASURES, AS_TRAINED)}
            for g in GROUPS
        }
        pairs = [
            (trial.mean(measure, group), other.mean(measure, group))
            for seed, trial in done[name].items()
            if (other := done.get(reference, {}).get(seed)) and name != reference
        ]
        pairs = [pair for pair in pairs if not math.isnan(sum(pair))]
        every = list(of[name].values())
        reasons = [_counted([t.left_out for t in every]), _counted([t.lost for t in every])]
        seconds = sum(t.seconds for t in found) / len(found) if found else math.nan
        rows.append(Row(name, len(found), cells, seconds, *compared(pairs), *reasons))
    return rows


def places(trials: Sequence[Trial]) -> dict[str, list[str]]:
    """Hardware and versions that the trials measured do not have in common; none: empty."""
    where = [trial.where for trial in trials if not trial.left_out]
    keys = dict.fromkeys(key for place in where for key in place)
    found = {key: dict.fromkeys(place.get(key, "unknown") for place in where) for key in keys}
    return {key: list(values) for key, values in found.items() if len(values) > 1}


def _counted(reasons: list[str]) -> str:
    """ "2 of 5 trials: …", or nothing; where the reasons differ, the first of them."""
    given = [reason for reason in reasons if reason]
    if not given:
        return ""
    first = given[0] if len(set(given)) == 1 else f"for instance {given[0]}"
    return f"{len(given)} of {len(reasons)} trials: {first}"


def cell(values: list[float]) -> Cell:
    """Over the values that are known."""
    known = [value for value in values if not math.isnan(value)]
    if not known:
        return Cell(math.nan, math.nan)
    sd = float(np.std(known, ddof=1)) if len(known) > 1 else math.nan
    return Cell(float(np.mean(known)), sd)


def compared(pairs: list[tuple[float, float]]) -> tuple[float, float]:
    """Mean difference, and p by the paired t-test."""
    from scipy.stats import ttest_rel

    if not pairs:
        return math.nan, math.nan
    own, other = np.array(pairs).T
    difference = float((own - other).mean())
    # the test divides by the deviation: none, but for rounding, where all differ alike
    if len(pairs) < 2 or np.ptp(own - other) < _ROUNDING:
        return difference, math.nan
    return difference, float(ttest_rel(own, other).pvalue)
