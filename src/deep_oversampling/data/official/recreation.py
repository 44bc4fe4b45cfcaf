"""MNIST-back-rotation made anew from MNIST and two photographs, in integers throughout.

Floating-point sums come out differently where their order or their fused operations differ, so
on another processor a grey level would now and then be another one. Integers have no such
freedom: the set is the same bytes on every machine, and one fingerprint stands for it.
"""

from __future__ import annotations

import hashlib
import math
from typing import Any

import numpy as np
import torch
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from torch import Generator

from ...errors import InputError
from ...seeding import streams

__all__ = ["FULL_TURN", "cosines", "digest_of", "patches", "photographs", "recreated", "rotated"]

Bytes = NDArray[np.uint8]

FULL_TURN = 2**16  # angles are whole numbers of its parts

_SIDE = 28
_ONE = 2**16  # 1 in the table of cosines
_STEPS = 2**10  # of a pixel, to which places between pixels are rounded
_MARGIN = 6  # pixels around an image, so that its corners stay inside at every angle
_CHUNK = 256  # images turned together; more no longer fit the processor's cache
_CONTRAST = 20  # standard deviation, in grey levels, that a patch must exceed

# The fingerprint of the grey photographs, as Pillow's own packages decode them.
_PHOTOGRAPHS = "d8e38ebfa057e36ae550db70b15f89da"


def recreated(x: Bytes, y: NDArray[Any], *, seed: int) -> tuple[Bytes, NDArray[Any]]:
    """The digits (m, 28, 28) in a random order, turned at random, before a random background.

    As the authors of the set describe it, with the two photographs of scikit-learn for their
    twenty: the angle is uniform over the full turn, and a pixel is the brighter one of the digit
    and of the patch behind it.
    """
    rng = streams(seed)
    order = torch.randperm(len(x), generator=rng("order")).numpy()
    angles = torch.randint(FULL_TURN, (len(x),), generator=rng("angles")).numpy()
    behind = patches(photographs(), len(x), generator=rng("patches"))
    return np.maximum(rotated(x[order], angles), behind), y[order]


def cosines() -> NDArray[np.int32]:  # (FULL_TURN,)
    """The cosine of every angle in fixed point; its quarters mirror the first one exactly."""
    quarter = FULL_TURN // 4
    first = [round(_ONE * math.cos(math.tau * a / FULL_TURN)) for a in range(quarter + 1)]
    half = first[:-1] + [-c for c in first[:0:-1]]
    return np.array(half + [-c for c in half], np.int32)


def rotated(
    x: Bytes,  # (m, 28, 28)
    angles: NDArray[np.int64],  # (m,)  0 … FULL_TURN - 1
) -> Bytes:
    """Every image turned counter-clockwise about its exact centre, bilinear, black around it."""
    table, out = cosines(), np.empty_like(x)
    for start in range(0, len(x), _CHUNK):
        part = slice(start, start + _CHUNK)
        out[part] = _turned(x[part], table[angles[part]], table[angles[part] - FULL_TURN // 4])
    return out


def _turned(x: Bytes, cos: NDArray[np.int32], sin: NDArray[np.int32]) -> NDArray[np.int32]:
    padded = np.pad(x, [(0, 0), (_MARGIN, _MARGIN), (_MARGIN, _MARGIN)])
    width = padded.shape[2]
    # Twice the distance from the centre, which lies between two pixels: odd and whole.
    u = np.arange(1 - _SIDE, _SIDE, 2, dtype=np.int32)  # to the right, and down
    right, down = u, u[:, None]
    cos, sin = cos[:, None, None], sin[:, None, None]
    column = _steps(cos * right - sin * down)  # (b, 28, 28)  where a pixel comes from
    row = _steps(sin * right + cos * down)

    first = np.arange(len(x))[:, None, None] * padded[0].size
    at = first + (row // _STEPS) * width + column // _STEPS
    pixels = padded.reshape(-1)
    fx, fy = column % _STEPS, row % _STEPS  # shares of the pixel to the right, below
    above = pixels[at] * (_STEPS - fx) + pixels[at + 1] * fx
    below = pixels[at + width] * (_STEPS - fx) + pixels[at + width + 1] * fx
    mixed: NDArray[np.int32] = above * (_STEPS - fy) + below * fy  # up to 255 * 2**20
    return (mixed + _STEPS**2 // 2) // _STEPS**2


def _steps(doubled: NDArray[np.int32]) -> NDArray[np.int32]:
    """Doubled distances in fixed point, as steps from the padded image's first pixel."""
    centre = (_SIDE - 1 + 2 * _MARGIN) * _ONE
    parts = 2 * _ONE // _STEPS  # of a step
    return (doubled + (centre + parts // 2)) // parts


def photographs() -> Bytes:  # (2, h, w)
    """scikit-learn's two photographs in grey; other pixels than the known ones are refused.

    Refused, and not merely reported: one name in a table must stand for one set of images.
    """
    from sklearn.datasets import load_sample_images

    colours = np.stack(load_sample_images().images).astype(np.int32)  # (2, h, w, 3)
    grey: Bytes = ((colours.sum(3) + 1) // 3).astype(np.uint8)  # rounded: a third is never a half
    if digest_of(grey) != _PHOTOGRAPHS:
        raise InputError(
            f"scikit-learn's sample photographs must have the fingerprint {_PHOTOGRAPHS}, found "
            f"{digest_of(grey)}: this JPEG decoder gives other pixels; install Pillow from its "
            "own packages (pip install --force-reinstall pillow)"
        )
    return grey


def patches(photos: Bytes, count: int, *, generator: Generator) -> Bytes:  # (count, 28, 28)
    """Pieces of the photographs (p, h, w), uniformly among those with enough contrast."""
    area = _SIDE**2
    total, squares = (_window_sums(photos.astype(np.int64) ** power) for power in (1, 2))
    # s² > contrast², with both sides times the area and the area less one
    good = np.argwhere(area * squares - total**2 > _CONTRAST**2 * area * (area - 1))
    drawn = torch.randint(len(good), (count,), generator=generator).numpy()
    photo, row, column = good[drawn].T
    found: Bytes = sliding_window_view(photos, (_SIDE, _SIDE), (1, 2))[photo, row, column]
    return found


def _window_sums(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Of every 28 × 28 window of (p, h, w)."""
    for axis in (1, 2):
        values = sliding_window_view(values, _SIDE, axis).sum(-1)
    return values


def digest_of(*arrays: NDArray[Any]) -> str:
    """Of the bytes of the arrays, one after the other."""
    digest = hashlib.blake2b(digest_size=16)
    for array in arrays:
        digest.update(array.tobytes())
    return digest.hexdigest()
