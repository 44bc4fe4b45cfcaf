"""What every reader asks of the official files, and how it says what is missing."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError

__all__ = ["MOST_BYTES", "check_counts", "check_labels", "present"]

MOST_BYTES = 1 << 29  # of a file, unpacked: twice the largest of the official ones


def present(*files: Path) -> Path:
    """The first of the files that is there."""
    for file in files:
        if os.path.isfile(file):  # noqa: PTH113  Path's raises where a folder may not be entered
            return file
    names = " or ".join(str(file) for file in files)
    raise InputError(
        f"the set must have the file {names}, found none; 'dos data fetch' brings it, or name the "
        "folder that has it (data_dir=…, --data-dir or the variable DOS_DATA)"
    )


def check_counts(images: int, labels: int, *files: Path) -> None:
    if images != labels:
        raise InputError(
            f"{' and '.join(map(str, files))} must hold one label per image, found {images} "
            f"images and {labels} labels; take both from the same release"
        )


def check_labels(y: NDArray[Any], first: int, last: int, file: Path) -> None:
    wrong = np.flatnonzero(~np.isin(y, np.arange(first, last + 1)))
    if len(wrong):
        raise InputError(
            f"{file} must hold labels {first} … {last}, found {y[wrong[0]]} at row {wrong[0]}; "
            "the file is damaged or of another set"
        )
