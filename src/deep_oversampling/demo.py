"""The demo: imbalanced digits; plain CNN, random over-sampling and DOS at equal passes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from .data.imbalance import drop_from_classes
from .data.official.digits import load_digits
from .fitting import fit
from .metrics import MEASURES, measure
from .models import lenet
from .network import Normalize, predict
from .plan import Plan
from .seeding import streams

__all__ = ["METHODS", "run_demo"]

METHODS = ("cnn", "random_oversampling", "dos")
GROUPS = ("minority", "majority")

Trial = dict[str, dict[str, dict[str, float]]]  # method -> group -> measure -> value


def run_demo(
    *,
    trials: int = 5,
    seed: int = 0,
    rounds: int = 20,
    on_training: Callable[[], None] = lambda: None,
) -> Trial:
    """Mean and standard deviation (``f1`` and ``f1_sd``, …) over the trials.

    Half of the digits that scikit-learn carries train and half test. In each trial four classes,
    drawn by the seed, lose 90 % of their training samples.
    """
    found = [_trial(seed + t, rounds, on_training) for t in range(trials)]
    return {
        method: {group: _summary([t[method][group] for t in found]) for group in GROUPS}
        for method in METHODS
    }


def _trial(seed: int, rounds: int, on_training: Callable[[], None]) -> Trial:
    rng = streams(seed)
    digits = load_digits().train
    order = torch.randperm(len(digits), generator=rng("demo", "split"))
    pool, test = digits[order[: len(order) // 2]], digits[order[len(order) // 2 :]]
    kept, reduced = drop_from_classes(pool, 0.9, generator=rng("demo", "imbalance"))
    train = pool[kept]
    plan = Plan.for_minority(train.class_counts, reduced)
    plans = (Plan.plain(train.n), plan.without_neighbours(), plan)
    minority = np.isin(np.arange(train.n), reduced)
    result: Trial = {}
    for method, chosen in zip(METHODS, plans, strict=True):
        network = lenet((1, 8, 8), train.n, normalize=Normalize.of(train.x), seed=seed)
        fit(network, train, chosen, rounds=rounds, seed=seed, device="cpu")
        report = measure(predict(network, test.x), test.y)
        result[method] = {"minority": report.mean(minority), "majority": report.mean(~minority)}
        on_training()
    return result


def _summary(reports: list[dict[str, float]]) -> dict[str, float]:
    summary: dict[str, float] = {}
    for name in MEASURES:
        values = [report[name] for report in reports]
        summary[name] = float(np.mean(values))
        summary[f"{name}_sd"] = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
    return summary
