"""Files that are whole or not there at all, and JSON that any reader understands."""

from __future__ import annotations

import contextlib
import math
import os
import secrets
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from .errors import InputError

__all__ = ["jsonable", "refuse_links", "sync_folder", "write_synced", "write_whole"]


def write_whole(contents: Mapping[Path, bytes]) -> None:
    """All files under other names first, then renamed: a full disk leaves the old ones there.

    They are on the disk when it returns, so that what they take the place of may be deleted.
    """
    mark = secrets.token_hex(4)
    parts = {path: path.with_name(f"{path.name}.{mark}.part") for path in contents}
    try:
        for path, data in contents.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            write_synced(parts[path], data)
        for path, part in parts.items():
            part.replace(path)
        for folder in {path.parent for path in contents}:
            sync_folder(folder)
    except OSError as error:
        names = ", ".join(str(path) for path in contents)
        raise InputError(
            f"{names} must be in a folder that can be written to and has room: {error}; choose "
            "another"
        ) from None
    finally:
        for part in parts.values():
            if part.parent.is_dir():
                part.unlink(missing_ok=True)


def write_synced(path: Path, content: bytes) -> None:
    """A new file, forced to the disk; one that is there already, or a link, is an OSError."""
    with path.open("xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """So that new names in it survive a loss of power; not every system can."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def refuse_links(paths: Iterable[Path]) -> None:
    """Where something is to be written or deleted: a link would lead it to another place."""
    for path in paths:
        if path.is_symlink():
            raise InputError(
                f"{path} must be a file or folder of its own, found a link, so that what is "
                "written or deleted there would be elsewhere; delete the link, or choose another "
                "folder"
            )


def jsonable(value: Any) -> Any:
    """Lists, dicts, numbers and strings; None for what is no finite number: JSON has no NaN."""
    if isinstance(value, Mapping):
        return {str(key): jsonable(one) for key, one in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return jsonable(value.tolist())
    if isinstance(value, list | tuple):
        return [jsonable(one) for one in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value
