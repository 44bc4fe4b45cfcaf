"""Sums over embeddings that nobody keeps: their variance, and how compact the classes are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import torch
from torch import Tensor

from .errors import TrainingError

__all__ = ["Moments", "Spread", "moments_of", "total_variance"]

_BLOCK = 2**17  # numbers at a time: what is computed of them stays in the caches


@dataclass(frozen=True)
class Spread:
    """How compact the classes are: variance within them and between their means."""

    within: float
    between: float

    @property
    def ratio(self) -> float:
        """Between over within: class distinction, free of the embeddings' scale."""
        return self.between / self.within if self.within > 0 else float("inf")


@dataclass(eq=False)
class Moments:
    """What embeddings add up to, block by block; in float64, from where the first of them is.

    Embeddings that are all alike have a variance of exactly 0, wherever they are.
    """

    origin: Tensor  # (d,)    the first
    count: Tensor  # (n,)    m_j
    sums: Tensor  # (n, d)  of each class
    squares: Tensor  # (n,)    Σ‖v − origin‖² of each class
    total: Tensor  # (d,)    of all, by itself: a GPU adds up classes in any order
    total_squares: Tensor  # (d,)

    @classmethod
    def starting(cls, first: Tensor, n: int) -> Moments:  # (d,)
        origin = _double(first)
        zeros = origin.new_zeros
        d = len(first)
        return cls(origin, zeros(n), zeros(n, d), zeros(n), zeros(d), zeros(d))

    def add(self, v: Tensor, y: Tensor) -> None:  # (b, d), (b,)
        v, y = _double(v) - self.origin, y.to(self.origin.device)
        self.count.index_add_(0, y, torch.ones_like(v[:, 0]))
        self.sums.index_add_(0, y, v)
        self.total += v.sum(0)
        v.square_()
        self.squares.index_add_(0, y, v.sum(1))
        self.total_squares += v.sum(0)

    def variance(self, dtype: torch.dtype) -> Tensor:  # ()
        """Mean squared distance of all from their mean, in the embeddings' precision."""
        m = self.count.sum()
        each = ((self.total_squares - self.total.square() / m) / m).clamp(min=0)  # (d,)
        variance = each.to(dtype).sum()
        if not bool(variance > 0):
            raise TrainingError(
                f"embeddings must differ between samples, found all {int(m)} alike: the embedder "
                "has collapsed to one point; lower the learning rate or check that it uses its "
                "input"
            )
        return variance

    def spread(self) -> Spread:
        """Mean squared distance to the class mean, and of the class means from theirs.

        Every class counts the same, however few samples it has.
        """
        count = self.count.clamp(min=1)
        means = self.sums / count.unsqueeze(1)
        within = (self.squares / count - means.square().sum(1)).clamp(min=0)
        between = (means - means.mean(0)).square().sum(1)
        return Spread(float(within.mean()), float(between.mean()))

    def flat(self) -> Tensor:
        """All of it as one row of numbers, to be sent to others."""
        return torch.cat([getattr(self, field.name).flatten() for field in fields(self)])

    @classmethod
    def joined(cls, sent: Sequence[Tensor], n: int) -> Moments:
        """Of what others have seen, from their rows of numbers."""
        first, *others = (cls._from(row, n) for row in sent)
        for other in others:
            first._include(other)
        return first

    @classmethod
    def _from(cls, row: Tensor, n: int) -> Moments:
        d = (len(row) - 2 * n) // (n + 3)
        origin, count, sums, squares, total, total_squares = row.split([d, n, n * d, n, d, d])
        return cls(origin, count, sums.view(n, d), squares, total, total_squares)

    def _include(self, other: Moments) -> None:
        """Theirs are measured from elsewhere: Σ(a + o) = Σa + mo, Σ(a + o)² = Σa² + 2oΣa + mo²."""
        off, m = other.origin - self.origin, other.count.sum()
        counts = other.count.unsqueeze(1)
        self.squares += other.squares + 2 * other.sums @ off + other.count * off.square().sum()
        self.sums += other.sums + counts * off
        self.total_squares += other.total_squares + 2 * off * other.total + m * off.square()
        self.total += other.total + m * off
        self.count += other.count


def moments_of(v: Tensor, y: Tensor, n: int) -> Moments:  # (m, d), (m,)
    """Of embeddings that are all at hand."""
    found = Moments.starting(v[0], n)
    size = max(1, _BLOCK // v.shape[1])
    for block, classes in zip(v.split(size), y.split(size), strict=True):
        found.add(block, classes)
    return found


def total_variance(v: Tensor) -> Tensor:  # (m, d) -> ()
    """Mean squared distance of the embeddings from their mean."""
    alike = torch.zeros(len(v), dtype=torch.long, device=v.device)
    return moments_of(v, alike, 1).variance(v.dtype).to(v.device)


def _double(v: Tensor) -> Tensor:
    return (v.cpu() if v.device.type == "mps" else v).detach().double()  # mps has no float64
