"""The idx format of MNIST: a magic number, the sizes of the axes, then the bytes."""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError
from ...reading import read_plain
from ...samples import Samples
from ..splits import Splits
from .checks import MOST_BYTES, check_counts, check_labels, present

__all__ = ["load_fashion_mnist", "load_mnist", "mnist_files", "read_idx", "read_pair"]

_UINT8, _AXES = 0x08, 4
_VALIDATION = 10_000  # of the training file, its last ones

_DIGITS = list("0123456789")
_GARMENTS = [
    "T-shirt/top",
    "Trouser",
    "Pullover",
    "Dress",
    "Coat",
    "Sandal",
    "Shirt",
    "Sneaker",
    "Bag",
    "Ankle boot",
]


def read_idx(path: Path | str) -> NDArray[np.uint8]:
    """An idx file of unsigned bytes, gzipped (.gz) or not."""
    path = Path(path)
    try:
        content = read_plain(path, MOST_BYTES)
        content = _unzipped(content) if path.suffix == ".gz" else content
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path} must be a readable idx file: {error}") from None
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] != _UINT8:
        raise InputError(f"{path} must start with the idx magic number of unsigned bytes")
    axes = content[3]
    if axes > _AXES:
        raise InputError(f"{path} must have {_AXES} axes at most, found {axes}; it is damaged")
    shape = [int.from_bytes(content[4 + 4 * a : 8 + 4 * a]) for a in range(axes)]
    expected = 4 + 4 * axes + math.prod(shape)
    if len(content) != expected:
        raise InputError(
            f"{path} must hold {expected} bytes by its header, found {len(content)}; "
            "the file is cut off or damaged"
        )
    try:
        return np.frombuffer(memoryview(content)[4 + 4 * axes :], np.uint8).reshape(shape).copy()
    except ValueError as error:  # no image at all, but of sides that no array has
        raise InputError(f"{path} must be a readable idx file: {error}") from None


def load_mnist(folder: Path | str, full: bool = False) -> Splits:
    """MNIST, images (m, 1, 28, 28): the paper's first 50,000 train, the last 10,000 validate.

    ``full`` trains on all 60,000 and has no validation samples.
    """
    return _load("MNIST", mnist_files(folder), _DIGITS, full)


def load_fashion_mnist(folder: Path | str, full: bool = False) -> Splits:
    """Fashion-MNIST, split as `load_mnist` splits MNIST."""
    return _load("Fashion-MNIST", mnist_files(folder, "fashion-mnist"), _GARMENTS, full)


def mnist_files(folder: Path | str, name: str = "mnist") -> list[Path]:
    """Training images and labels, test images and labels, each gzipped or unpacked."""
    root = Path(folder) / name
    return [
        present(root / f"{part}-{kind}-ubyte.gz", root / f"{part}-{kind}-ubyte")
        for part in ("train", "t10k")
        for kind in ("images-idx3", "labels-idx1")
    ]


def _load(name: str, files: Sequence[Path], classes: Sequence[str], full: bool) -> Splits:
    n = len(classes)
    (x, y), test = read_pair(*files[:2], n=n), read_pair(*files[2:], n=n)
    first = len(x) if full else len(x) - _VALIDATION  # of the validation samples
    if first <= 0:
        raise InputError(
            f"{files[0]} must hold more than the {_VALIDATION:,} images that validate, found "
            f"{len(x)}; take the official file, or all of it to train (full=True)"
        )
    return Splits(
        name,
        Samples(x[:first], y[:first], classes),
        None if full else Samples(x[first:], y[first:], classes),
        Samples(*test, classes),
    )


def read_pair(images: Path, labels: Path, *, n: int) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Images (m, 1, h, w) and their labels (m,), which are those of n classes."""
    x, y = read_idx(images), read_idx(labels)
    for array, axes, file in ((x, 3, images), (y, 1, labels)):
        if array.ndim != axes:
            raise InputError(
                f"{file} must have {axes} axes, found {array.ndim}; images and labels may have "
                "changed places"
            )
    check_counts(len(x), len(y), images, labels)
    check_labels(y, 0, n - 1, labels)
    return x[:, None], y


def _unzipped(content: bytes) -> bytes:
    """What ``gzip.decompress`` gives, in a third of its time, which is most of MNIST's loading."""
    parts, left = [], MOST_BYTES
    while content:  # a gzip file may have several members, one after the other
        stream = zlib.decompressobj(wbits=31)  # 31: the gzip header, the largest window
        parts.append(stream.decompress(content, left + 1))
        left -= len(parts[-1])
        if left < 0:
            raise EOFError(f"it unpacks to more than the {MOST_BYTES:,} bytes that are read")
        if not stream.eof:
            raise EOFError("the compressed data ends before its end mark")
        content = stream.unused_data
    return b"".join(parts)
