"""What was decoded once: folders of arrays that are whole or not there at all."""

from __future__ import annotations

import hashlib
import logging
import os
import re
import secrets
import shutil
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from ..errors import InputError
from ..reading import read_plain
from .seal import breach, seal

__all__ = ["cache_folder", "data_folder", "kept", "remember", "remembered", "state_of"]

log = logging.getLogger(__name__)

_PART = re.compile(r"[0-9a-f]{32}\.[0-9a-f]{8}\.part")  # what `kept` names what it fills
_NAME = re.compile(r"[0-9a-f]{32}")
_MOST_NOTE = 1 << 10  # bytes
_ABANDONED = 24 * 3600  # seconds after which a folder nobody writes to is a dead process's


def data_folder(given: Path | str | None = None) -> Path:
    """Where official files are: as given, else $DOS_DATA, else the platform's cache folder."""
    return _folder(given, "DOS_DATA", "data")


def cache_folder(given: Path | str | None = None) -> Path:
    """Where decoded pictures are kept: as given, else $DOS_CACHE, else the platform's folder."""
    return _folder(given, "DOS_CACHE", "decoded")


def _folder(given: Path | str | None, variable: str, name: str) -> Path:
    chosen = given or os.environ.get(variable)
    if chosen:
        return Path(chosen).expanduser()
    import platformdirs

    return Path(platformdirs.user_cache_dir("deep-oversampling", appauthor=False)) / name


def kept(cache: Path, key: str, make: Callable[[Path], None]) -> Path:
    """The folder ``key`` of the cache; where it is not there or damaged, ``make`` fills it.

    It is filled under another name and renamed when it is whole, so a process that dies leaves
    nothing that could be mistaken for it, and of two that fill it at once one wins and both are
    right.
    """
    folder = cache / key
    if found := _damage(folder):
        log.warning("what was decoded into %s is decoded again: %s", folder, found)
    elif _is_there(folder):
        return folder
    part = cache / f"{key}.{secrets.token_hex(4)}.part"
    try:
        cache.mkdir(parents=True, exist_ok=True)
        _sweep(cache)
        part.mkdir()
    except OSError as error:
        raise _unusable(cache, error) from None
    try:
        make(part)
        seal(part, key)
        try:
            _discard(folder)
            part.rename(folder)
        except OSError:
            if not folder.is_dir():  # else another process was faster
                raise
    except OSError as error:
        raise _unusable(cache, error) from error
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return folder


def _is_there(folder: Path) -> bool:
    return os.path.isdir(folder)  # noqa: PTH112  Path's raises where a folder may not be entered


def _damage(folder: Path) -> str:
    """Why what is there cannot be used, in words."""
    return breach(folder, folder.name) if _is_there(folder) else ""


def _discard(folder: Path) -> None:
    """What is damaged makes room; under another name first, so that nobody finds half of it."""
    if _damage(folder):
        aside = folder.with_name(f"{folder.name}.{secrets.token_hex(4)}.part")
        folder.rename(aside)
        shutil.rmtree(aside, ignore_errors=True)


def remember(cache: Path, state: str, folder: Path) -> None:
    """Files in this state were decoded into that folder; forgotten if it cannot be written."""
    note = cache / "states" / state
    part = note.with_suffix(f".{os.getpid()}.part")
    with suppress(OSError):
        note.parent.mkdir(exist_ok=True)
        part.write_bytes(_note(state, folder.name))
        part.replace(note)


def remembered(cache: Path, state: str) -> Path | None:
    """The folder that files in this state were decoded into, if it is still there."""
    try:
        found = read_plain(cache / "states" / state, _MOST_NOTE)
    except OSError:
        return None
    name = found.decode("ascii", "replace").partition(" ")[0]
    if not _NAME.fullmatch(name) or found != _note(state, name):
        return None
    folder = cache / name
    return folder if _is_there(folder) and not _damage(folder) else None


def _note(state: str, name: str) -> bytes:
    """With a checksum of both: the note of one state says nothing of another."""
    return (
        f"{name} {hashlib.blake2b(f'{state} {name}'.encode(), digest_size=16).hexdigest()}".encode()
    )


def state_of(files: Iterable[Path | str], *settings: object) -> str:
    """Changes when a file is written to, renamed or replaced; reads none of them."""
    digest = hashlib.blake2b(repr(settings).encode(), digest_size=16)
    for file in files:
        digest.update(os.fsencode(file))
        try:
            stat = os.stat(file)  # noqa: PTH116  a Path takes ten times as long to make
        except OSError:  # a link to nothing: whoever reads it will say so
            continue
        digest.update(repr((stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)).encode())
    return digest.hexdigest()


def _sweep(cache: Path) -> None:
    """Remove what processes that died long ago left half-done."""
    for part in cache.iterdir():
        with suppress(OSError):  # its owner may finish it or sweep too
            if not _PART.fullmatch(part.name) or not part.is_dir():
                continue
            newest = max(file.stat().st_mtime for file in [part, *part.iterdir()])
            if time.time() - newest > _ABANDONED:
                shutil.rmtree(part, ignore_errors=True)
                log.info("removed %s, left behind by a process that died", part)


def _unusable(cache: Path, error: OSError) -> InputError:
    return InputError(
        f"the cache folder must be writeable and have room, found at {cache}: {error}; free some "
        "space there or choose another folder (cache=…, --cache or the variable DOS_CACHE)"
    )
