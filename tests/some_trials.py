"""Trials made up for the tests: nothing is trained for them."""

from collections.abc import Sequence
from typing import Any

from deep_oversampling.metrics import MEASURES
from deep_oversampling.rivals.trials import Setting, Trial

SETTING = Setting(
    data="Digits",
    contents="c0ffee",
    imbalance="drop:4:0.9",
    model="auto",
    k=5,
    rounds=3,
    batch_size=60,
    learning_rate=0.01,
    test_share=0.2,
)


def trial(
    method: str = "dos", seed: int = 0, f1: Sequence[float | None] = (0.5, 0.7, 0.9), **others: Any
) -> Trial:
    """Class 2 is the minority; every measure is the F1, unless ``measures`` says otherwise."""
    values = {
        "setting": SETTING,
        "minority": (2,),
        "samples": (30, 20, 4),
        "measures": dict.fromkeys(MEASURES, tuple(f1)),
        "presented": 200,
        "seconds": 1.5,
        "where": {"torch": "2"},
    }
    return Trial(method=method, seed=seed, **{**values, **others})


def left_out(method: str, seed: int = 0, reason: str = "too few samples", **others: Any) -> Trial:
    values = {"measures": {}, "presented": 0, "seconds": 0.0, "left_out": reason}
    return trial(method, seed, **{**values, **others})
