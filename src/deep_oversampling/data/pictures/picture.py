"""One picture file in, one uint8 array out: any size, any mode, upright, never dangerous."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError

__all__ = [
    "MOST_BYTES",
    "Header",
    "Unreadable",
    "as_pixels",
    "is_grey",
    "is_picture",
    "read_header",
    "read_picture",
]

Image.init()
# A list of what is read, not of what is not: Pillow hands EPS to Ghostscript and WMF to the
# operating system, which run what is in the file, and some containers (IPTC) open anything inside.
# Formats are tried in this order.
_FORMATS = [
    *("JPEG", "PNG", "WEBP", "TIFF", "BMP", "GIF", "AVIF", "JPEG2000", "MPO", "PPM", "TGA"),
    *("ICO", "PCX", "DDS", "DIB", "SGI", "QOI", "PSD", "XBM", "XPM", "SUN"),
]
_FORMATS = [name for name in _FORMATS if name in Image.OPEN]  # as this Pillow was built
_SUFFIXES = {suffix for suffix, name in Image.registered_extensions().items() if name in _FORMATS}

MOST_BYTES = 256 << 20  # of a file: as many as the most pixels take, in colour and as they are

_GREY = {"1", "L", "LA", "La", "I", "F"}
_ORIENTATION, _SIDEWAYS = 0x0112, {5, 6, 7, 8}  # EXIF: turned by a quarter


@dataclass(frozen=True)
class Header:
    """What a file says of its picture before that is decoded."""

    height: int
    width: int
    grey: bool


def is_picture(name: str) -> bool:
    """Whether a file of that name should hold a picture; ".png" is hidden, not one."""
    stem, dot, suffix = name.lower().rpartition(".")
    return stem != "" and dot + suffix in _SUFFIXES


def is_grey(mode: str) -> bool:
    """Whether pictures of Pillow's ``mode`` have no colour."""
    return mode in _GREY or mode.startswith("I;16")


class Unreadable(Exception):
    """A file that holds no picture that can be decoded; the text says why."""


@contextmanager
def _opened(content: bytes) -> Iterator[Image.Image]:
    """The picture, not decoded yet; whatever goes wrong with it inside is `Unreadable`."""
    try:
        with Image.open(io.BytesIO(content), formats=_FORMATS) as image:
            _check_pixels(image)
            yield image
    except (MemoryError, Unreadable):  # the first is the machine's fault, not the file's
        raise
    except UnidentifiedImageError:
        raise Unreadable("it is no picture, or of a format that is not read") from None
    except Exception as error:  # decoders throw anything at a broken file
        raise Unreadable(str(error) or type(error).__name__) from None


def _check_pixels(image: Image.Image) -> None:
    """Before they are decoded. Those of 32 bits are copied on their way to eight: half as many."""
    if Image.MAX_IMAGE_PIXELS is None:  # the user's own word
        return
    most = Image.MAX_IMAGE_PIXELS // (2 if image.mode in ("I", "F") else 1)
    pixels = image.width * image.height
    if pixels > most:
        raise Unreadable(f"it has {pixels:,} pixels, more than the {most:,} that are decoded")


def read_header(content: bytes) -> Header:
    with _opened(content) as image:
        width, height = image.size
        if image.getexif().get(_ORIENTATION) in _SIDEWAYS:
            width, height = height, width
        return Header(height, width, is_grey(image.mode))


def read_picture(
    content: bytes,
    height: int,
    width: int,
    *,
    grey: bool,
) -> NDArray[np.uint8]:  # (c, h, w)
    """The picture, turned upright, resized to fill height × width, its overhang cut off evenly."""
    with _opened(content) as file:
        # a JPEG can be decoded at a half, a quarter, an eighth of its size, which is much faster;
        # twice the size wanted (of either side, it may lie on its side) is left to resize well
        file.draft(None, (2 * max(height, width),) * 2)
        return as_pixels(ImageOps.exif_transpose(file), height, width, grey=grey)


def as_pixels(image: Image.Image, height: int, width: int, *, grey: bool) -> NDArray[np.uint8]:
    image = _eight_bits(image).convert("L" if grey else "RGB")
    if image.size != (width, height):
        image = ImageOps.fit(image, (width, height), Image.Resampling.BILINEAR)
    pixels = np.asarray(image)
    return pixels[np.newaxis] if grey else np.ascontiguousarray(pixels.transpose(2, 0, 1))


def _eight_bits(image: Image.Image) -> Image.Image:
    """Sixteen bits of grey to eight: Pillow would cut off all that is brighter than 255."""
    if image.mode == "F":
        raise ValueError("its pixels are floating-point numbers; store 8 or 16 bits a channel")
    if image.mode == "I" or image.mode.startswith("I;16"):
        wide = np.asarray(image.convert("I"))
        if image.mode != "I" or wide.max() > 255:  # 32 bits may hold no more than 8
            wide = wide >> 8
        return Image.fromarray(wide.clip(0, 255).astype(np.uint8))
    return image
