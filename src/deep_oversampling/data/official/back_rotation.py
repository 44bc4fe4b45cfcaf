"""MNIST-back-rotation: the authors' archive where it is at hand, else made anew from MNIST."""

from __future__ import annotations

import io
import warnings
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError
from ...reading import plain_size
from ..cache import kept, state_of
from ..splits import Splits
from .arrays import load_arrays, save_arrays
from .checks import check_labels, present
from .idx import mnist_files, read_pair
from .recreation import recreated

__all__ = ["FINGERPRINT", "load_back_rotation"]

# Of the images and labels made anew from the official MNIST files with the seed 2007.
FINGERPRINT = "2d3994a19829f44883749e8b725ca98c"

_VERSION = 1  # of what is kept
_SIDE = 28
_MOST_BYTES, _MOST_ROWS, _MOST_LINE = 1 << 31, 100_000, 1 << 16  # twice what the authors' have
_DIGITS = list("0123456789")

# Made anew: the 70,000 digits of MNIST, shared out. The authors left 8,000 of them out.
_SIZES = {"train": 12_000, "validation": 8_000, "test": 50_000}

_ARCHIVE = "mnist_rotation_back_image_new.zip"
_MEMBERS = {
    "train": "mnist_all_background_images_rotation_normalized_train_valid.amat",
    "test": "mnist_all_background_images_rotation_normalized_test.amat",
}


def load_back_rotation(folder: Path | str, cache: Path | str, seed: int = 2007) -> Splits:
    """The authors' 12,000 and 50,000 images, floats in [0, 1] as published, (m, 1, 28, 28).

    Without their archive the set is made anew from MNIST, in bytes, and its name says so:
    12,000 images train, 8,000 validate, 50,000 test, and ``seed`` draws all that is random.
    """
    folder, cache = Path(folder), Path(cache)
    archive, texts = folder / _ARCHIVE, folder / "mnist-back-rotation"
    if archive.is_file():
        return _published(dict.fromkeys(_MEMBERS, archive), cache)
    if any((texts / member).is_file() for member in _MEMBERS.values()):
        return _published({part: present(texts / m) for part, m in _MEMBERS.items()}, cache)
    return _made_anew(mnist_files(folder), cache, seed)


def _made_anew(files: list[Path], cache: Path, seed: int) -> Splits:
    def make(into: Path) -> None:
        n = len(_DIGITS)
        pairs = read_pair(*files[:2], n=n), read_pair(*files[2:], n=n)
        x, y = (np.concatenate(arrays) for arrays in zip(*pairs, strict=True))
        if x.shape != (sum(_SIZES.values()), 1, _SIDE, _SIDE):
            raise InputError(
                f"MNIST must have {sum(_SIZES.values()):,} images of {_SIDE} × {_SIDE} to make "
                f"the set anew, found shape {x.shape} in {files[0].parent}; take the official files"
            )
        x, y = recreated(x[:, 0], y, seed=seed)
        start = 0
        for part, size in _SIZES.items():
            save_arrays(into, part, x[start : start + size, None], y[start : start + size])
            start += size

    folder = kept(cache, state_of(files, "back-rotation", _VERSION, seed), make)
    train, validation, test = (load_arrays(folder, part, _DIGITS) for part in _SIZES)
    return Splits("MNIST-back-rotation (re-created)", train, validation, test)


def _published(files: dict[str, Path], cache: Path) -> Splits:
    def make(into: Path) -> None:
        for part, file in files.items():
            save_arrays(into, part, *_parsed(file, _MEMBERS[part]))

    folder = kept(cache, state_of(files.values(), "back-rotation", _VERSION), make)
    train, test = (load_arrays(folder, part, _DIGITS) for part in _MEMBERS)
    return Splits("MNIST-back-rotation", train, test=test)


def _parsed(file: Path, member: str) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Rows of 784 values, an image column by column, and a label."""
    where = file / member if _zipped(file) else file
    try:
        with _text(file, member) as lines, warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*input contained no data")
            rows = np.loadtxt(_checked(lines), np.float32, comments=None, ndmin=2)
    except InputError:
        raise
    except ValueError as error:
        reason = str(error).partition(";")[0]  # what follows is advice about loadtxt
        raise _unusable(where, reason) from None
    except (OSError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
        raise _unusable(where, str(error)) from None
    if rows.shape[1] != _SIDE**2 + 1:
        raise _unusable(where, f"{len(rows)} rows of {rows.shape[1]}")
    x, y = rows[:, :-1], rows[:, -1]
    wrong = np.flatnonzero(~((x >= 0) & (x <= 1)).all(1))  # NaN is neither
    if len(wrong):
        raise _unusable(where, f"values outside of 0 … 1 in row {wrong[0]}")
    check_labels(y, 0, len(_DIGITS) - 1, where)
    return x.reshape(-1, 1, _SIDE, _SIDE).transpose(0, 1, 3, 2), y.astype(np.int64)


def _checked(lines: IO[str]) -> Iterator[str]:
    """Lines as they come, of which neither one nor all together can fill the memory."""
    for _ in range(_MOST_ROWS):
        line = lines.readline(_MOST_LINE)
        if not line:
            return
        if len(line) == _MOST_LINE:
            raise ValueError(f"a line of more than {_MOST_LINE:,} characters")
        yield line
    raise ValueError(f"more than {_MOST_ROWS:,} rows")


@contextmanager
def _text(file: Path, member: str) -> Iterator[IO[str]]:
    """The lines of a text file, or of a member of a zip file."""
    plain_size(file, _MOST_BYTES)
    if not _zipped(file):
        with file.open(encoding="ascii") as lines:
            yield lines
        return
    with zipfile.ZipFile(file) as archive:
        if member not in archive.namelist():
            names = ", ".join(archive.namelist()) or "nothing"
            raise InputError(f"{file} must hold {member}, found {names}; download it again")
        with archive.open(member) as content:
            yield io.TextIOWrapper(content, encoding="ascii")


def _zipped(file: Path) -> bool:
    return file.suffix == ".zip"


def _unusable(where: Path, reason: str) -> InputError:
    return InputError(
        f"{where} must hold rows of {_SIDE**2} values and a label, found: {reason}; "
        "download it again"
    )
