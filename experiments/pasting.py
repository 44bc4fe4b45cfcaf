"""Images that are made of parts, as their targets are: a piece of an in-class neighbour is put in.

A mean of two pictures is no picture, but a picture with a piece of another of its class is nearly
one. So rare images are not shown again and again as they are.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from deep_oversampling import Samples
from deep_oversampling.overloading import Neighborhoods
from deep_oversampling.oversampling import MicroClusters
from deep_oversampling.rivals.tables import Grouped


@dataclass(frozen=True, eq=False)
class Pasted:
    """What a round presents: images, some of them with a piece of another of their class."""

    samples: Samples
    row: Tensor  # (rows,)  which image
    other: Tensor  # (rows,)  whose piece
    piece: Tensor  # (rows, 4)  its top, bottom, left and right; empty: none is put in

    @classmethod
    def drawn(
        cls,
        samples: Samples,
        row: Tensor,  # (rows,)
        generator: Generator,
        *,
        often: float = 0.5,  # the share of images that a piece is put into
        near: Neighborhoods | None = None,  # of m; default: all images of a class
    ) -> Pasted:
        h, w = samples.x.shape[-2:]
        y, row = samples.y.cpu(), row.cpu()
        if near is None:
            other = Grouped(y).one_of(y[row], generator, but=row)
        else:
            index, there = near.index.cpu()[row], near.mask.cpu()[row].sum(1) - 1
            which = 1 + (torch.rand(len(row), generator=generator) * there).long()
            other = index.gather(1, which.clamp(max=there).unsqueeze(1)).squeeze(1)
        u = torch.rand(len(row), 4, generator=generator)
        side = (u[:, 0].sqrt() * (u[:, 3] < often)).unsqueeze(1)  # of an area that is uniform
        size, whole = side * torch.tensor([h, w]), torch.tensor([h, w])
        centre = u[:, 1:3] * whole
        first = (centre - size / 2).round().clamp(min=0)
        last = torch.minimum((centre + size / 2).round(), whole)
        piece = torch.stack([first[:, 0], last[:, 0], first[:, 1], last[:, 1]], 1).long()
        return cls(samples, *(one.to(samples.y.device) for one in (row, other, piece)))

    def __len__(self) -> int:
        return len(self.row)

    def __getitem__(self, rows: Tensor) -> Samples:
        h, w = self.samples.x.shape[-2:]
        i, j = self.row[rows], self.other[rows]
        top, bottom, left, right = self.piece[rows].unsqueeze(-1).unbind(-2)
        down, across = torch.arange(h, device=i.device), torch.arange(w, device=i.device)
        inside = ((down >= top) & (down < bottom)).unsqueeze(-1)
        inside = (inside & ((across >= left) & (across < right)).unsqueeze(-2)).unsqueeze(-3)
        x = torch.where(inside, self.samples.x[j], self.samples.x[i])
        return self.samples.with_x(x, self.samples.y[i])


@dataclass(frozen=True, eq=False)
class PastedClusters:
    """The same, with a micro-cluster of both embeddings, weighted by their shares of the area."""

    table: Pasted
    v: Tensor  # (m, d)
    variance: Tensor  # ()

    def __len__(self) -> int:
        return len(self.table)

    def __getitem__(self, rows: Tensor) -> MicroClusters:
        batch, own, other = self.table[rows], self.table.row[rows], self.table.other[rows]
        top, bottom, left, right = self.table.piece[rows].unbind(-1)
        pixels = batch.x.shape[-1] * batch.x.shape[-2]
        share = ((bottom - top) * (right - left) / pixels).to(self.v.dtype)
        w = torch.stack([1 - share, share], -1)
        v = self.v[torch.stack([own, other], -1)]
        return MicroClusters(batch.x, batch.y, v, w / self.variance, w > 0)
