"""A picture of samples of every class, one row each."""

from __future__ import annotations

import secrets
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont
from torch import Tensor

from ..errors import InputError
from ..samples import Samples

__all__ = ["contact_sheet", "is_image", "save_contact_sheet"]

_TILE = 64  # pixels; smaller images are enlarged by a whole number, larger ones reduced
_MARGIN = 4
_NAME = 140  # width of the column of class names


def is_image(samples: Samples) -> bool:
    """Whether the samples can be drawn: (m, 1 or 3, h, w)."""
    shape = samples.x.shape
    return len(shape) == 4 and shape[1] in (1, 3) and min(shape) > 0


def contact_sheet(samples: Samples, per_class: int = 10) -> Image.Image:
    """The first samples of each class, with its name and how many there are."""
    if not is_image(samples):
        raise InputError(
            "only images (m, 1 or 3, h, w) can be drawn, found samples of shape "
            f"{tuple(samples.x.shape[1:])}; leave the picture out"
        )
    step = _TILE + _MARGIN
    sheet = Image.new("RGB", (_NAME + per_class * step, samples.n * step + _MARGIN), "white")
    draw, font = ImageDraw.Draw(sheet), ImageFont.load_default(13)
    for j, name in enumerate(samples.classes):
        top = _MARGIN + j * step
        rows = (samples.y == j).nonzero().flatten()
        draw.text((_MARGIN, top + _TILE // 4), f"{name}\n{len(rows):,}", "black", font)
        for place, pixels in enumerate(samples.x[rows[:per_class]]):
            sheet.paste(_tile(pixels), (_NAME + place * step, top))
    return sheet


def save_contact_sheet(samples: Samples, path: Path | str) -> None:
    """As a PNG file, whole or not at all."""
    path, sheet = Path(path), contact_sheet(samples)
    if path.suffix.lower() != ".png":
        raise InputError(f"the picture is a PNG file, found the name {path}; end it in .png")
    part = path.with_name(f"{path.name}.{secrets.token_hex(4)}.part")
    try:
        sheet.save(part, "PNG")
        part.replace(path)
    except OSError as error:
        raise InputError(
            f"{path} must be a file in a folder that can be written to: {error}; choose another"
        ) from None
    finally:
        part.unlink(missing_ok=True)


def _tile(pixels: Tensor) -> Image.Image:  # (c, h, w)
    if pixels.dtype != torch.uint8:  # of any range: dark to bright
        pixels = pixels.double()
        low, high = pixels.min(), pixels.max()
        pixels = ((pixels - low) / (high - low).clamp(min=1e-12) * 255).to(torch.uint8)
    array: NDArray[np.uint8] = pixels.permute(1, 2, 0).numpy(force=True)
    image = Image.fromarray(array[:, :, 0] if array.shape[2] == 1 else array).convert("RGB")
    times = max(1, _TILE // max(image.size))
    image = image.resize((image.width * times, image.height * times), Image.Resampling.NEAREST)
    image.thumbnail((_TILE, _TILE))
    return image
