"""The paper's table of data sets and CNN architectures, and what it leaves open."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["QUICK", "SCHEDULE", "SETS", "Quick", "SetSettings"]

SCHEDULE = "cosine"  # of the learning rate, for every method and set: not printed (R9)


@dataclass(frozen=True)
class SetSettings:
    """What every training on a set has in common."""

    name: str  # as `load` knows it
    title: str  # as the paper calls it
    layers: str
    batch_size: int
    rounds: int  # T, after as many initial ones (R11)
    learning_rate: float = 0.01  # not printed: by validation (R9) …
    rates: tuple[tuple[str, float], ...] = ()  # … of the methods that do better with another


_SMALL, _LARGE = "C6-C16-F400-F120", "C20-C50-F500-F120"

SETS = {
    one.name: one
    for one in (
        SetSettings("mnist", "MNIST", _SMALL, 60, 3, rates=(("cnn", 0.03),)),
        SetSettings(
            "mnist-back-rotation",
            "MNIST-back-rotation",
            _SMALL,
            40,
            5,
            rates=(("cnn", 0.03), ("ros", 0.03)),
        ),
        SetSettings("svhn", "SVHN", _SMALL, 60, 3, rates=(("cnn", 0.03),)),
        SetSettings("cifar10", "CIFAR-10", _LARGE, 50, 4),
        SetSettings("stl10", "STL-10", _LARGE, 50, 5),
    )
}


@dataclass(frozen=True)
class Quick:
    """Everything in small, to see it work."""

    trials: int = 2
    train: int = 4000  # samples of a set at most; copies count
    test: int = 1000
    values: int = 6_000_000  # numbers in either at most: fewer samples where they are large
    rounds: int = 2


QUICK = Quick()
