"""The front door: a name or a path in, Samples out."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable
from pathlib import Path

from ..errors import InputError
from .cache import cache_folder, data_folder
from .numpy_files import holds_arrays, load_numpy
from .official.back_rotation import load_back_rotation
from .official.binary import load_cifar10, load_cifar100, load_stl10
from .official.digits import load_digits
from .official.idx import load_fashion_mnist, load_mnist
from .official.svhn import load_svhn
from .pictures.decoding import decode
from .pictures.folders import list_folder
from .pictures.manifest import list_manifest
from .pictures.workers import Progress
from .splits import Splits

__all__ = ["NAMES", "check_size", "load"]

_READERS: dict[str, Callable[[Path, Path], Splits]] = {  # data folder, cache folder
    "mnist": lambda folder, cache: load_mnist(folder),
    "mnist-full": lambda folder, cache: load_mnist(folder, full=True),
    "fashion-mnist": lambda folder, cache: load_fashion_mnist(folder),
    "fashion-mnist-full": lambda folder, cache: load_fashion_mnist(folder, full=True),
    "mnist-back-rotation": load_back_rotation,
    "svhn": load_svhn,
    "cifar10": lambda folder, cache: load_cifar10(folder),
    "cifar100": lambda folder, cache: load_cifar100(folder),
    "stl10": lambda folder, cache: load_stl10(folder),
    "digits": lambda folder, cache: load_digits(),
}
NAMES = tuple(_READERS)

_MANIFESTS = {".csv", ".tsv", ".parquet"}
_ARRAYS = {".npz", ".npy"}


def load(
    source: Path | str,
    *,
    data_dir: Path | str | None = None,  # of the official files; else $DOS_DATA, else the user's
    cache: Path | str | None = None,  # of decoded pictures; else $DOS_CACHE, else the user's
    size: int | tuple[int, int] | None = None,  # of pictures; left out: what suits them
    most: int | None = None,  # pixels of a side, where what suits them would be larger
    grey: bool | None = None,  # left out: if all pictures are
    strict: bool = False,  # stop at a picture that cannot be read; else it is skipped
    on_progress: Progress | None = None,
) -> Splits:
    """A set by its name, or the user's own: pictures in folders, a manifest of them, arrays.

    ``size``, ``most``, ``grey``, ``strict`` and ``on_progress`` are for pictures; the other kinds
    are as they are stored. A folder that is called like a set is meant as "./mnist".

    >>> load("digits").train.class_counts.tolist()
    [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    """
    if not isinstance(source, str | os.PathLike):
        raise InputError(
            f"the data must be a name or a path, found {type(source).__name__}; from_dataset takes "
            "torch datasets, Samples takes arrays and tensors"
        )
    cache, path = cache_folder(cache), Path(os.path.expanduser(source))  # noqa: PTH111
    there = bool(str(source)) and os.path.exists(path)  # noqa: PTH110  Path's raises on odd names
    if str(source) in _READERS and (isinstance(source, str) or not there):
        return _READERS[str(source)](data_folder(data_dir), cache)
    if not there:
        near = difflib.get_close_matches(str(source).lower().replace("_", "-"), NAMES, n=2)
        raise InputError(
            f"the data must be the name of a set ({', '.join(NAMES)}) or a path, found no "
            f"{str(source)!r}" + "".join(f"; did you mean {name!r}?" for name in near[:1])
        )
    if path.suffix.lower() in _ARRAYS or (path.is_dir() and holds_arrays(path)):
        return load_numpy(path)
    if path.is_file() and path.suffix.lower() not in _MANIFESTS:
        raise InputError(
            f"a file of data must end in {', '.join(sorted(_MANIFESTS | _ARRAYS))}, found {path}; "
            "pictures must be in a folder per class"
        )
    listing = list_folder(path) if path.is_dir() else list_manifest(path)
    return decode(
        listing, cache, size=size, most=most, grey=grey, strict=strict, on_progress=on_progress
    )


def check_size(splits: Splits, size: int | None) -> None:
    """That somebody asked for, who would not see that it has no effect on what is no picture."""
    shape = tuple(splits.train.x.shape[1:])
    if size is not None and shape[1:] != (size, size):
        raise InputError(
            f"size must be left out where samples are not read from pictures, as {splits.name} "
            f"stays as it is stored, found {size} and samples of shape {shape}"
        )
