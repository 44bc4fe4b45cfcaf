"""The paper's first experiment: every image ten times, mirrored and rotated."""

from __future__ import annotations

from numbers import Integral

import torch
from torch import Generator

from ..augmentation import MirrorAndTurn
from ..errors import InputError
from ..samples import Samples
from ..views import View

__all__ = ["mirrored_and_rotated"]


def mirrored_and_rotated(samples: Samples, times: int = 10, *, generator: Generator) -> Samples:
    """Each image as it is and ``times - 1`` changed copies: stored once, as an index and an angle.

    Every other copy is mirrored; each is turned by an angle uniform in [0, 2π) (R14). The copies
    of an image stand together, the image itself first.
    """
    copied = isinstance(samples.x, View) and samples.x.change is not None
    if not isinstance(times, Integral) or times < 1 or copied or samples.x.ndim != 4:
        raise InputError(
            "times must be at least 1 and the samples images (m, c, h, w), no copies themselves, "
            f"found times={times!r} and {'copies' if copied else tuple(samples.x.shape)}"
        )
    x = samples.x if isinstance(samples.x, View) else View.of(samples.x)
    m = len(samples)
    u = torch.rand(m, times, MirrorAndTurn.draws, generator=generator)
    u[:, :, 0] = torch.arange(times) % 2 / 2  # every other one is mirrored
    u[:, 0] = 0  # an angle of 0: the image as it is
    rows = torch.arange(m, device=x.device).repeat_interleave(times)
    view = View(x.stored, x.rows[rows], MirrorAndTurn(), u.flatten(0, 1).to(x.device), x.on_disk)
    return samples.with_x(view, samples.y[rows])
