"""𝒳: the samples, in the type they are stored in, with their class indices."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from .errors import InputError
from .views import View, chunks

__all__ = ["Samples", "as_tensor"]


@dataclass(frozen=True, eq=False, init=False)
class Samples:
    """m samples x of any shape and storage type, with class indices y out of n classes.

    ``x`` and ``y`` may be tensors, arrays or lists; uint8 images stay uint8 until they are in a
    batch on the device. A `View` as ``x`` stays where it is stored, on disk for example, and only
    batches of it come into memory. ``classes`` names the n classes; left out, they are "0", "1", ….

    >>> samples = Samples(torch.rand(5, 3), [0, 0, 1, 1, 1])
    >>> len(samples), samples.n, samples.class_counts.tolist()
    (5, 2, [2, 3])
    """

    x: Tensor | View  # (m, …)
    y: Tensor  # (m,)   0 … n-1
    classes: tuple[str, ...]

    def __init__(
        self, x: Tensor | View | ArrayLike, y: Tensor | ArrayLike, classes: Sequence[str] = ()
    ) -> None:
        x, y = x if isinstance(x, View) else as_tensor(x, "x"), _as_labels(y)
        if x.ndim < 2:
            raise InputError(
                f"x must be (samples, …) with at least two axes, found shape {tuple(x.shape)}; "
                "reshape feature vectors to (m, d) and images to (m, c, h, w)"
            )
        if len(x) != len(y):
            raise InputError(
                f"x and y must have one label per sample, found {len(x)} samples and "
                f"{len(y)} labels"
            )
        if len(x) == 0:
            raise InputError("there must be at least one sample, found none")
        if x.is_floating_point():
            _check_finite(x)
        names = tuple(map(str, classes)) or tuple(map(str, range(int(y.max()) + 1)))
        if int(y.max()) >= len(names):
            raise InputError(
                f"labels must be below the number of classes, found label {int(y.max())} "
                f"with {len(names)} classes"
            )
        self._set(x, y, names)

    def __len__(self) -> int:
        return len(self.y)

    @property
    def n(self) -> int:
        """Number of classes, those without a sample included."""
        return len(self.classes)

    @property
    def labels(self) -> NDArray[np.str_]:  # (m,)
        """The name of every sample's class: y for scikit-learn."""
        names: NDArray[np.str_] = np.array(self.classes)[self.y.cpu().numpy()]
        return names

    @property
    def class_counts(self) -> Tensor:  # (n,)
        """m_j: the number of samples of each class."""
        return torch.bincount(self.y, minlength=self.n)

    def __getitem__(self, rows: Tensor) -> Samples:
        """A batch: the samples at ``rows`` (indices or a mask), gathered; the same n classes."""
        return self._unchecked(self.x[rows], self.y[rows])

    def subset(self, rows: Tensor) -> Samples:
        """The samples at ``rows``; where x is a `View`, without reading any of them."""
        x = self.x.select(rows) if isinstance(self.x, View) else self.x[rows]
        return self._unchecked(x, self.y[rows])

    def with_x(self, x: Tensor | View, y: Tensor | None = None) -> Samples:
        """Changed copies of the samples, with the labels they have, or those of their originals."""
        return self._unchecked(x, self.y if y is None else y)

    def to(self, device: torch.device | str) -> Samples:
        """Where there is no room, the error stays one that whoever trains several waits for."""
        try:
            return self._unchecked(self.x.to(device), self.y.to(device))
        except torch.OutOfMemoryError:
            raise torch.OutOfMemoryError(
                f"the device ({device}) must have room for the {len(self)} samples, found that it "
                "has not; open them from disk as a View, or choose another device"
            ) from None

    def _unchecked(self, x: Tensor | View, y: Tensor) -> Samples:
        """Samples that were checked when they first came in need it no second time."""
        other = object.__new__(Samples)
        other._set(x, y, self.classes)
        return other

    def _set(self, x: Tensor | View, y: Tensor, classes: tuple[str, ...]) -> None:
        for field, value in (("x", x), ("y", y), ("classes", classes)):
            object.__setattr__(self, field, value)


def as_tensor(values: Any, name: str) -> Tensor:
    """Numbers in the type they have, without a copy where there is a way."""
    if isinstance(values, Tensor):
        return values.detach()
    array = np.asarray(values)
    if array.dtype.kind not in "biuf":
        raise InputError(
            f"{name} must hold numbers, found an array of {array.dtype}; encode text and "
            "categories as numbers first"
        )
    array = np.asarray(array, array.dtype.newbyteorder("="))  # torch knows the machine's own only
    if any(step < 0 or step % array.itemsize for step in array.strides):  # nor reversed axes
        array = np.ascontiguousarray(array)
    with warnings.catch_warnings():
        # a read-only array, memory-mapped for example, is welcome: samples are never written to
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        return torch.from_numpy(array)


def _as_labels(values: Any) -> Tensor:
    if values is None:
        raise InputError("y must hold one class index per sample, found None")
    if not isinstance(values, Tensor) and np.asarray(values).dtype.kind in "OSU":
        raise InputError(
            "labels must be integer class indices 0, 1, …, found text or objects; encode them "
            "(sklearn.preprocessing.LabelEncoder) or use DOSClassifier, which takes any labels"
        )
    y = as_tensor(values, "y")
    if y.is_floating_point() or y.is_complex() or y.dtype == torch.bool:
        raise InputError(
            f"labels must be integer class indices 0, 1, …, found {y.dtype}; "
            "convert them (y.long()) or use DOSClassifier, which takes any labels"
        )
    if y.ndim != 1:
        raise InputError(
            f"labels must be one class index per sample, shape (m,), found {tuple(y.shape)}; "
            "turn one-hot rows into indices with y.argmax(1)"
        )
    y = y.long()
    if len(y) and int(y.min()) < 0:
        row = int(y.argmin())
        raise InputError(f"labels must be 0 or more, found {int(y[row])} at row {row}")
    return y


def _check_finite(x: Tensor | View) -> None:
    start = 0
    for part in chunks(x):
        good = part.isfinite().flatten(1).all(1)
        if not bool(good.all()):
            row = start + int((~good).long().argmax())
            raise InputError(
                f"samples must be finite numbers, found NaN or infinity in sample {row}; "
                "impute or remove such samples"
            )
        start += len(part)
