"""What the rivals present: samples drawn again, with made ones after them, or mixed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Generator, Tensor

from ..oversampling import Overloaded
from ..presenting import Table
from ..samples import Samples

__all__ = ["Grouped", "Joined", "Mixed", "MixedBatch", "Redrawn", "class_balanced", "some_rows"]


@dataclass(frozen=True, eq=False)
class Redrawn:
    """Rows of 𝒳, any number of times each; an index, no copy."""

    samples: Samples
    index: Tensor  # (rows,)

    def __len__(self) -> int:
        return len(self.index)

    def __getitem__(self, rows: Tensor) -> Samples:
        return self.samples[self.index[rows]]


@dataclass(frozen=True, eq=False)
class Joined:
    """𝒳, which stays where it is stored, and after its m rows those that were made."""

    samples: Samples
    made: Samples  # in the same storage type, on the same device

    def __len__(self) -> int:
        return len(self.samples) + len(self.made)

    def __getitem__(self, rows: Tensor) -> Samples:  # (…, b) -> x (…, b, c, h, w), y (…, b)
        """Both are gathered and one is kept: shapes are fixed, the device is not waited for."""
        m, flat = len(self.samples), rows.flatten()  # as the change of a view wants them
        is_made, stored, made = flat >= m, flat.clamp(max=m - 1), (flat - m).clamp(min=0)
        y = torch.where(is_made, self.made.y[made], self.samples.y[stored])
        is_made = is_made.view(-1, *[1] * (self.samples.x.ndim - 1))
        x = torch.where(is_made, self.made.x[made], self.samples.x[stored])
        return self.samples.with_x(x.view(*rows.shape, *x.shape[1:]), y.view(rows.shape))


@dataclass(frozen=True, eq=False)
class _Part:
    table: Table
    rows: Tensor  # (size,)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, rows: Tensor) -> Any:
        return self.table[self.rows[rows]]


def some_rows(table: Table, rows: Tensor) -> Table:
    """A part of a table; one of 𝒵′ is such a table itself."""
    if isinstance(table, Overloaded):
        return table.some(rows)
    return _Part(table, rows)


class Grouped:
    """Samples in order of their group, to draw from as often as one likes."""

    def __init__(self, group: Tensor) -> None:  # (m,)  of each sample
        group = group.cpu()
        self.counts = torch.bincount(group)
        self._rows = group.argsort(stable=True)  # group after group
        self._start = self.counts.cumsum(0) - self.counts

    @property
    def present(self) -> Tensor:
        """The groups that have samples."""
        return self.counts.nonzero().flatten()

    def one_of(
        self,
        wanted: Tensor,  # (size,)  groups
        generator: Generator,
        *,
        but: Tensor | None = None,  # (size,)  samples of those groups
    ) -> Tensor:  # (size,)  rows
        """A sample of each wanted group, at random; not the one excepted, if there is another."""
        wanted = wanted.cpu()
        start, size = self._start[wanted], self.counts[wanted]
        u = torch.rand(len(wanted), generator=generator, dtype=torch.float64)
        if but is None:
            return self._rows[start + (u * size).long()]
        place = torch.empty_like(self._rows)
        place[self._rows] = torch.arange(len(place))
        on = torch.where(size > 1, 1 + (u * (size - 1)).long(), 0)  # 1 … size − 1, in a circle
        return self._rows[start + (place[but.cpu()] - start + on) % size]

    def balanced(self, size: int, generator: Generator) -> Tensor:  # -> (size,)  rows
        """Draw a group, all alike, then one of its samples."""
        present = self.present
        drawn = torch.randint(len(present), (size,), generator=generator)
        return self.one_of(present[drawn], generator)


def class_balanced(y: Tensor, size: int, generator: Generator) -> Tensor:  # (m,) -> (size,)
    """What class-balanced sampling presents."""
    return Grouped(y).balanced(size, generator)


@dataclass(frozen=True, eq=False)
class MixedBatch:
    """A batch whose images are mixed with each other: image i with the i-th from its end."""

    x: Tensor  # (b, …)
    y: Tensor  # (b,)
    share: Tensor  # (b,)  of the image itself; the other has the rest

    def with_x(self, x: Tensor) -> MixedBatch:
        return replace(self, x=x)


@dataclass(frozen=True, eq=False)
class Mixed:
    """𝒳 with a share for every sample, uniform: Beta(α, α) with the α = 1 of both publications.

    Batches are in random order, so image b − i is a random partner of image i.
    """

    samples: Samples
    share: Tensor  # (m,)

    @classmethod
    def drawn(cls, samples: Samples, generator: Generator) -> Mixed:
        share = torch.rand(len(samples), generator=generator)  # on the CPU, for every device alike
        return cls(samples, share.to(samples.y.device))

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, rows: Tensor) -> MixedBatch:
        return MixedBatch(self.samples.x[rows], self.samples.y[rows], self.share[rows])
