"""The idx format of MNIST: a magic number, the sizes of the axes, then the bytes."""

from __future__ import annotations

import gzip
import math
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..samples import Samples

__all__ = ["load_mnist", "read_idx"]

_UINT8 = 0x08


def read_idx(path: Path | str) -> NDArray[np.uint8]:
    """An idx file of unsigned bytes, gzipped (.gz) or not."""
    path = Path(path)
    try:
        content = path.read_bytes()
        content = gzip.decompress(content) if path.suffix == ".gz" else content
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path} must be a readable idx file: {error}") from None
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] != _UINT8:
        raise InputError(f"{path} must start with the idx magic number of unsigned bytes")
    axes = content[3]
    shape = [int.from_bytes(content[4 + 4 * a : 8 + 4 * a]) for a in range(axes)]
    expected = 4 + 4 * axes + math.prod(shape)
    if len(content) != expected:
        raise InputError(
            f"{path} must hold {expected} bytes by its header, found {len(content)}; "
            "the file is cut off or damaged"
        )
    return np.frombuffer(content, np.uint8, offset=4 + 4 * axes).reshape(shape).copy()


def load_mnist(folder: Path | str, split: str = "train") -> Samples:
    """MNIST's official files: ``train`` (60,000) or ``test`` (10,000), images (m, 1, 28, 28)."""
    prefixes = {"train": "train", "test": "t10k"}
    if split not in prefixes:
        raise InputError(f"split must be 'train' or 'test', found {split!r}")
    prefix = prefixes[split]
    x = read_idx(Path(folder) / f"{prefix}-images-idx3-ubyte.gz")
    y = read_idx(Path(folder) / f"{prefix}-labels-idx1-ubyte.gz")
    return Samples(x[:, None], y, [str(digit) for digit in range(10)])
