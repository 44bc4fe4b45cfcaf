"""A folder of pictures: one subfolder per class, with or without train/ and test/ above them."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from ...errors import InputError
from .listing import SPLIT_OF, Entry, Listing, make_listing, shown
from .picture import is_picture

__all__ = ["list_folder", "pictures_below"]


def list_folder(root: Path | str) -> Listing:
    """The pictures of ``root/CLASS/…``, or of ``root/train/CLASS/…`` and ``root/test/CLASS/…``.

    Files that are no pictures by their name, hidden ones, and folders whose name begins with a
    dot or two underscores are passed over.
    """
    root = Path(root).absolute()
    if not root.is_dir():
        raise InputError(f"the pictures must be in a folder, found no folder at {root}")
    splits = _splits_in(root)
    if not splits:
        return make_listing(root, list(_classes_in(root, "train")))
    pairs = splits.items()
    return make_listing(root, [e for folder, split in pairs for e in _classes_in(folder, split)])


def _splits_in(root: Path) -> dict[Path, str]:
    """The folders of root that are splits; none where they are classes.

    A class may be called "train" beside "bus" and "car": a split has folders, and no pictures.
    """
    below = _subfolders(root)
    found = {folder: SPLIT_OF.get(folder.name.lower(), "") for folder in below}
    splits = {folder: split for folder, split in found.items() if split}
    for folder in splits:
        inside = _inside(folder)
        if any(is_picture(e.name) for e in inside) or not any(map(_is_folder, inside)):
            return {}
    others = [folder.name for folder in below if folder not in splits]
    if splits and ("train" not in splits.values() or others):
        raise InputError(
            f"{root} must hold train/ and other splits, or classes, found both or no train/: "
            f"{', '.join(repr(shown(folder.name)) for folder in below)}; move the others elsewhere"
        )
    return splits


def _classes_in(root: Path, split: str) -> Iterator[Entry]:
    folders = _subfolders(root)
    if not folders:
        loose = sum(is_picture(entry.name) for entry in _inside(root))
        raise InputError(
            f"{root} must hold one subfolder per class with its pictures, found no subfolder"
            + (f" but {loose} pictures; sort them into a folder per class" if loose else "")
        )
    alike = [name for name, times in Counter(shown(f.name) for f in folders).items() if times > 1]
    if alike:
        raise InputError(
            f"{root} must have one folder for each class, found two that are both called "
            f"{alike[0]!r}, in different bytes; rename one"
        )
    for folder in folders:
        files = list(pictures_below(folder, (root.resolve(),)))
        if not files:
            raise InputError(
                f"every class folder must hold pictures, found none in {folder}; add some or "
                "remove the folder"
            )
        yield from (Entry(split, shown(folder.name), file) for file in files)


def _subfolders(root: Path) -> list[Path]:
    return [Path(entry.path) for entry in _inside(root) if _is_folder(entry)]


def pictures_below(folder: Path, above: tuple[Path, ...] = ()) -> Iterator[str]:
    """All pictures at any depth, through symbolic links too, unless those lead in a circle."""
    real = folder.resolve()
    if any(real == other or real in other.parents for other in above):
        raise InputError(
            f"a folder must not contain itself, found that the link {folder} leads back to "
            f"{real}; remove it"
        )
    for entry in _inside(folder):
        if _is_folder(entry):
            yield from pictures_below(Path(entry.path), (*above, real))
        elif is_picture(entry.name):
            yield entry.path


def _inside(folder: Path) -> list[os.DirEntry[str]]:
    """In an order that is the same on every machine."""
    try:
        with os.scandir(folder) as entries:
            seen = [entry for entry in entries if not entry.name.startswith((".", "__"))]
    except OSError as error:
        raise InputError(f"{folder} must be a folder that can be read: {error}") from None
    return sorted(seen, key=lambda entry: entry.name)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link to itself
        return False
