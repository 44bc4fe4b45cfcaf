"""Samples as two .npy files; their images stay on disk until they are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError
from ...samples import Samples

__all__ = ["load_arrays", "save_arrays"]


def save_arrays(folder: Path, part: str, x: NDArray[Any], y: NDArray[Any]) -> None:
    np.save(folder / f"{part}-x.npy", x)
    np.save(folder / f"{part}-y.npy", y)


def load_arrays(folder: Path, part: str, classes: Sequence[str]) -> Samples:
    try:
        # "c": whoever changes the samples in memory does not change the file, nor crash
        x, y = (np.load(folder / f"{part}-{name}.npy", mmap_mode="c") for name in "xy")
        return Samples(x, np.array(y), classes)
    except (OSError, ValueError, EOFError, SyntaxError, TokenError, MemoryError) as error:
        raise InputError(
            f"what was decoded must be as it was written, found {folder} damaged: {error}; delete "
            "that folder, and it is decoded again"
        ) from None
