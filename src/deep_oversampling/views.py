"""Samples that stay where they are: rows of a stored tensor, gathered when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
import torch
from numpy.typing import DTypeLike, NDArray
from torch import Tensor

from .ahead import ahead

__all__ = ["View", "chunks"]

_ROOM = 2**25  # bytes that a chunk may take up as float32
_READERS = 16  # threads that wait for a disk
_FEW = 2**20  # bytes, for which no thread is started
_SHARE = 0.5  # of a GPU's free memory that samples on disk may take


@dataclass(frozen=True, eq=False)
class View:
    """x as an index: ``view[rows]`` is a tensor, and nothing else is read or copied.

    What is stored may be larger than memory (a memory-mapped file); a view of it costs eight
    bytes a sample. With a ``change``, sample i is ``change(stored[rows[i]], u[i])``: ten turned
    copies of an image are one image and ten angles.

    >>> view = View(torch.arange(8).view(4, 2), torch.tensor([3, 1, 1]))
    >>> view.shape, view[1:].tolist()
    (torch.Size([3, 2]), [[2, 3], [2, 3]])
    """

    stored: Tensor  # (M, …)
    rows: Tensor  # (m,)        which of them, repeated or not
    change: Callable[[Tensor, Tensor], Tensor] | None = None  # (b, …), (b, draws) -> (b, …)
    u: Tensor | None = None  # (m, draws)  what the change of each sample depends on
    on_disk: bool = False  # memory-mapped: many rows are read by several threads
    delivered: torch.device | None = None  # where rows go; None: they stay where they are stored

    @classmethod
    def of(cls, stored: Tensor, *, on_disk: bool = False) -> View:
        """All of what is stored, in its order."""
        everything = torch.arange(len(stored), device=stored.device)
        return cls(stored, everything, on_disk=on_disk)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, key: Tensor | NDArray[Any] | slice | int) -> Tensor:
        if isinstance(key, Integral) or (isinstance(key, Tensor | np.ndarray) and key.ndim == 0):
            return self[torch.tensor([int(key)])][0]
        if isinstance(key, Tensor) and key.ndim > 1:  # rows of several batches
            return self[key.flatten()].view(*key.shape, *self.shape[1:])
        picked = self.select(key)
        x = _read(picked) if self.on_disk else picked.stored[picked.rows]
        x = x.to(self.delivered, non_blocking=True) if self.delivered else x
        if picked.change is None or picked.u is None:
            return x
        return picked.change(x, picked.u.to(x.device))

    def select(self, key: Any) -> View:
        """The samples at ``key`` (indices, a mask or a slice), still not gathered."""
        if isinstance(key, np.ndarray):
            key = torch.from_numpy(key)
        if isinstance(key, Tensor):
            key = key.to(self.rows.device)
        u = None if self.u is None else self.u[key]
        return replace(self, rows=self.rows[key], u=u)

    def to(self, device: torch.device | str) -> View:
        """The same view of a copy on another device, which holds the rows in use, once each.

        What is on disk, and too much for a GPU, stays there, and rows go as they are asked for.
        """
        device = torch.device(device)
        if device == self.device or (device.type == self.device.type and device.index is None):
            return self
        if self.delivered and device.type == self.stored.device.type:
            return replace(self, delivered=None)
        if self.on_disk and self._is_too_large_for(device):
            return replace(self, delivered=device)
        used, rows = self.rows.unique(return_inverse=True)
        stored = torch.empty((len(used), *self.shape[1:]), dtype=self.dtype, device=device)
        start = 0
        for part in chunks(View(self.stored, used)):
            stored[start : start + len(part)] = part.to(device)
            start += len(part)
        u = None if self.u is None else self.u.to(device)
        return View(stored, rows.to(device), self.change, u)

    def _is_too_large_for(self, device: torch.device) -> bool:
        if device.type != "cuda":
            return False
        size = self.shape.numel() * self.dtype.itemsize
        return size > _SHARE * torch.cuda.mem_get_info(device)[0]

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        """Everything gathered, for scikit-learn and NumPy; ``copy`` is made in any case."""
        return np.asarray(self[:].cpu().numpy(), dtype)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled with the rows in use, not with all that is stored."""
        used, rows = self.rows.unique(return_inverse=True)
        return View, (self.stored[used], rows, self.change, self.u)

    @property
    def shape(self) -> torch.Size:
        return torch.Size((len(self.rows), *self.stored.shape[1:]))

    @property
    def ndim(self) -> int:
        return self.stored.ndim

    @property
    def dtype(self) -> torch.dtype:
        return self.stored.dtype

    @property
    def device(self) -> torch.device:
        return self.delivered or self.stored.device

    def is_floating_point(self) -> bool:
        return self.stored.is_floating_point()


def _read(view: View) -> Tensor:  # without its change
    """A thread waits for the disk row by row; several wait for several rows at once."""
    if view.shape.numel() * view.dtype.itemsize < _FEW:
        return view.stored[view.rows]
    pinned = view.device.type == "cuda"  # from there it is copied while others compute
    x = torch.empty(view.shape, dtype=view.dtype, pin_memory=pinned)
    size = -(-len(x) // _READERS)

    def read(part: Tensor, rows: Tensor) -> None:
        torch.index_select(view.stored, 0, rows, out=part)

    with ThreadPoolExecutor(_READERS) as readers:
        list(readers.map(read, x.split(size), view.rows.split(size)))  # raises what they raise
    return x


def chunks(x: Tensor | View, most: int = 4096) -> Iterator[Tensor]:
    """All of x, in parts of ``most`` samples, or of fewer where samples are large.

    >>> [len(part) for part in chunks(torch.zeros(10, 3), most=4)]
    [4, 4, 2]
    """
    size = min(most, max(1, _ROOM // (4 * max(1, x.shape[1:].numel()))))
    parts = [slice(start, start + size) for start in range(0, len(x), size)]
    few = size * x.shape[1:].numel() * x.dtype.itemsize < _FEW
    if isinstance(x, View) and x.on_disk and not few and len(parts) > 1:
        return ahead(x.__getitem__, parts, x.device)
    return (x[part] for part in parts)
