"""Files that are whole or not there at all, and JSON that any reader understands."""

from __future__ import annotations

import math
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from .errors import InputError

__all__ = ["jsonable", "write_whole"]


def write_whole(contents: Mapping[Path, bytes]) -> None:
    """All files under other names first, then renamed: a full disk leaves the old ones there."""
    mark = secrets.token_hex(4)
    parts = {path: path.with_name(f"{path.name}.{mark}.part") for path in contents}
    try:
        for path, data in contents.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            parts[path].write_bytes(data)
        for path, part in parts.items():
            part.replace(path)
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
