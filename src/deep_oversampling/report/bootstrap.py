"""How sure the numbers are: measures of validation samples drawn again and again, with return."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ..metrics import MEASURES

__all__ = ["RESAMPLES", "draw", "group_mean", "interval", "resampled"]

RESAMPLES = 1000
_AT_ONCE = 20_000_000  # samples × resamples in memory
_RANKED = 2_000_000_000  # samples × resamples × classes: a few seconds for the AUPRC

Floats = NDArray[np.floating[Any]]
Labels = NDArray[np.int64]


def draw(
    t: int,  # validation samples
    resamples: int,
    generator: np.random.Generator,
) -> NDArray[np.float32]:  # (t, B)  how often sample i is in resample b
    """t samples of t, with return, for every resample."""
    chosen = generator.integers(t, size=(resamples, t))
    chosen += t * np.arange(resamples)[:, None]
    counted = np.bincount(chosen.ravel(), minlength=t * resamples).reshape(resamples, t)
    return np.ascontiguousarray(counted.T, dtype=np.float32)


def resampled(
    labels: Labels,  # (t,)
    probabilities: Mapping[str, Floats],  # method -> (t, n)
    *,
    resamples: int = RESAMPLES,  # B
    seed: int = 0,
) -> dict[str, dict[str, Floats]]:  # method -> measure -> (n, B)
    """The measures of `metrics.measure` on each resample; NaN where it lacks the class.

    Every method sees the same resamples, so differences between them are paired. A resample is
    how often it holds each sample; confusion counts are then products with sparse matrices of
    ones. Ranking costs n times as much: on large sets the AUPRC gets fewer resamples.
    """
    t, n = next(iter(probabilities.values())).shape
    ranked = min(resamples, max(100, _RANKED // (t * n * len(probabilities))))
    generator = np.random.default_rng(seed)
    found: dict[str, dict[str, list[Floats]]] = {
        method: {name: [] for name in MEASURES} for method in probabilities
    }
    rankings = {method: _rankings(labels, p) for method, p in probabilities.items()}
    step = max(1, _AT_ONCE // t)
    for start in range(0, resamples, step):
        w = draw(t, min(step, resamples - start), generator)
        support = _one_hot(labels, n) @ w  # (n, b)
        for method, p in probabilities.items():
            predicted = p.argmax(1)
            taken = _one_hot(predicted, n) @ w
            hits = _one_hot(np.where(predicted == labels, labels, -1), n) @ w
            absent = support == 0
            columns = {
                "precision": hits / np.maximum(taken, 1),
                "recall": hits / np.maximum(support, 1),
                "f1": 2 * hits / np.maximum(taken + support, 1),
                "auprc": _average_precision(rankings[method], w[:, : max(0, ranked - start)]),
            }
            for name, values in columns.items():
                values = values.astype(np.float64)
                values[absent[:, : values.shape[1]]] = np.nan
                found[method][name].append(values)
    return {m: {k: np.concatenate(v, 1) for k, v in by.items()} for m, by in found.items()}


def group_mean(values: Floats, group: NDArray[np.bool_]) -> Floats:  # (n, B), (n,) -> (B,)
    """The mean over those classes of a group that a resample holds."""
    chosen = values[group]
    there = ~np.isnan(chosen)
    with np.errstate(invalid="ignore"):
        mean: Floats = np.where(there, chosen, 0).sum(0) / there.sum(0)
    return mean


def interval(values: Floats) -> tuple[float, float]:  # (B,)
    """The middle 95 %, by percentiles; NaN where there is nothing."""
    values = values[~np.isnan(values)]
    if not values.size:
        return float("nan"), float("nan")
    low, high = np.percentile(values, [2.5, 97.5])
    return float(low), float(high)


def _one_hot(labels: Labels, n: int) -> Any:  # (n, t); a label of -1 is nobody's
    there = np.flatnonzero(labels >= 0)
    ones = np.ones(len(there), np.float32)
    return csr_array((ones, (labels[there], there)), shape=(n, len(labels)))


def _rankings(labels: Labels, p: Floats) -> list[tuple[Any, Any] | None]:
    """Per class two sparse matrices (thresholds, t): who passes between one threshold and the
    next, and which of them belong to the class. Only thresholds that gain a hit matter."""
    found: list[tuple[Any, Any] | None] = []
    ones = np.ones(len(labels), np.float32)  # of all matrices
    for j in range(p.shape[1]):
        order = np.argsort(-p[:, j], kind="stable").astype(np.int32)
        scores, hit = p[order, j], labels[order] == j
        last = np.append(scores[1:] != scores[:-1], True)  # equal scores pass together
        ends = np.flatnonzero(last) + 1
        gained = np.diff(np.cumsum(hit)[ends - 1], prepend=0) > 0
        ends = ends[gained]
        if not ends.size:
            found.append(None)
            continue
        hits, shape = np.cumsum(hit)[ends - 1], (len(ends), len(labels))
        rows = (order[: ends[-1]], ends), (order[hit], hits)  # everyone, and those of the class
        everyone, own = (
            csr_array((ones[: len(who)], who, np.append(0, until).astype(np.int32)), shape=shape)
            for who, until in rows
        )
        found.append((everyone, own))
    return found


def _average_precision(rankings: list[tuple[Any, Any] | None], w: Floats) -> Floats:  # (n, b)
    w = np.ascontiguousarray(w)
    found = np.full((len(rankings), w.shape[1]), np.nan)
    for j, ranking in enumerate(rankings):
        if ranking is None or not w.shape[1]:
            continue
        everyone, own = ranking
        gained = own @ w  # (thresholds, b)
        tp = np.cumsum(gained, 0, dtype=np.float64)
        passed = np.cumsum(everyone @ w, 0, dtype=np.float64)
        found[j] = (gained * tp / np.maximum(passed, 1)).sum(0) / np.maximum(tp[-1], 1)
    return found
