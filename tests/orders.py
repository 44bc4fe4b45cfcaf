"""Orders of quick trials on the digits, and trials without what a clock says."""

import time
from collections.abc import Callable, Iterable
from dataclasses import asdict
from functools import partial
from typing import Any

from deep_oversampling.data import load
from deep_oversampling.rivals import METHODS
from deep_oversampling.rivals.compare import contents
from deep_oversampling.rivals.trials import Setting, Trial
from deep_oversampling.workers import Order

COMPARE = ["compare", "--data", "digits", "--imbalance", "drop:4:0.9", "--rounds", "2"]
COMPARE += ["--trials", "2", "--methods", "cnn,ros,dos", "--out", "r"]


def compared() -> Order:
    """What that command runs."""
    return digits("cnn", "ros", "dos", seeds=(0, 1), rounds=2)


def digits(*methods: str, seeds: Iterable[int] = (0,), rounds: int = 1) -> Order:
    splits = load("digits")
    setting = Setting("Digits", contents(splits), "drop:4:0.9", "auto", 5, rounds, 60, 0.01, 0.2)
    missing = {seed: [METHODS[name] for name in methods] for seed in seeds}
    return Order(splits, setting, missing, partial(load, "digits"))


def facts(trials: Iterable[Trial]) -> list[dict[str, Any]]:
    """In an order that does not depend on who was done first."""
    found = [asdict(trial) for trial in trials]
    for one in found:
        del one["seconds"]
    return sorted(found, key=lambda one: (one["method"], one["seed"]))


def until(true: Callable[[], Any], seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)
