"""The files of a run's folder: how they are called, and a folder that is empty for a new one."""

from __future__ import annotations

import re
from itertools import count
from pathlib import Path

from ..errors import InputError
from ..writing import write_whole
from .settings import Settings, as_toml

__all__ = [
    "BASELINE",
    "CONFIG",
    "LOGS",
    "MODEL",
    "RECORD",
    "REPORT",
    "UNFINISHED",
    "check_empty",
    "clear",
    "make_folder",
    "write_config",
]

CONFIG, RECORD, MODEL, BASELINE, REPORT = _FILES = (
    "config.toml",
    "run.json",
    "model.safetensors",
    "baseline.safetensors",
    "report.html",
)
UNFINISHED = "unfinished"  # a folder in it, while it is trained
LOGS = "logs"  # a folder in it, where several processes have trained: what the others said


def make_folder(out: Path | None, name: str) -> Path:
    """It may hold something; left out, the next of runs/NAME-1, runs/NAME-2, …"""
    folder = out or Path("runs")
    try:
        if out is None:
            folder = _next(folder, name)
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _not_writable(folder, error) from None
    return folder


def check_empty(folder: Path) -> None:
    """Of a run that was killed before it began, a folder remains that does not count."""
    try:
        names = {one.name for one in folder.iterdir()}
    except OSError as error:
        raise _not_writable(folder, error) from None
    if inside := sorted(names - {UNFINISHED, LOGS}):
        raise InputError(
            f"the folder of a run must be empty, found {folder} with {inside[0]}"
            + (f" and {len(inside) - 1} more" if len(inside) > 1 else "")
            + "; choose another (--out), or replace what is there (--overwrite)"
        )


def clear(folder: Path) -> None:
    """Half of an old run beside half of a new one would be neither."""
    try:
        made = (one.name for name in ("story.*", "exported.*") for one in folder.glob(name))
        for old in (*_FILES, *made):
            (folder / old).unlink(missing_ok=True)
    except OSError as error:
        raise _not_writable(folder, error) from None


def write_config(folder: Path, settings: Settings) -> None:
    write_whole({folder / CONFIG: as_toml(settings).encode()})


def _not_writable(folder: Path, error: OSError) -> InputError:
    return InputError(
        f"{folder} must be a folder that can be made and written to: {error}; choose another "
        "(--out)"
    )


def _next(parent: Path, name: str) -> Path:
    """Made here and now: of two trainings that start at once, each has its own."""
    slug = re.sub(r"[^\w.]+", "-", name.lower()).strip("-.") or "run"
    for number in count(1):
        folder = parent / f"{slug}-{number}"
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            continue
        return folder
    raise AssertionError
