"""A first look at pictures: each file's fingerprint and size, and what size suits them all."""

from __future__ import annotations

import hashlib
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral

from ...errors import InputError
from ...reading import read_plain
from .listing import Listing
from .picture import MOST_BYTES, Header, Unreadable, read_header

__all__ = ["Look", "Shape", "check_size", "choose_shape", "digest_of", "leaks", "look_at"]

_KEEP = 256  # pictures that are all alike and no larger than this stay as they are
_USUAL = 224  # others become squares of at most this


@dataclass(frozen=True)
class Look:
    """What is known of a file before it is decoded."""

    digest: bytes  # of its content
    header: Header | Unreadable
    lasting: bool = True  # False: the disk failed, or a link led nowhere; another time it may not


@dataclass(frozen=True)
class Shape:
    """What every picture becomes."""

    height: int
    width: int
    grey: bool

    @property
    def image(self) -> tuple[int, int, int]:  # (c, h, w)
        return 1 if self.grey else 3, self.height, self.width


def digest_of(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=16).digest()


def look_at(file: str) -> Look:
    try:
        content = read_plain(file, MOST_BYTES)
    except OSError as error:
        return Look(digest_of(repr(error.errno).encode()), Unreadable(error), lasting=False)
    try:
        return Look(digest_of(content), read_header(content))
    except Unreadable as error:
        return Look(digest_of(content), error)


def check_size(size: int | tuple[int, int] | None) -> tuple[int, int] | None:
    if size is None:
        return None
    pair = tuple(size) if isinstance(size, tuple | list) else (size, size)
    whole = all(isinstance(side, Integral) and not isinstance(side, bool) for side in pair)
    if len(pair) != 2 or not whole or min(pair) < 1:
        raise InputError(f"size must be a number of pixels or (height, width), found {size!r}")
    return int(pair[0]), int(pair[1])


def choose_shape(
    headers: Sequence[Header], size: tuple[int, int] | None, most: int | None, grey: bool | None
) -> Shape:
    """As asked for; else by the pictures: their own size if they share a small one.

    Otherwise squares of their median shorter side, 224 at most. Grey if all of them are. ``most``
    takes the place of both limits.
    """
    grey = all(header.grey for header in headers) if grey is None else grey
    if size is None:
        sizes = {(header.height, header.width) for header in headers}
        height, width = next(iter(sizes))
        if len(sizes) > 1 or max(height, width) > (most or _KEEP):
            side = int(statistics.median(min(h.height, h.width) for h in headers))
            height = width = min(side, most or _USUAL)
        size = height, width
    return Shape(*size, grey)


def leaks(listing: Listing, looks: Sequence[Look]) -> list[int]:
    """Places of pictures that are in train and in another split, byte for byte."""
    digests = [look.digest if look.lasting else None for look in looks]
    pairs = list(zip(listing.splits, digests, strict=True))
    trained = {digest for split, digest in pairs if split == "train"} - {None}
    return [i for i, (split, d) in enumerate(pairs) if split != "train" and d in trained]
