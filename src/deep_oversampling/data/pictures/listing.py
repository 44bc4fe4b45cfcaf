"""Which pictures there are: files, each with a class and the split it belongs to."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from ...errors import InputError

__all__ = ["SPLIT_OF", "Entry", "Listing", "in_order", "make_listing", "shown"]

SPLIT_OF = {  # what people call them
    "train": "train",
    "training": "train",
    "val": "validation",
    "valid": "validation",
    "validation": "validation",
    "test": "test",
    "testing": "test",
}


class Entry(NamedTuple):
    """A picture as a folder or a manifest names it."""

    split: str  # "train", "validation" or "test"
    label: str
    file: str


@dataclass(frozen=True)
class Listing:
    """Picture files in a fixed order, their class indices and splits."""

    name: str
    files: tuple[str, ...]  # text, not Path: a second start is spent on making those
    labels: tuple[int, ...]
    splits: tuple[str, ...]
    classes: tuple[str, ...]


def make_listing(place: Path, entries: Sequence[Entry]) -> Listing:
    """Number the classes: sorted by name, or by value where all of them are numbers."""
    names = {entry.label for entry in entries if entry.split == "train"}
    strangers = sorted({entry.label for entry in entries} - names)
    if strangers:
        raise InputError(
            f"{place}: every class must have pictures to train on, found none of "
            f"{', '.join(map(repr, strangers))}, which is there to validate or test only"
        )
    if len(names) < 2:
        raise InputError(
            f"{place} must hold two or more classes, found {len(names)}: "
            f"{', '.join(map(repr, names)) or 'no picture at all'}"
        )
    classes = in_order(names)
    index = {label: j for j, label in enumerate(classes)}
    return Listing(
        name=shown(place.resolve().name),
        files=tuple(entry.file for entry in entries),
        labels=tuple(index[entry.label] for entry in entries),
        splits=tuple(entry.split for entry in entries),
        classes=tuple(classes),
    )


def in_order(names: Iterable[str]) -> list[str]:
    """Sorted, by value where all of them are numbers."""
    distinct = set(names)
    numbers = all(name.isdecimal() for name in distinct)
    return sorted(distinct, key=(lambda name: (int(name), name)) if numbers else None)


def shown(name: str) -> str:
    """A name that can be printed and compared: é is é, whether one character or two."""
    text = os.fsencode(name).decode("utf-8", "backslashreplace")
    return unicodedata.normalize("NFC", text)
