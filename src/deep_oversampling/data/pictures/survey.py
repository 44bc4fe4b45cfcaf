"""A first look at pictures: each file's fingerprint and size, and what size suits them all."""

from __future__ import annotations

import hashlib
import logging
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ...errors import InputError
from .listing import Listing
from .picture import Header, Unreadable, read_header

__all__ = ["Look", "Shape", "check_size", "choose_shape", "look_at", "warn_of_leaks"]

log = logging.getLogger(__name__)

_KEEP = 256  # pictures that are all alike and no larger than this stay as they are
_USUAL = 224  # others become squares of at most this


@dataclass(frozen=True)
class Look:
    """What is known of a file before it is decoded."""

    digest: bytes  # of its content
    header: Header | Unreadable


@dataclass(frozen=True)
class Shape:
    """What every picture becomes."""

    height: int
    width: int
    grey: bool

    @property
    def image(self) -> tuple[int, int, int]:  # (c, h, w)
        return 1 if self.grey else 3, self.height, self.width


def look_at(file: str) -> Look:
    try:
        content = Path(file).read_bytes()
    except OSError as error:
        return Look(b"", Unreadable(error))
    digest = hashlib.blake2b(content, digest_size=16).digest()
    try:
        return Look(digest, read_header(content))
    except Unreadable as error:
        return Look(digest, error)


def check_size(size: int | tuple[int, int] | None) -> tuple[int, int] | None:
    if size is None:
        return None
    height, width = (size, size) if isinstance(size, int) else size
    if min(height, width) < 1:
        raise InputError(f"size must be a number of pixels or (height, width), found {size}")
    return height, width


def choose_shape(
    headers: Sequence[Header], size: tuple[int, int] | None, grey: bool | None
) -> Shape:
    """As asked for; else by the pictures: their own size if they share a small one.

    Otherwise squares of their median shorter side, 224 at most. Grey if all of them are.
    """
    grey = all(header.grey for header in headers) if grey is None else grey
    if size is None:
        sizes = {(header.height, header.width) for header in headers}
        height, width = next(iter(sizes))
        if len(sizes) > 1 or max(height, width) > _KEEP:
            side = int(statistics.median(min(h.height, h.width) for h in headers))
            height = width = min(side, _USUAL)
        size = height, width
    return Shape(*size, grey)


def warn_of_leaks(listing: Listing, looks: Sequence[Look]) -> None:
    """Pictures that are in the training set and in another: no measure on those means much."""
    everything = list(zip(listing.files, listing.splits, looks, strict=True))
    trained = {look.digest for _, split, look in everything if split == "train"}
    for name in ("validation", "test"):
        found = [f for f, split, look in everything if split == name and look.digest in trained]
        if found:
            log.warning(
                "%d pictures of %s are in train too, byte for byte, the first: %s",
                *(len(found), name, found[0]),
            )
