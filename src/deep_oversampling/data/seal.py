"""What was kept is as it was written: sizes and checksums, looked at before anything is mapped.

A file that is shorter than its index says would end the process when it is read through a map.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..reading import MOST_WORDS, parse_json, plain_size, read_plain

__all__ = ["breach", "seal"]

_SEAL, _VERSION = "seal.json", 1
_WHOLE = 16 << 20  # bytes; of larger files some blocks are read, so that a start takes no time
_BLOCK, _BLOCKS = 1 << 12, 256


def seal(folder: Path, key: str) -> None:
    """Write down what is in a folder that is called ``key``."""
    (folder / _SEAL).write_text(json.dumps(_found(folder, key)))


def breach(folder: Path, key: str) -> str:
    """Why a folder is not as it was when it was sealed, in words; "" where it is."""
    try:
        sealed = parse_json(read_plain(folder / _SEAL, MOST_WORDS))
        found = _found(folder, key)
    except FileNotFoundError:
        return "it has no seal, or an earlier release made it"
    except (OSError, ValueError) as error:
        return f"it cannot be read: {error}"
    return "" if sealed == found else _difference(sealed, found)


def _found(folder: Path, key: str) -> dict[str, Any]:
    files = sorted(path for path in folder.iterdir() if path.name != _SEAL)
    return {"version": _VERSION, "key": key, "files": {path.name: _digest(path) for path in files}}


def _difference(sealed: Any, found: dict[str, Any]) -> str:
    theirs = sealed.get("files") if isinstance(sealed, dict) else None
    if not isinstance(theirs, dict) or {**sealed, "files": {}} != {**found, "files": {}}:
        return "its seal is that of another one"
    names = [n for n in {**theirs, **found["files"]} if theirs.get(n) != found["files"].get(n)]
    return f"{names[0]:.80} is not as it was written"


def _digest(path: Path) -> str:
    size = plain_size(path, sys.maxsize)
    digest = hashlib.blake2b(str(size).encode(), digest_size=16)
    with path.open("rb") as file:
        for start in _places(size):
            file.seek(start)
            digest.update(file.read(_BLOCK))
    return digest.hexdigest()


def _places(size: int) -> Iterable[int]:
    """Where blocks begin: all of them, or from the first to the last at even distances."""
    if size <= _WHOLE:
        return range(0, size, _BLOCK)
    return ((size - _BLOCK) * i // (_BLOCKS - 1) for i in range(_BLOCKS))
