"""SVHN's crops of 32 × 32 from the official .mat files, decoded once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError
from ...samples import Samples
from ..cache import kept, state_of
from ..splits import Splits
from .arrays import load_arrays, save_arrays
from .checks import MOST_BYTES, check_counts, check_labels, present
from .matlab import read_arrays

__all__ = ["load_svhn"]

_VERSION = 1  # of what is kept


def load_svhn(folder: Path | str, cache: Path | str) -> Splits:
    """SVHN, format 2: 73,257 digits to train, 26,032 to test, (m, 3, 32, 32)."""
    train, test = (_part(Path(folder) / "svhn", part, Path(cache)) for part in ("train", "test"))
    return Splits("SVHN", train, test=test)


def _part(root: Path, part: str, cache: Path) -> Samples:
    file = present(root / f"{part}_32x32.mat")
    folder = kept(
        cache,
        state_of([file], "svhn", _VERSION),
        lambda into: save_arrays(into, part, *_decoded(file)),
    )
    return load_arrays(folder, part, list("0123456789"))


def _decoded(file: Path) -> tuple[NDArray[np.uint8], NDArray[Any]]:
    try:
        found = read_arrays(file, MOST_BYTES)
    except (OSError, ValueError) as error:
        raise InputError(
            f"{file} must be a readable .mat file, found: {error}; download it again"
        ) from None
    if not {"X", "y"} <= found.keys():
        keys = ", ".join(found) or "nothing"
        raise InputError(
            f"{file} must hold the variables X and y, found {keys}; take the cropped digits, "
            "format 2 of the official page"
        )
    x, y = found["X"], found["y"]
    if x is None or y is None:
        raise InputError(f"{file} must hold X and y of numbers, found others; download it again")
    if x.shape[:3] != (32, 32, 3) or x.ndim != 4 or x.dtype != np.uint8:
        raise InputError(
            f"{file} must hold X of bytes and of shape (32, 32, 3, m), found {x.dtype} of shape "
            f"{x.shape}; take the official file"
        )
    if y.size != max(y.shape) or y.dtype.kind not in "iu":
        raise InputError(
            f"{file} must hold y of integers and of shape (m, 1), found {y.dtype} of shape "
            f"{y.shape}; take the official file"
        )
    y = y.ravel()
    check_counts(x.shape[3], len(y), file)
    check_labels(y, 1, 10, file)
    return np.ascontiguousarray(x.transpose(3, 2, 0, 1)), y % 10  # the label 10 is the digit 0
