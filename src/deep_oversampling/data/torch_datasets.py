"""Any map-style dataset as Samples: torchvision's, Hugging Face's, a Subset, one's own.

None of them is a dependency: what has a length and gives an image with a label for an index is
a dataset. Its transforms run here, once; random ones belong into ``fit(augment=…)``.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor
from torch.utils.data import DataLoader

from ..errors import InputError
from ..reading import parse_json, read_plain
from ..samples import Samples, as_tensor
from ..schema import is_count, is_text, is_whole, list_of, table
from ..views import View
from .cache import cache_folder, kept
from .numpy_files import channels_last
from .pictures.listing import in_order
from .pictures.picture import as_pixels, is_grey
from .pictures.survey import check_size
from .pictures.workers import Progress

__all__ = ["MapStyle", "from_dataset"]

_IMAGE_KEYS = ("image", "img", "x", "pixel_values")
_MOST_ABOUT = 1 << 28  # bytes; a label for every item
_LABEL_KEYS = ("label", "labels", "fine_label", "y", "target")


class MapStyle(Protocol):
    """What a map-style dataset has."""

    def __len__(self) -> int: ...
    def __getitem__(self, index: int, /) -> Any: ...


def from_dataset(
    dataset: MapStyle,
    *,
    size: int | tuple[int, int] | None = None,  # of pictures; to be given if theirs differ
    grey: bool | None = None,  # pictures in grey or in colour; left out: as the first one is
    classes: Sequence[str] = (),  # left out: what the dataset calls them, else their numbers
    keep_as: str = "",  # read once and for all, under this name; left out: once per process
    workers: int = 0,  # processes that read; 0: this one
    cache: Path | str | None = None,
    on_progress: Progress | None = None,
) -> Samples:
    """Every item of the dataset as a sample that stays on disk.

    An item is (image, label, …) or a mapping with an image and a label; images are Pillow's,
    tensors or arrays, and keep their type. A dataset does not say when its items change, so what
    is kept under a name is trusted: give it another name when they do.
    """
    if not isinstance(dataset, Sized) or len(dataset) == 0:
        raise InputError(
            "the dataset must be map-style, with a length of one item or more, found "
            f"{type(dataset).__name__} without; collect an iterable one into a list"
        )
    count, wanted, place = len(dataset), check_size(size), cache_folder(cache)
    names = list(classes) or _class_names(dataset)

    def make(folder: Path) -> None:
        about = _write(folder / "x", _items(dataset, workers), wanted, grey, count, on_progress)
        (folder / "about.json").write_text(json.dumps(about | {"classes": names}))
        _open(folder)  # labels that do not fit are not kept

    if keep_as:
        settings = (keep_as, wanted, grey, count, names)
        key = hashlib.blake2b(repr(settings).encode(), digest_size=16)
        return _open(kept(place, key.hexdigest(), make))
    folder = kept(place, uuid.uuid4().hex, make)
    try:
        return _open(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)  # the mapped file outlives its name


def _items(dataset: MapStyle, workers: int) -> Iterator[Any]:
    items: Iterable[Any] = (dataset[i] for i in range(len(dataset)))
    if workers:
        items = DataLoader(dataset, None, num_workers=workers, collate_fn=_as_it_is)  # type: ignore[arg-type]
    i = 0
    try:
        for item in items:
            yield item
            i += 1
    except Exception as error:  # whatever its own code throws
        reason = str(error).strip().rpartition("\n")[2]  # a worker's error is a page long
        raise InputError(
            f"every item of the dataset must be readable, found at {i}: "
            f"{type(error).__name__}: {reason}"
        ) from error


def _as_it_is(item: Any) -> Any:
    return item


def _write(
    path: Path,
    items: Iterable[Any],
    size: tuple[int, int] | None,
    grey: bool | None,
    total: int,
    on_progress: Progress | None,
) -> dict[str, Any]:
    """Item by item, so that they need not fit into memory; the labels and what all share."""
    labels, shared = [], None
    with path.open("wb") as file:
        for i, item in enumerate(items):
            image, label = _pair(item, i)
            if isinstance(image, Image.Image):
                grey = is_grey(image.mode) if grey is None else grey
                x = _pixels(image, size, grey)
            else:
                x = _numbers(image, i, size)
            found = (list(x.shape), x.dtype.str)
            shared = shared or found
            if found != shared:
                raise InputError(
                    "all samples must have one shape and type, found "
                    f"{shared[0]} of {shared[1]} at first, then {found[0]} of {found[1]} at {i}; "
                    "pass size=… for pictures, or resize the others in the dataset's transform"
                )
            file.write(x.tobytes())
            labels.append(label)
            if on_progress:
                on_progress(i + 1, total)
    return {"labels": labels, "shape": shared and shared[0], "dtype": shared and shared[1]}


def _open(folder: Path) -> Samples:
    try:
        about = parse_json(read_plain(folder / "about.json", _MOST_ABOUT))
        if not _is_about(about):
            raise ValueError("about.json is not what was written")
        labels, classes = about["labels"], about["classes"]
        x = np.memmap(folder / "x", about["dtype"], "r").reshape(len(labels), *about["shape"])
    except (OSError, ValueError, TypeError, MemoryError) as error:
        raise InputError(
            f"what was read must be as it was written, found {folder} damaged: {error}; delete "
            "that folder, and the dataset is read again"
        ) from None
    if any(isinstance(label, str) for label in labels):
        classes = classes or in_order(map(str, labels))
        unknown = set(map(str, labels)) - set(classes)
        if unknown:
            raise InputError(f"labels must be among the classes {classes}, found {unknown}")
        labels = [classes.index(str(label)) for label in labels]
    return Samples(View.of(as_tensor(x, "x"), on_disk=True), np.array(labels, np.int64), classes)


def _is_about(value: Any) -> bool:
    """As `_write` leaves it."""
    fits = table(
        labels=list_of(lambda label: is_whole(label) or is_text(label)),
        classes=list_of(is_text),
        shape=list_of(is_count),
        dtype=is_text,
    )
    return fits(value) and np.dtype(value["dtype"]).kind in "biuf"


def _pair(item: Any, i: int) -> tuple[Any, int | str]:
    try:
        if isinstance(item, Mapping):
            image = item[next(key for key in _IMAGE_KEYS if key in item)]
            label = item[next(key for key in _LABEL_KEYS if key in item)]
        else:
            image, label = item[0], item[1]
        if isinstance(label, str):
            return image, label
        if isinstance(label, bytes) or float(label) != int(label):
            raise ValueError(f"its label is {label!r}")
        return image, int(label)
    except (StopIteration, TypeError, IndexError, KeyError, ValueError, OverflowError) as error:
        found = sorted(item) if isinstance(item, Mapping) else type(item).__name__
        raise InputError(
            "an item must be (image, label) or a mapping with an image and a label, which is a "
            f"whole number or text, found at {i}: {found} {error}"
        ) from None


def _pixels(image: Image.Image, size: tuple[int, int] | None, grey: bool) -> NDArray[np.uint8]:
    height, width = size or (image.height, image.width)
    return as_pixels(image, height, width, grey=grey)


def _numbers(image: Any, i: int, size: tuple[int, int] | None) -> NDArray[Any]:
    """Numbers as they are; images with their channels first."""
    array = image.numpy(force=True) if isinstance(image, Tensor) else np.asarray(image)
    if array.dtype.kind not in "biuf" or array.ndim == 0:
        raise InputError(
            f"an image must be a picture of Pillow's, a tensor or an array, found at {i}: "
            f"{type(image).__name__}"
        )
    if size is not None:
        raise InputError(
            f"size is for pictures of Pillow's, found at {i}: {type(image).__name__}; resize in "
            "the dataset's transform"
        )
    if array.ndim == 2:
        array = array[np.newaxis]
    if array.ndim == 3 and channels_last(array.shape):
        array = array.transpose(2, 0, 1)
    return np.ascontiguousarray(array)


def _class_names(dataset: Any) -> list[str]:
    """As torchvision's or Hugging Face's datasets name their classes.

    What names none itself, a Subset or a ConcatDataset, asks what it is made of.
    """
    features = getattr(dataset, "features", None)
    names = getattr(dataset, "classes", None)
    if isinstance(features, Mapping):
        label = next((features[key] for key in _LABEL_KEYS if key in features), None)
        names = getattr(label, "names", None)
    if isinstance(names, list | tuple):
        return [str(name) for name in names]
    inner = getattr(dataset, "dataset", None)
    parts = [inner] if inner is not None else list(getattr(dataset, "datasets", ()))
    found = [_class_names(part) for part in parts]
    return found[0] if found and all(one == found[0] for one in found) else []
