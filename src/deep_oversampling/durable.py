"""Files that outlive a kill and a loss of power: whole and checked, or not there."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import sys
from pathlib import Path

from .reading import read_plain
from .writing import sync_folder, write_synced

__all__ = ["read_checked", "write_checked"]

_CHECKSUM = 32  # bytes, after the rest


def write_checked(path: Path, content: bytes) -> None:
    """Under another name first, on the disk before it is renamed; an OSError leaves no trace."""
    part = path.with_name(f"{path.name}.part")
    try:
        part.unlink(missing_ok=True)  # of a kill; or a link, which would be written through
        write_synced(part, content + _checksum(content))
        part.replace(path)
    except OSError:
        with contextlib.suppress(OSError):  # the folder may be gone
            part.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def read_checked(path: Path, most: int = sys.maxsize) -> bytes | None:
    """None where it is torn or was changed; `OSError` where it does not fit into memory."""
    try:
        data = read_plain(path, most)
    except MemoryError:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(path)) from None
    content, checksum = data[:-_CHECKSUM], data[-_CHECKSUM:]
    return content if _checksum(content) == checksum else None


def _checksum(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=_CHECKSUM).digest()
