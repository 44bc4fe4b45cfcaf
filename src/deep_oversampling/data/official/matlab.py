"""Arrays of numbers in MATLAB's format 5, and nothing else that such a file can hold.

A file of it is a row of elements, each with a kind and a length before it, packed or not. All that
an array promises, its lengths and its sides, is checked against what is there before it is read.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...reading import read_plain

__all__ = ["read_arrays"]

_HEAD = 128  # bytes before the first element; the last four: version, and "IM" where little-endian
_MATRIX, _PACKED = 14, 15  # kinds of elements
_STORED = {1: "i1", 2: "u1", 3: "<i2", 4: "<u2", 5: "<i4", 6: "<u4", 7: "<f4", 9: "<f8"}
_STORED |= {12: "<i8", 13: "<u8"}
_CLASSES = {6: "f8", 7: "f4", 8: "i1", 9: "u1", 10: "i2", 11: "u2", 12: "i4", 13: "u4", 14: "i8"}
_CLASSES |= {15: "u8"}
_COMPLEX = 0x0800  # a flag
_AXES = 8


@dataclass(frozen=True)
class _Element:
    kind: int
    content: memoryview
    end: int  # where the next one begins


def read_arrays(path: Path, most: int) -> dict[str, NDArray[Any] | None]:
    """By their names; None for what is no array of numbers. `OSError` or `ValueError` if broken.

    Neither the file nor what is packed in it may have more than ``most`` bytes.
    """
    content = memoryview(read_plain(path, most))
    if bytes(content[_HEAD - 4 : _HEAD]) != b"\x00\x01IM":
        raise ValueError("its head is not that of a little-endian file of format 5")
    found: dict[str, NDArray[Any] | None] = {}
    left = most  # for what is packed
    for element in _elements(content[_HEAD:], padded=False):
        if element.kind == _PACKED:
            inside = _unpacked(element.content, left)
            left -= len(inside)
            element = next(_elements(inside), _Element(0, inside, 0))
        if element.kind == _MATRIX:
            name, array = _matrix(element.content, most)
            found[name] = array
    return found


def _elements(content: memoryview, *, padded: bool = True) -> Iterator[_Element]:
    """One after the other; those inside of a matrix begin at multiples of eight bytes."""
    start = 0
    while start < len(content):
        element = _element(content, start)
        start = -(-element.end // 8) * 8 if padded else element.end
        yield element


def _element(content: memoryview, start: int) -> _Element:
    if start + 8 > len(content):
        raise ValueError("it ends in the midst of an element")
    kind, length = _numbers(content[start : start + 8], "<u4")
    small = kind >> 16  # of up to four bytes, the length stands beside the kind
    first, length = (start + 4, small) if small else (start + 8, length)
    end = start + 8 if small else first + length
    if small > 4 or end > len(content):
        raise ValueError(f"an element must have {length:,} bytes, found {len(content) - first:,}")
    return _Element(kind & 0xFFFF, content[first : first + length], end)


def _unpacked(content: memoryview, most: int) -> memoryview:
    stream = zlib.decompressobj()
    try:
        found = stream.decompress(content, most + 1)
    except zlib.error as error:
        raise ValueError(str(error)) from None
    if len(found) > most:
        raise ValueError(f"it unpacks to more than the {most:,} bytes that are read")
    if not stream.eof:
        raise ValueError("the compressed data ends before its end mark")
    return memoryview(found)


def _matrix(content: memoryview, most: int) -> tuple[str, NDArray[Any] | None]:
    """Flags, sides, name, and the numbers column by column."""
    parts = _elements(content)
    flags, sides, name, *rest = (one for one, _ in zip(parts, range(4), strict=False))
    flag = int(_numbers(flags.content, "<u4")[0]) if len(flags.content) == 8 else 0
    title = bytes(name.content).decode("ascii", "replace")
    kind = _CLASSES.get(flag & 0xFF)
    if kind is None or flag & _COMPLEX or not rest or rest[0].kind not in _STORED:
        return title, None
    shape = [int(side) for side in _numbers(sides.content, "<i4")]
    stored = np.dtype(_STORED[rest[0].kind])
    length = math.prod(shape) * stored.itemsize
    if math.prod(shape) * np.dtype(kind).itemsize > most:
        raise ValueError(f"{title} of shape {tuple(shape)} is more than the {most:,} that are read")
    if not 2 <= len(shape) <= _AXES or min(shape) < 0 or length != len(rest[0].content):
        raise ValueError(f"{title} of shape {tuple(shape)} must have {length:,} bytes, found other")
    values = np.frombuffer(rest[0].content, stored).astype(kind, copy=False)
    return title, values.reshape(shape, order="F")


def _numbers(content: memoryview, kind: str) -> list[int]:
    whole = len(content) // 4 * 4
    found: list[int] = np.frombuffer(content[:whole], kind).tolist()
    return found
