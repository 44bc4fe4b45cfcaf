"""The data of the experiments: training pool, validation and test.

Validation images are never training images and never test images: choices are made on them.
"""

from pathlib import Path

import torch

from deep_oversampling import Samples
from deep_oversampling.data import load
from deep_oversampling.seeding import streams

Split = tuple[Samples, Samples, Samples]  # training pool, validation, test


def mnist(folder: Path) -> Split:
    """The paper's first 50,000; the last 10,000 of the training file validate."""
    return _parts("mnist", folder)


def back_rotation(folder: Path) -> Split:
    """MNIST-back-rotation, re-created: 12,000 to train, 8,000 to validate, 50,000 to test."""
    return _parts("mnist-back-rotation", folder)


def svhn(folder: Path) -> Split:
    """SVHN's 32 × 32 crops; 10,000 of the training file validate."""
    splits = load("svhn", data_dir=folder)
    order = torch.randperm(len(splits.train), generator=streams(0)("svhn"))
    assert splits.test is not None
    return splits.train[order[10_000:]], splits.train[order[:10_000]], splits.test


def _parts(name: str, folder: Path) -> Split:
    splits = load(name, data_dir=folder)
    assert splits.validation is not None
    assert splits.test is not None
    return splits.train, splits.validation, splits.test


SETS = {"mnist": mnist, "back-rotation": back_rotation, "svhn": svhn}
