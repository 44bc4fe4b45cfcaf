"""Official files fetched to their places: whole and checked, or not there at all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import InputError
from ..cache import data_folder
from .archives import checksum, unpack
from .catalogue import Download, File, Source, look_up

if TYPE_CHECKING:
    import requests

__all__ = ["Fetched", "Progress", "State", "fetch", "in_words", "verify"]

Progress = Callable[[str, int, int | None], None]  # file, bytes so far, bytes in all if known

_TIMEOUT = (10, 60)  # seconds to connect, and to wait for the next bytes
_MOST = 1 << 32  # bytes of a file whose size is not known
_CHUNK = 1 << 16  # bytes; what is lost at most when a connection breaks off


class State(StrEnum):
    """How a file in the data folder compares with the catalogue."""

    OFFICIAL = "official"
    DIFFERS = "differs"
    MISSING = "missing"


@dataclass(frozen=True)
class Fetched:
    """What `fetch` did."""

    source: Source  # whose files were seen to: another than asked for where it is made from that
    new: tuple[File, ...]  # the others were there
    notes: tuple[str, ...]  # what the user should know, a sentence each


class _NotHad(InputError):
    """No address gave the file; the data folder is not to blame."""


class _Failed(Exception):
    """One address did not give the file; the text says why."""


def verify(
    name: str,
    folder: Path | str | None = None,
    *,
    catalogue: Mapping[str, Source] | None = None,
) -> list[tuple[File, State]]:
    """Each official file of a source, and whether the data folder holds it."""
    place = data_folder(folder)
    try:
        return [(file, _state(place, file)) for file in look_up(name, catalogue).files]
    except OSError as error:
        raise InputError(
            f"the files in the data folder must be readable, found {error}; change their "
            "permissions or choose another folder (folder=… or the variable DOS_DATA)"
        ) from None


def in_words(source: Source, file: File, state: State) -> str:
    """A sentence for the user on what `verify` found."""
    if state is State.OFFICIAL:
        return f"{file.path} is the official file"
    if state is State.DIFFERS:
        return (
            f"{file.path} differs from the official file and is used as it is; to replace it, "
            "delete it and fetch again"
        )
    if source.made_from:
        return (
            f"{file.path} is missing; without it, {source.title} is re-created from the files of "
            f"{source.made_from}"
        )
    return f"{file.path} is missing; fetch {source.name} to get it"


def fetch(
    name: str,
    folder: Path | str | None = None,
    on_progress: Progress | None = None,
    *,
    catalogue: Mapping[str, Source] | None = None,
) -> Fetched:
    """Download what is missing of a source to the data folder; what is there stays as it is.

    A download that breaks off leaves ``<file>.part``, and the next call goes on from there.
    """
    source = look_up(name, catalogue)
    place = data_folder(folder)
    progress = on_progress or (lambda file, done, total: None)
    new: list[File] = []
    notes: list[str] = []
    try:
        for download in source.downloads:
            states = {file: _state(place, file) for file in download.files}
            differing = [file for file, state in states.items() if state is State.DIFFERS]
            missing = [file for file, state in states.items() if state is State.MISSING]
            notes += [in_words(source, file, State.DIFFERS) for file in differing]
            if missing and download.members:
                notes.append(_fetch_members(download, missing, place, progress))
            elif missing:
                _downloaded(download, place, progress).replace(place / download.file.path)
            new += missing
    except _NotHad as error:
        if source.made_from is None:
            raise
        other = fetch(source.made_from, place, on_progress, catalogue=catalogue)
        note = f"{source.title} will be re-created from {other.source.title}, for {error}"
        return Fetched(other.source, other.new, (note, *other.notes))
    except OSError as error:
        raise InputError(
            f"the data folder must be writeable and have room, found at {place}: {error}; free "
            "some space there or choose another folder (folder=… or the variable DOS_DATA)"
        ) from error
    return Fetched(source, tuple(new), tuple(notes))


def _state(place: Path, file: File) -> State:
    path = place / file.path
    if not path.is_file():
        return State.MISSING
    if file.size is not None and path.stat().st_size != file.size:
        return State.DIFFERS
    return State.OFFICIAL if checksum(path, file) == file.hash else State.DIFFERS


def _downloaded(download: Download, place: Path, progress: Progress) -> Path:
    """The .part file of a download, with every byte of it there and checked."""
    file = download.file
    part = place / f"{file.path}.part"
    part.parent.mkdir(parents=True, exist_ok=True)
    if part.is_file() and (file.size is None or part.stat().st_size >= file.size):
        if checksum(part, file) == file.hash:
            return part  # an earlier call got this far
        if file.size is not None:
            part.unlink()
    failures = []
    for url in download.urls:  # the next goes on where the last broke off: it is the same file
        try:
            _download(url, part, file, progress)
            return part
        except _Failed as failure:
            failures.append(f"{url} {failure}")
    kept = " (it goes on from what came so far)" if part.exists() else ""
    raise _NotHad(
        f"{file.path} must come from its address, found that {' and '.join(failures)}; fetch again "
        f"later{kept} or put {Path(file.path).name} into {part.parent} by hand"
    )


def _download(url: str, part: Path, file: File, progress: Progress) -> None:
    resumed = True
    while resumed:  # twice at most: what an old .part began may be another file
        resumed = _stream(url, part, file, progress)
        found = checksum(part, file)
        if found == file.hash:
            return
        part.unlink()
    raise _Failed(f"gave a file with the checksum {found} where {file.hash} is official (removed)")


def _stream(url: str, part: Path, file: File, progress: Progress) -> bool:
    """Write what the address gives to ``part``; whether that went on from what was there."""
    import requests
    import urllib3

    have = part.stat().st_size if part.exists() else 0
    try:
        response = _get(url, have)
        try:
            resumed = have > 0 and _goes_on(response, have)
            if have and not resumed and response.status_code in (206, 416):
                response.close()
                response = _get(url, 0)
            if not response.ok:
                raise _Failed(f"answered {response.status_code} {response.reason}")
            done = have if resumed else 0
            length = response.headers.get("Content-Length", "")
            end = done + int(length) if length.isdecimal() else None
            with part.open("ab" if resumed else "wb") as out:
                # as sent: .gz files that a server declares as encoded would be unpacked otherwise
                for chunk in response.raw.stream(_CHUNK, decode_content=False):
                    out.write(chunk)
                    done += len(chunk)
                    if done > (file.size or _MOST):
                        raise _Failed(f"gave more than {file.size or _MOST:,} bytes")
                    progress(file.path, done, end or file.size)
        finally:
            response.close()
    except (requests.Timeout, urllib3.exceptions.TimeoutError):
        raise _Failed("did not answer in time") from None
    except (requests.RequestException, urllib3.exceptions.HTTPError) as error:
        raise _Failed(f"could not be reached or broke off: {_reason(error)}") from None
    if end is not None and done < end:
        raise _Failed(f"broke off after {done:,} of {end:,} bytes")
    return resumed


def _get(url: str, start: int) -> requests.Response:
    import requests

    headers = {"Accept-Encoding": "identity"}  # the checksums are of the files as they are
    if start:
        headers["Range"] = f"bytes={start}-"
    return requests.get(url, headers=headers, stream=True, timeout=_TIMEOUT)


def _goes_on(response: requests.Response, have: int) -> bool:
    """Whether the answer holds the bytes from ``have`` on; some servers send the whole file."""
    given = response.headers.get("Content-Range", "")
    return response.status_code == 206 and given.startswith(f"bytes {have}-")


def _reason(error: Exception) -> str:
    """The cause that requests and urllib3 wrap, without their wrapping."""
    from urllib3.exceptions import MaxRetryError

    inner = error.args[0] if error.args else error
    reason = inner.reason if isinstance(inner, MaxRetryError) else inner
    return str(reason).split("): ", 1)[-1]


def _fetch_members(
    download: Download, files: list[File], place: Path, progress: Progress
) -> str:  # what the user should know
    """Put members of an archive to their places; the archive may have been put there by hand."""
    given = place / download.file.path
    names = ", ".join(file.path for file in files)
    if given.is_file():
        found = checksum(given, download.file)
        if found != download.file.hash:
            raise InputError(
                f"{given} must have the checksum {download.file.hash}, found {found}; delete it "
                "and fetch again"
            )
        unpack(given, files, place, progress)
        return f"{names} came out of {given}, which was there and is no longer needed"
    archive = _downloaded(download, place, progress)
    try:
        unpack(archive, files, place, progress)
    except InputError:
        archive.unlink()  # unlike a full disk, this is the same the next time
        raise
    archive.unlink()
    return f"{names} came out of {download.file.path}, which was removed afterwards"
