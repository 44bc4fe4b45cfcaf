"""Files from anywhere, read with care: what they are is checked before memory is taken for them."""

from __future__ import annotations

import errno
import json
import os
import stat
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

__all__ = [
    "MOST_WORDS",
    "Migrations",
    "migrated",
    "parse_json",
    "plain_size",
    "read_lines",
    "read_plain",
]

MOST_WORDS = 16 << 20  # bytes of a JSON document: objects take up to 25 times its length in memory

# version -> what makes a document of the next one out of it
Migrations = Mapping[int, Callable[[dict[str, Any]], dict[str, Any]]]


def plain_size(path: Path | str, most: int) -> int:
    """The bytes of a plain file; `OSError` where it is none or larger than ``most``.

    A pipe would be waited for without end, and a device may have no end.
    """
    found = Path(path).stat()
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "it is a pipe or a device, not a plain file", str(path))
    if found.st_size > most:
        raise _too_large(path, f"its {found.st_size:,} bytes", most)
    return found.st_size


def read_plain(path: Path | str, most: int) -> bytes:
    """All of a plain file of at most ``most`` bytes; `OSError` for anything else."""
    size = plain_size(path, most)
    with Path(path).open("rb") as file:
        return file.read(size)


def read_lines(path: Path | str, most: int) -> Iterator[bytes]:
    """The lines of a plain file of any size, each of at most ``most`` bytes."""
    plain_size(path, sys.maxsize)
    with Path(path).open("rb") as file:
        while line := file.readline(most + 1):
            if len(line) > most:
                raise _too_large(path, "the bytes of a line in it", most)
            yield line


def parse_json(text: str | bytes) -> Any:
    """What JSON says; `ValueError` for whatever cannot be parsed."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def migrated(
    document: dict[str, Any],  # without its version
    version: Any,  # as the file says
    current: int,
    migrations: Migrations,
) -> dict[str, Any] | None:
    """The document as of the current version, step by step; None where no way leads there.

    >>> steps = {1: lambda old: {"names": old["name"].split()}}
    >>> migrated({"name": "a b"}, 1, 2, steps)
    {'names': ['a', 'b']}
    """
    if type(version) is not int or version > current:  # True is no version
        return None
    for step in range(version, current):
        if step not in migrations:
            return None
        document = migrations[step](document)
    return document


def _too_large(path: Path | str, what: str, most: int) -> OSError:
    return OSError(errno.EFBIG, f"{what} are more than the {most:,} that are read", str(path))
