"""Inputs by number: each is made again from the reader's name and its number alone."""

import random
import resource
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deep_oversampling.errors import DOSError

from .readers import Reader

SECONDS, GROWTH = 5, 1 << 30  # for one input, and bytes of memory
_FORBIDDEN = ("pickle.find_class", "os.system", "subprocess.Popen", "socket.connect")
_WRITES = ("os.mkdir", "os.rename", "os.remove", "os.link", "os.symlink", "shutil.rmtree")


class Hang(BaseException):
    """No `Exception`: nobody on the way catches it."""


@dataclass
class Outcome:
    """What came of the inputs of a reader."""

    read: int = 0
    refused: Counter[str] = field(default_factory=Counter)  # by the error's type
    finds: list[str] = field(default_factory=list)
    slowest: float = 0.0  # seconds


class _Watch:
    """What the process does while a file is read, by Python's audit events."""

    def __init__(self) -> None:
        self.inside: Path | None = None
        self.seen: list[str] = []
        sys.addaudithook(self._event)

    def _event(self, name: str, given: tuple[Any, ...]) -> None:
        if self.inside is None:
            return
        ran = name == "exec" and Path(given[0].co_filename).is_relative_to(self.inside)
        if ran or name in _FORBIDDEN:  # modules may be loaded late, but not from there
            self.seen.append(f"{name} {str(given)[:80]}")
        writes = name == "open" and isinstance(given[1], str) and set(given[1]) & set("wax+")
        named = (writes or name in _WRITES) and isinstance(given[0], str | Path)
        path = Path(given[0]) if named else self.inside
        inside = path.is_relative_to(self.inside)  # a bare name is one in a folder that is open
        if not inside and (path.is_absolute() or len(path.parts) > 1):
            self.seen.append(f"{name} of {given[0]}, outside of the folder")


_watch: list[_Watch] = []  # hooks cannot be taken back, so there is one


@contextmanager
def _watched(folder: Path) -> Iterator[list[str]]:
    if not _watch:
        _watch.append(_Watch())
    watch = _watch[0]
    watch.seen, watch.inside = [], folder
    try:
        yield watch.seen
    finally:
        watch.inside = None


def _ring(*_: object) -> None:
    raise Hang


def attack(reader: Reader, folder: Path, numbers: range) -> Outcome:
    """Damage one file for every number, and read."""
    outcome = Outcome()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    signal.signal(signal.SIGALRM, _ring)
    files = reader.files()
    shutil.rmtree(folder / "input", ignore_errors=True)  # another reader's
    reader.read(reader.put(folder / "input", files))  # whole files are read, and modules imported
    for number in numbers:
        _one(reader, files, folder / "input", number, outcome)
        grown = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
        if grown > GROWTH:
            outcome.finds.append(f"{reader.name} {number}: memory grew by {grown:,} bytes")
            before += grown // 1024
    return outcome


def _one(
    reader: Reader, files: dict[str, bytes], folder: Path, number: int, outcome: Outcome
) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    rng = random.Random(f"{reader.name} {number}")
    reader.write(folder, files, rng)
    start = time.perf_counter()
    with _watched(folder) as seen:
        signal.alarm(SECONDS)
        try:
            reader.read(folder)
            outcome.read += 1
        except (DOSError, *reader.errors) as error:
            outcome.refused[type(error).__name__] += 1
        except (Hang, Exception) as error:
            outcome.finds.append(f"{reader.name} {number}: {error!r:.300}")
        finally:
            signal.alarm(0)
    outcome.finds += [f"{reader.name} {number}: {event}" for event in seen]
    outcome.slowest = max(outcome.slowest, time.perf_counter() - start)
