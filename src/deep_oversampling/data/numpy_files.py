"""Arrays that are there already: an .npz archive, or .npy files that stay on disk."""

from __future__ import annotations

import logging
import math
import sys
import tokenize
import zipfile
import zlib
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from ..errors import InputError
from ..reading import plain_size
from ..samples import Samples, as_tensor
from ..views import View
from .pictures.listing import SPLIT_OF
from .splits import Splits

__all__ = ["channels_last", "holds_arrays", "load_numpy"]

log = logging.getLogger(__name__)

# what zipfile, zlib and numpy raise at broken files: RuntimeError at those with a password
_UNREADABLE = (
    *(OSError, ValueError, TypeError, EOFError, OverflowError, RuntimeError, SyntaxError),
    *(zipfile.BadZipFile, zlib.error, tokenize.TokenError),
)
_BOMB_BYTES, _BOMB_TIMES = 1 << 30, 200  # an archive of so much that is packed so small
_MOST_LABELS = 1 << 30  # bytes of y, which is read whole


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
        files = sorted((path if path.is_dir() else path.parent).glob("*.npy"))
        arrays = {file.stem: _from_npy(file) for file in files if _place(file.stem)}
    parts: dict[str, dict[str, NDArray[Any]]] = {}
    for name, array in arrays.items():
        if (place := _place(name)) is None:
            log.warning("%s: the array %s is not used", path, name)
        elif place[1] in parts.setdefault(place[0], {}):
            raise InputError(
                f"{path} must have one {place[1]} to {place[0]} on, found two: {', '.join(arrays)}"
            )
        else:
            parts[place[0]][place[1]] = array
    if "train" not in parts or any(pair.keys() != {"x", "y"} for pair in parts.values()):
        raise InputError(
            f"{path} must hold the arrays x and y, or x_train and y_train, and so on in pairs, "
            f"found {', '.join(map(repr, arrays)) or 'none'}"
        )
    texts = {split: _checked_labels(path, pair["y"]) for split, pair in parts.items()}
    labels = np.unique(texts["train"])
    made = {}
    for split, y in texts.items():
        strangers = np.setdiff1d(y, labels)
        if len(strangers):
            raise InputError(
                f"{path}: every class must have samples to train on, found none of "
                f"{strangers.tolist()}, which {split} has"
            )
        indices = np.searchsorted(labels, y)
        names = [str(label) for label in labels.tolist()]
        made[split] = Samples(_images(parts[split]["x"]), indices, names)
    return Splits(path.stem, made["train"], made.get("validation"), made.get("test"))


def holds_arrays(folder: Path) -> bool:
    """Whether a folder has .npy files of the names that are read, not some among pictures."""
    return {"x", "y"} <= {place[1] for f in folder.glob("*.npy") if (place := _place(f.stem))}


def _place(name: str) -> tuple[str, str] | None:
    """The split and the part, "x" or "y", that an array's name stands for."""
    part, _, split = name.lower().partition("_")
    known = part in ("x", "y") and (split or "train") in SPLIT_OF
    return (SPLIT_OF[split or "train"], part) if known else None


def _from_npz(path: Path) -> dict[str, NDArray[Any]]:
    try:
        plain_size(path, sys.maxsize)
        with zipfile.ZipFile(path) as archive:
            members = [one for one in archive.infolist() if one.filename.endswith(".npy")]
            _check_promises(archive, members)
            return {one.filename.removesuffix(".npy"): _array(archive, one) for one in members}
    except MemoryError as error:
        raise InputError(
            f"{path} must fit into memory: {error}; store its arrays as .npy files, which are read "
            "where they are"
        ) from None
    except _UNREADABLE as error:
        raise InputError(f"{path} must be a readable .npz file of plain arrays: {error}") from None


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> NDArray[Any]:
    with archive.open(member) as content:
        array: NDArray[Any] = npy.read_array(content, allow_pickle=False)
    return array


def _check_promises(archive: zipfile.ZipFile, members: list[zipfile.ZipInfo]) -> None:
    """What every array says that it holds must be there, before memory is taken for it."""
    whole = sum(member.file_size for member in members)
    packed = sum(member.compress_size for member in members)
    if whole > _BOMB_BYTES and whole > _BOMB_TIMES * packed:
        raise ValueError(f"{packed:,} bytes unpack to {whole:,}, which no real data does")
    for member in members:
        with archive.open(member) as content:
            shape, dtype = _head(content)
            if dtype.hasobject:
                raise ValueError("Object arrays cannot be loaded, as that may run code")
            promised, there = math.prod(shape) * dtype.itemsize, member.file_size - content.tell()
        if promised != there:
            raise ValueError(
                f"{member.filename} must have {promised:,} bytes for {shape} of {dtype}, found "
                f"{there:,}"
            )


def _head(content: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    version = npy.read_magic(content)
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, _, dtype = read(content)
    return shape, dtype


def _from_npy(path: Path) -> NDArray[Any]:
    try:
        plain_size(path, sys.maxsize)
        array: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except _UNREADABLE as error:
        raise InputError(f"{path} must be a readable .npy file of a plain array: {error}") from None
    return array


def _checked_labels(path: Path, y: NDArray[Any]) -> NDArray[Any]:
    if y.nbytes > _MOST_LABELS:
        raise InputError(f"{path}: y must be 1 GiB at most, found {y.nbytes:,} bytes")
    if y.ndim != 1 or y.dtype.kind not in "iubSU":
        raise InputError(
            f"{path}: y must hold one label per sample, numbers or text, found shape {y.shape} "
            f"of {y.dtype}"
        )
    if y.dtype.kind == "U" and not _is_unicode(y):
        raise InputError(f"{path}: y must hold text, found numbers that are no characters")
    return np.char.decode(y, "utf-8", "replace") if y.dtype.kind == "S" else np.asarray(y)


def _is_unicode(y: NDArray[Any]) -> bool:
    """Python has no text of characters beyond the last, nor numpy a check."""
    codes = np.dtype(np.uint32).newbyteorder(y.dtype.byteorder)
    return not y.dtype.itemsize or bool(
        np.ascontiguousarray(y).view(codes).max(initial=0) <= sys.maxunicode
    )


def _images(x: NDArray[Any]) -> View:
    """(m, c, h, w) of images, without reading them; vectors as they are."""
    on_disk = isinstance(x, np.memmap)
    if x.ndim == 3:
        x = x[:, np.newaxis]
    if x.ndim == 4 and channels_last(x.shape[1:]):
        x = x.transpose(0, 3, 1, 2)
    return View.of(as_tensor(x, "x"), on_disk=on_disk)


def channels_last(image: tuple[int, ...]) -> bool:
    """Whether three axes are (h, w, c): the last is 1, 3 or 4 and the first is not."""
    return image[2] in (1, 3, 4) and image[0] not in (1, 3, 4)
