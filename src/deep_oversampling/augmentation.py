"""Changed copies of images: each a pure function of a batch and of uniform numbers.

The numbers are drawn by whoever presents the batch, from the run's own generator on the CPU, so
they are the same for every device (turned pixels may round differently); the work itself is done
on the batch's device, all images together.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Integral, Real
from typing import ClassVar, Protocol

import torch
from torch import Tensor
from torch.nn.functional import affine_grid, grid_sample, pad

from .errors import InputError

__all__ = ["Augmentation", "CropAndFlip", "InTurn", "MirrorAndTurn", "Turn"]


class Augmentation(Protocol):
    """A batch and ``draws`` numbers in [0, 1) for each of its images in, a batch like it out."""

    @property
    def draws(self) -> int: ...

    def __call__(self, x: Tensor, u: Tensor) -> Tensor: ...


@dataclass(frozen=True)
class CropAndFlip:
    """Pad by a few pixels of 0, cut out a piece of the old size, mirror every other image."""

    padding: int = 4
    draws: ClassVar[int] = 3

    def __post_init__(self) -> None:
        if not isinstance(self.padding, Integral) or self.padding < 0:
            raise InputError(f"padding must be a whole number of pixels, found {self.padding!r}")

    def __call__(
        self,
        x: Tensor,  # (b, c, h, w)
        u: Tensor,  # (b, 3)
    ) -> Tensor:  # (b, c, h, w)
        b, c, h, w = _image_shape(x)
        start = (u[:, :2] * (2 * self.padding + 1)).long()
        rows = start[:, :1] + torch.arange(h, device=x.device)  # (b, h)
        columns = torch.arange(w, device=x.device).expand(b, w)
        columns = start[:, 1:] + torch.where(u[:, 2:] < 0.5, columns, w - 1 - columns)  # (b, w)
        image = torch.arange(b, device=x.device).view(b, 1, 1, 1)
        channel = torch.arange(c, device=x.device).view(1, c, 1, 1)
        around = pad(x, [self.padding] * 4)
        return around[image, channel, rows[:, None, :, None], columns[:, None, None, :]]


@dataclass(frozen=True)
class Turn:
    """Turn by up to so many degrees either way."""

    degrees: float = 15.0
    draws: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if not isinstance(self.degrees, Real) or not 0 <= self.degrees < math.inf:
            raise InputError(f"degrees must be a number, 0 or more, found {self.degrees!r}")

    def __call__(self, x: Tensor, u: Tensor) -> Tensor:
        return _turned(x, (2 * u[:, 0] - 1) * torch.pi * self.degrees / 180)


@dataclass(frozen=True)
class MirrorAndTurn:
    """Mirror every other image, then turn by any angle."""

    draws: ClassVar[int] = 2

    def __call__(self, x: Tensor, u: Tensor) -> Tensor:
        b, _, _, _ = _image_shape(x)
        mirrored = torch.where(u[:, 0].view(b, 1, 1, 1) < 0.5, x, x.flip(-1))
        return _turned(mirrored, 2 * torch.pi * u[:, 1])


@dataclass(frozen=True)
class InTurn:
    """One augmentation after the other: ``InTurn((CropAndFlip(), Turn(10)))``."""

    parts: tuple[Augmentation, ...]

    @property
    def draws(self) -> int:
        return sum(part.draws for part in self.parts)

    def __call__(self, x: Tensor, u: Tensor) -> Tensor:
        shares = u.split([part.draws for part in self.parts], dim=1)
        for part, share in zip(self.parts, shares, strict=True):
            x = part(x, share)
        return x


def _turned(
    x: Tensor,  # (b, c, h, w)
    angle: Tensor,  # (b,)  radians, counter-clockwise
) -> Tensor:
    """About the centre, bilinear; what comes in at the corners is mirrored, not black."""
    _, _, h, w = _image_shape(x)
    cos, sin, zero = angle.cos(), angle.sin(), torch.zeros_like(angle)
    # grid_sample measures both axes from -1 to 1, whatever their lengths
    turn = torch.stack([cos, -sin * (h / w), zero, sin * (w / h), cos, zero], 1).view(-1, 2, 3)
    floats = x if x.is_floating_point() else x.float()
    grid = affine_grid(turn.to(floats.dtype), list(x.shape), align_corners=False)
    turned = grid_sample(floats, grid, padding_mode="reflection", align_corners=False)
    return turned if x.is_floating_point() else turned.round().to(x.dtype)


def _image_shape(x: Tensor) -> tuple[int, int, int, int]:
    if x.ndim != 4:
        raise InputError(
            f"augmentation must be given images (b, c, h, w), found shape {tuple(x.shape)}; "
            "leave it out for other data or pass a function of your own"
        )
    b, c, h, w = x.shape
    return b, c, h, w
