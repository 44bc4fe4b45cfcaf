"""Arrays that are there already: an .npz archive, or .npy files that stay on disk."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..samples import Samples, as_tensor
from ..views import View
from .splits import Splits

__all__ = ["load_numpy"]

_NAMES = {
    "train": ("x_train", "y_train"),
    "validation": ("x_val", "y_val"),
    "test": ("x_test", "y_test"),
}


def load_numpy(path: Path | str) -> Splits:
    """The arrays x and y; or x_train, y_train, x_test and y_test, and x_val and y_val if wanted.

    They are in an .npz file, or in .npy files of those names in one folder, of which any or the
    folder itself may be given; those may be larger than memory. Images may be (m, h, w),
    (m, h, w, c) or (m, c, h, w).
    """
    path = Path(path)
    if path.suffix.lower() == ".npz":
        arrays = _from_npz(path)
    else:
        folder = path if path.is_dir() else path.parent
        arrays = {file.stem: _from_npy(file) for file in sorted(folder.glob("*.npy"))}
    lower = {name.lower(): array for name, array in arrays.items()}
    if {"x", "y"} <= lower.keys():
        lower |= {"x_train": lower["x"], "y_train": lower["y"]}
    parts = {
        split: (lower[x], lower[y]) for split, (x, y) in _NAMES.items() if {x, y} <= lower.keys()
    }
    if "train" not in parts:
        raise InputError(
            f"{path} must hold the arrays x and y, or x_train and y_train, found "
            f"{', '.join(map(repr, arrays)) or 'none'}"
        )
    labels = np.unique(_checked_labels(path, parts["train"][1]))
    made = {}
    for split, (x, y) in parts.items():
        strangers = np.setdiff1d(_checked_labels(path, y), labels)
        if len(strangers):
            raise InputError(
                f"{path}: every class must have samples to train on, found none of "
                f"{strangers.tolist()}, which {split} has"
            )
        indices = np.searchsorted(labels, y)
        made[split] = Samples(_images(x), indices, [str(label) for label in labels.tolist()])
    return Splits(path.stem, made["train"], made.get("validation"), made.get("test"))


def _from_npz(path: Path) -> dict[str, NDArray[Any]]:
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except (OSError, ValueError, TypeError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise InputError(f"{path} must be a readable .npz file of plain arrays: {error}") from None


def _from_npy(path: Path) -> NDArray[Any]:
    try:
        array: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise InputError(f"{path} must be a readable .npy file of a plain array: {error}") from None
    return array


def _checked_labels(path: Path, y: NDArray[Any]) -> NDArray[Any]:
    if y.ndim != 1 or y.dtype.kind not in "iubSU":
        raise InputError(
            f"{path}: y must hold one label per sample, numbers or text, found shape {y.shape} "
            f"of {y.dtype}"
        )
    return np.asarray(y)


def _images(x: NDArray[Any]) -> View:
    """(m, c, h, w) of images, without reading them; vectors as they are."""
    if x.ndim == 3:
        x = x[:, np.newaxis]
    if x.ndim == 4 and x.shape[3] in (1, 3, 4) and x.shape[1] not in (1, 3, 4):
        x = x.transpose(0, 3, 1, 2)
    return View.of(as_tensor(x, "x"))
