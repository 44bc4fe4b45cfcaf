"""Pictures decoded once, in parallel, into a memory-mapped array that every later start reads.

The array is kept under the fingerprint of what it was made from: the bytes of every file, the
classes and the size asked for. A second start does not even read the files: it finds that their
names, sizes and times are those it has seen before.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
import statistics
import warnings
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from errno import ENOSPC
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError
from ...reading import parse_json, read_plain
from ...samples import Samples, as_tensor
from ...schema import is_count, is_text, list_of, table
from ...views import View
from ..cache import kept, remember, remembered, state_of
from ..splits import Skipped, Splits
from .listing import Listing
from .picture import MOST_BYTES, Header, Unreadable, read_picture
from .survey import Look, Shape, check_size, choose_shape, digest_of, leaks, look_at
from .workers import Progress, in_parallel, processors

__all__ = ["decode"]

log = logging.getLogger(__name__)

_NAMED = 5  # of the pictures that are skipped; Splits.skipped has them all

A = TypeVar("A")

_FORMAT = 3  # of the kept files; another number leaves the old ones alone
_SMALL = 200 * 200  # pixels
_MOST_ABOUT = 1 << 28  # bytes; a line for every picture that was skipped
_SPLITS = ("train", "validation", "test")


def decode(
    listing: Listing,
    cache: Path,
    *,
    size: int | tuple[int, int] | None = None,  # (height, width); left out: by the pictures
    most: int | None = None,  # pixels of a side, where none is given and theirs are more
    grey: bool | None = None,  # left out: if all pictures are
    strict: bool = False,  # stop at a picture that cannot be read; else it is skipped
    on_progress: Progress | None = None,
) -> Splits:
    """The listed pictures as Samples of uint8 images (m, c, h, w) that stay on disk."""
    wanted = check_size(size)
    settings = (_FORMAT, wanted, most, grey, listing.labels, listing.splits, listing.classes)
    state = state_of(listing.files, settings)
    folder = remembered(cache, state)
    if folder is None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Pillow's remarks on odd files
            folder, lasting = _decoded(listing, cache, settings, strict, on_progress)
        if lasting:
            remember(cache, state, folder)
    return _open(folder, listing, strict)


def _decoded(
    listing: Listing,
    cache: Path,
    settings: tuple[Any, ...],
    strict: bool,
    on_progress: Progress | None,
) -> tuple[Path, bool]:  # the folder, and whether the same files will always give it
    count = len(listing.files)
    looking = in_parallel(look_at, listing.files, processors())
    looks = list(_counted(looking, 0, 2 * count, on_progress))
    headers = [look.header for look in looks if isinstance(look.header, Header)]
    if not headers:
        raise _nothing_readable(listing, looks[0].header)
    shape = choose_shape(headers, *settings[1:4])
    digest = hashlib.blake2b(repr(settings).encode(), digest_size=16)
    digest.update(b"".join(look.digest for look in looks))  # in order: labels go by it

    def make(folder: Path) -> None:
        with closing(_pictures(listing, looks, shape)) as pictures:
            counted = _counted(pictures, count, 2 * count, on_progress)
            _write(folder, listing, counted, shape, strict, leaks(listing, looks))

    return kept(cache, digest.hexdigest(), make), all(look.lasting for look in looks)


def _pictures(
    listing: Listing, looks: Sequence[Look], shape: Shape
) -> Generator[NDArray[np.uint8] | Unreadable]:
    def read(i: int) -> NDArray[np.uint8] | Unreadable:
        header = looks[i].header
        if isinstance(header, Unreadable):
            return header
        try:
            content = read_plain(listing.files[i], MOST_BYTES)
        except OSError as error:
            raise _changed(listing.files[i], error) from None
        if digest_of(content) != looks[i].digest:  # else it would be kept under the wrong name
            raise _changed(listing.files[i], "other content")
        try:
            return read_picture(content, shape.height, shape.width, grey=shape.grey)
        except Unreadable as error:
            return error

    # Pillow lets go of Python's lock while it decodes; for small pictures that is not worth it
    pixels = [o.header.height * o.header.width for o in looks if isinstance(o.header, Header)]
    threads = processors() if statistics.median(pixels) > _SMALL else 1
    return in_parallel(read, range(len(listing.files)), threads)


def _write(
    folder: Path,
    listing: Listing,
    pictures: Iterable[NDArray[np.uint8] | Unreadable],
    shape: Shape,
    strict: bool,
    leaked: list[int],
) -> None:
    """Row by row: the array is never in memory, and a full disk is an error, not a crash."""
    needed = len(listing.files) * int(np.prod(shape.image))
    if shutil.disk_usage(folder).free < needed:
        raise OSError(ENOSPC, f"{os.strerror(ENOSPC)}, {needed / 1e9:.1f} GB are needed")
    skipped: list[tuple[int, str]] = []
    with (folder / "x").open("wb") as x:
        for i, found in enumerate(pictures):
            if isinstance(found, Unreadable):
                skipped.append((i, str(found)))
                _refuse(_named(listing, skipped[-1:]) if strict else ())
            else:
                x.write(found.tobytes())
    if len(skipped) == len(listing.files):
        raise _nothing_readable(listing, skipped[0][1])
    about = {"image": shape.image, "skipped": skipped, "leaked": leaked}
    (folder / "about.json").write_text(json.dumps(about))


def _open(folder: Path, listing: Listing, strict: bool) -> Splits:
    try:
        about = parse_json(read_plain(folder / "about.json", _MOST_ABOUT))
        if not _is_about(about, len(listing.files)):
            raise ValueError("about.json is not what was written")
        skipped = _named(listing, about["skipped"])
        unread = {i for i, _ in about["skipped"]}
        leaked = [listing.files[i] for i in about["leaked"]]
        read = [i for i in range(len(listing.files)) if i not in unread]
        x = np.memmap(folder / "x", np.uint8, "r").reshape(len(read), *about["image"])
    except (OSError, ValueError, MemoryError) as error:
        raise InputError(
            f"what was decoded must be as it was written, found {folder} damaged: {error}; delete "
            "that folder, and the pictures are decoded again"
        ) from None
    _refuse(skipped if strict else ())
    for one in skipped[:_NAMED]:
        log.warning("skipped %s: %s", one.file, one.reason)
    if len(skipped) > _NAMED:
        log.warning("skipped %d more pictures that cannot be read", len(skipped) - _NAMED)
    if leaked:
        log.warning(
            "%d pictures to validate or test on are in train too, byte for byte, the first: %s",
            *(len(leaked), leaked[0]),
        )
    labels = np.array([listing.labels[i] for i in read], np.int64)
    splits = np.array([_SPLITS.index(listing.splits[i]) for i in read])
    everything = Samples(View.of(as_tensor(x, "x"), on_disk=True), labels, listing.classes)
    parts = [as_tensor((splits == s).nonzero()[0], "rows") for s in range(len(_SPLITS))]
    train, validation, test = (everything.subset(part) for part in parts)
    gone = [listing.classes[j] for j in (train.class_counts == 0).nonzero().flatten().tolist()]
    if gone:
        raise InputError(
            "every class must have a picture to train on that can be read, found none of "
            f"{', '.join(map(repr, gone))}; skipped {skipped[0].file}: {skipped[0].reason}"
        )
    return Splits(
        listing.name,
        train,
        validation if len(validation) else None,
        test if len(test) else None,
        skipped,
        tuple(listing.files[i] for i in read),
    )


def _is_about(value: Any, count: int) -> bool:
    """As `_write` leaves it, for so many pictures."""

    def is_place(i: Any) -> bool:
        return is_count(i) and bool(i < count)

    def is_skipped(one: Any) -> bool:
        return isinstance(one, list) and len(one) == 2 and is_place(one[0]) and is_text(one[1])

    sides = table(image=list_of(is_count), skipped=list_of(is_skipped), leaked=list_of(is_place))
    if not sides(value) or len(value["image"]) != 3:
        return False
    places = [i for i, _ in value["skipped"]]
    return places == sorted(set(places)) and value["image"][0] in (1, 3) and 0 not in value["image"]


def _named(listing: Listing, skipped: Iterable[tuple[int, str]]) -> tuple[Skipped, ...]:
    """By the place in the listing: what is kept may have been made of a copy elsewhere."""
    return tuple(Skipped(listing.files[i], reason) for i, reason in skipped)


def _nothing_readable(listing: Listing, reason: object) -> InputError:
    return InputError(
        f"there must be pictures that can be read, found that none of the {len(listing.files)} of "
        f"{listing.name} can, the first: {listing.files[0]}: {reason}"
    )


def _changed(file: str, found: object) -> InputError:
    return InputError(
        f"pictures must not change while they are decoded, found {file}: {found}; start again"
    )


def _refuse(unreadable: Sequence[Skipped]) -> None:
    for one in unreadable:
        raise InputError(
            f"every picture must be readable, found {one.file}: {one.reason}; repair or remove "
            "it, or leave strict out to skip such files"
        )


def _counted(
    items: Iterable[A], done: int, total: int, on_progress: Progress | None
) -> Iterator[A]:
    for item in items:
        done += 1
        if on_progress:
            on_progress(done, total)
        yield item
