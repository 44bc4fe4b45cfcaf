"""The paper's table of data sets and CNN architectures, and what it leaves open."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from ..rivals import METHODS

__all__ = [
    "LEARNING_RATE",
    "QUICK",
    "SCHEDULE",
    "SETS",
    "Quick",
    "SetSettings",
    "rates",
    "rates_by_kind",
]

# not printed (R9)
SCHEDULE = "cosine"  # of the learning rate, for every method and set
LEARNING_RATE = 0.01  # of a method that has no other in rates.csv


@dataclass(frozen=True)
class SetSettings:
    """What every training on a set has in common."""

    name: str  # as `load` knows it
    title: str  # as the paper calls it
    layers: str
    batch_size: int
    rounds: int  # T, after as many initial ones (R11)


_SMALL, _LARGE = "C6-C16-F400-F120", "C20-C50-F500-F120"

SETS = {
    one.name: one
    for one in (
        SetSettings("mnist", "MNIST", _SMALL, 60, 3),
        SetSettings("mnist-back-rotation", "MNIST-back-rotation", _SMALL, 40, 5),
        SetSettings("svhn", "SVHN", _SMALL, 60, 3),
        SetSettings("cifar10", "CIFAR-10", _LARGE, 50, 4),
        SetSettings("stl10", "STL-10", _LARGE, 50, 5),
    )
}


def rates(data: str, imbalance: str, copies: int = 1) -> tuple[tuple[str, float], ...]:
    """The learning rates that did best on validation images (experiments/choose_rates.py).

    >>> dict(rates("mnist", "drop:4:0.99")).keys() >= {"cnn", "ros", "dos"}
    True
    """
    kind = imbalance.partition(":")[0] if copies == 1 else f"x{copies}"
    of_training = rates_by_kind(data).get(kind, {})
    return tuple(  # methods that read out one training have its rate
        (name, of_training[method.training.name])
        for name, method in METHODS.items()
        if method.training.name in of_training
    )


def rates_by_kind(data: str) -> dict[str, dict[str, float]]:
    """Of every kind of experiment with a set: drop (classes reduced), none, x10 (ten-fold)."""
    found: dict[str, dict[str, float]] = {}
    for row in _chosen_rates():
        if row["data"] == data:
            found.setdefault(row["kind"], {})[row["method"]] = float(row["rate"])
    return found


@cache
def _chosen_rates() -> list[dict[str, str]]:
    text = files(__package__).joinpath("rates.csv").read_text("utf-8")
    return list(csv.DictReader(text.splitlines()))


@dataclass(frozen=True)
class Quick:
    """Everything in small, to see it work."""

    trials: int = 2
    train: int = 4000  # samples of a set at most; copies count
    test: int = 1000
    values: int = 6_000_000  # numbers in either at most: fewer samples where they are large

    def rounds(self, name: str) -> int:
        """Two, and more where so few steps would teach a CNN nothing."""
        return {"svhn": 12, "stl10": 4}.get(name, 2)


QUICK = Quick()
