"""𝒵′ whose pictures are made as their targets are: with a piece of an in-class neighbour.

SMOTE interpolates between a sample and one of its neighbours. A mean of two pictures is no picture,
but a picture with a piece of another of its class is nearly one. So w is drawn on an edge of the
simplex, between x itself and one neighbour, and the areas in a picture are that w (docs/modern.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real

import torch
from torch import Generator, Tensor

from .errors import InputError
from .oversampling import MicroClusters, Overloaded
from .samples import Samples

__all__ = ["Pieced", "check_share", "with_pieces"]


@dataclass(frozen=True, eq=False)
class Pieced:
    """The rows of 𝒵′; those with neighbours show a piece of one, and have w = (1 − a, a).

    Their micro-cluster is that of both embeddings, stored ones: the picture is not x_i any more. It
    is there for ℓ′_f alone; what g learns from is the picture.
    """

    table: Overloaded
    member: Tensor  # (c,)    of its neighbourhood, which one a row with neighbours shows a piece of
    piece: Tensor  # (c, 4)  its top, bottom, left and right; empty: none is put in

    @property
    def samples(self) -> Samples:
        return self.table.samples

    def __len__(self) -> int:
        return len(self.table)

    def __getitem__(self, rows: Tensor | int) -> MicroClusters:  # (…, b), or a batch of one
        z = self.table
        rows = rows if isinstance(rows, Tensor) else torch.tensor([range(len(self))[rows]])
        i, (place, there) = z.anchor[rows], z.places(rows)
        own = z.hood[place]  # rows of v
        other = z.neighborhoods.index[own, self.member[place]]
        j = torch.where(there.squeeze(-1), z.kept[other], i)
        x, inside = self.samples.x[i], self._inside(place)
        a = inside.flatten(-2).float().mean(-1)
        w = torch.stack([1 - a, a], -1) / z.variance * there
        return MicroClusters(
            x=torch.where(inside.unsqueeze(-3), self.samples.x[j], x),
            y=self.samples.y[i],
            v=z.v[torch.stack([own, other], -1)],
            w=w,
            mask=torch.zeros_like(w[..., :0], dtype=torch.bool),
        )

    def __getitems__(self, rows: Sequence[int]) -> list[MicroClusters]:
        """What a DataLoader asks for: a whole batch at once."""
        return [self[torch.tensor(rows, device=self.member.device)]]

    def _inside(self, place: Tensor) -> Tensor:  # (…, b) -> (…, b, h, w)
        """Which pixels are the neighbour's."""
        height, width = self.samples.x.shape[-2:]
        down = torch.arange(height, device=place.device)
        across = torch.arange(width, device=place.device)
        top, bottom, left, right = self.piece[place].unsqueeze(-1).unbind(-2)  # (…, b, 1) each
        rows, columns = (down >= top) & (down < bottom), (across >= left) & (across < right)
        return rows.unsqueeze(-1) & columns.unsqueeze(-2)


def check_share(pieces: float) -> None:
    if not isinstance(pieces, Real) or not 0 <= pieces <= 1:
        raise InputError(
            f"pieces must be a share between 0 and 1, found {pieces!r}; 0.5 puts one into every "
            "other picture"
        )


def with_pieces(
    table: Overloaded,
    pieces: float,  # the share of rows that one is put into
    *,
    generator: Generator,
) -> Pieced:
    """A neighbour for every row that has some, and a piece of it: a is uniform, so is its place.

    What lies beyond the border is cut off, and missing in a.
    """
    check_share(pieces)
    if table.samples.x.ndim != 4 or not len(table.crowded):
        raise InputError(
            "pieces must be of pictures (m, c, h, w) that have neighbours, found samples of shape "
            f"{tuple(table.samples.x.shape)} and {len(table.crowded)} rows with neighbours; make "
            "the table of pictures by a plan with k of 1 or more, such as Plan.in_part, or present "
            "it as it is"
        )
    height, width = table.samples.x.shape[-2:]
    u = torch.rand(len(table.crowded), 5, generator=generator)  # on the CPU, for every device alike
    there = table.neighborhoods.mask.sum(1).cpu()[table.hood.cpu()] - 1  # neighbours of each row
    member = torch.minimum(1 + (u[:, 0] * there).long(), there)  # 0, itself, where there is none
    whole = torch.tensor([height, width])
    size = (u[:, 1].sqrt() * (u[:, 2] < pieces)).unsqueeze(1) * whole
    centre = u[:, 3:] * whole
    first = (centre - size / 2).round().clamp(min=0)
    last = torch.minimum((centre + size / 2).round(), whole)
    piece = torch.stack([first[:, 0], last[:, 0], first[:, 1], last[:, 1]], 1).long()
    device = table.anchor.device
    return Pieced(table, member.to(device), piece.to(device))
