"""What a run keeps in its folder while it is trained: it goes on from there if it is killed."""

from __future__ import annotations

import json
import shutil
from contextlib import suppress
from dataclasses import MISSING, asdict, fields
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from ..durable import read_checked, write_checked
from ..errors import InputError
from ..locking import Lock
from ..plan import Plan
from ..reading import MOST_WORDS, parse_json
from ..resuming import Checkpoints, OnFound, OnSteps, described, digest_of
from ..schema import is_count, is_number, is_real, list_of, table
from ..selection import Candidate
from ..writing import refuse_links
from .places import UNFINISHED, check_empty, clear, make_folder, write_config
from .preparing import Task
from .settings import Settings

__all__ = ["Unfinished", "begin", "candidates_in", "check_free", "task_in_words"]

_TASK, _MOMENTS = "task", "moments"
_MINUTES = 2.0  # of work that a kill may cost
# where the run is made and from where; what they stand for is compared itself
_NOT_COMPARED = ("data", "data_dir", "weights", "device")


class Unfinished:
    """The part of a run's folder that is there until the run is finished; one process has it."""

    def __init__(self, run: Path) -> None:
        self.run = run  # the folder of the run
        self._folder = run / UNFINISHED
        self._lock = Lock(self._folder / "lock", of=f"the run {run}")
        self._stopping = False
        self._current: Checkpoints | None = None

    @property
    def begun(self) -> bool:
        return (self._folder / _TASK).is_file()

    @property
    def has_checkpoint(self) -> bool:
        return any(self._folder.glob("*/*.checkpoint"))

    def stop(self) -> None:
        """Ask for an end after the current steps, with a checkpoint; a signal may call it."""
        self._stopping = True
        if self._current:
            self._current.stop()

    def checkpoints(
        self, method: str, on_found: OnFound, on_steps: OnSteps | None = None
    ) -> Checkpoints:
        """Those of one of its trainings, in a folder of their own."""
        made = Checkpoints(
            self._folder / method, minutes=_MINUTES, on_found=on_found, on_steps=on_steps
        )
        self._current = made
        if self._stopping:
            made.stop()
        return made

    def begin_also(self, method: str, *, rounds: int, plan: Plan) -> None:
        """So many rounds of the current training are those that another begins with."""
        assert self._current is not None
        k, r = plan.k.tolist(), plan.r.tolist()
        own = {"k": k, "r": r, "known": None, "pieces": None, "tau": None}  # plain rounds have none
        self._current.begin_also(self._folder / method, rounds=rounds, **own)

    def keep(self, name: str, tensor: Tensor) -> None:
        """Beside the checkpoints, for the report; again is the same."""
        path = self._folder / _MOMENTS / name
        try:
            path.parent.mkdir(exist_ok=True)
            write_checked(path, save({"": tensor.contiguous()}))
        except OSError as error:
            raise self._unusable(error) from None

    def kept(self) -> dict[str, Tensor]:
        """What `keep` was given, by name; what is torn or something else is left out."""
        found = {}
        for path in sorted((self._folder / _MOMENTS).glob("*")):
            with suppress(OSError, SafetensorError, KeyError):
                content = None if path.suffix else read_checked(path)  # .part: a torn one
                if content is not None:
                    found[path.name] = load(content)[""]
        return found

    def take(self) -> None:
        """From here on it is this process's."""
        refuse_links([self._folder])
        refuse_links(self._folder.rglob("*"))  # which enters no link
        try:
            self._folder.mkdir(exist_ok=True)
        except OSError as error:
            raise self._unusable(error) from None
        self._lock.take()

    def clear(self) -> None:
        """Forget what was begun; the task first, as without it the rest means nothing."""
        try:
            (self._folder / _TASK).unlink(missing_ok=True)
        except OSError as error:
            raise self._unusable(error) from None
        for one in self._folder.glob("*/"):
            shutil.rmtree(one, ignore_errors=True)

    def write_task(self, task: Task) -> None:
        content = (
            task_in_words(task)
            | {"initial weights": digest_of(task.network)}
            | {"candidates": [asdict(one) for one in task.candidates]}
        )
        try:
            write_checked(self._folder / _TASK, json.dumps(content).encode())
        except OSError as error:
            raise self._unusable(error) from None

    def check(self, task: Task) -> None:
        """Only what was begun can go on."""
        # what an earlier release had no option for was as it is by default
        defaults = {one.name: one.default for one in fields(Settings) if one.default is not MISSING}
        theirs = defaults | _read_task(self._folder / _TASK)
        ours = task_in_words(task) | {"initial weights": digest_of(task.network)}
        other = [name for name in ours if theirs.get(name) != ours[name]]
        if other:
            told = ", ".join(f"{n} {theirs.get(n)!r:.80} instead of {ours[n]!r:.80}" for n in other)
            raise InputError(
                f"the unfinished run in {self.run} must go on as it was begun, found {told}; give "
                "the options it was begun with, choose another folder (--out), or replace what is "
                "there (--overwrite)"
            )

    def finish(self) -> None:
        """All that the run is for is there: nothing is left to go on from."""
        self.clear()
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Unfinished:
        return self

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def _unusable(self, error: OSError) -> InputError:
        return InputError(
            f"{self.run} must be a folder that can be written to and has room: {error}; what was "
            "kept before is as it was, and the same command goes on from there"
        )


def check_free(out: Path | None) -> None:
    """Refuse a folder that `begin` would refuse for what it holds, before data is read for it."""
    if out is not None and out.exists() and not Unfinished(out).begun:
        check_empty(out)


def begin(out: Path | None, name: str, task: Task, *, overwrite: bool = False) -> Unfinished:
    """A new run, or the unfinished one that the folder holds, if it is of the same task."""
    kept = Unfinished(make_folder(out, name))
    if not overwrite and not kept.begun:
        check_empty(kept.run)
    kept.take()
    try:
        if overwrite:
            kept.clear()
            clear(kept.run)
        if kept.begun:
            kept.check(task)
        else:
            if not overwrite:
                check_empty(kept.run)  # another process may have been faster
            kept.clear()
            kept.write_task(task)
        write_config(kept.run, task.settings)
    except BaseException:
        kept.__exit__(None, None, None)
        raise
    return kept


def candidates_in(out: Path | None) -> tuple[Candidate, ...]:
    """Of k = "auto", where the unfinished run in the folder has chosen already."""
    path = (out or Path()) / UNFINISHED / _TASK
    if out is None or not path.is_file():
        return ()
    return tuple(Candidate(**one) for one in _read_task(path)["candidates"])


def task_in_words(task: Task) -> dict[str, Any]:
    """All that the outcome depends on but for the initial weights, in words and numbers."""
    settings = {n: v for n, v in asdict(task.settings).items() if n not in _NOT_COMPARED}
    return settings | {
        "training samples": described(task.train),
        "validation samples": described(task.validation),
    }


_numbers = table(k=is_count, r_times=is_number, f1=is_real)


def _is_candidate(value: Any) -> bool:
    return _numbers(value) and len(value) == len(fields(Candidate)) and value["r_times"] > 0


_is_task = table(candidates=list_of(_is_candidate))


def _read_task(path: Path) -> dict[str, Any]:
    try:
        content = read_checked(path, MOST_WORDS)
        found = None if content is None else parse_json(content)
    except (OSError, ValueError) as error:
        raise InputError(f"{path} must be a readable file of an unfinished run: {error}") from None
    if found is None or not _is_task(found):
        raise InputError(
            f"{path} must be as dos train wrote it, found it damaged; begin anew (--overwrite)"
        )
    read: dict[str, Any] = found
    return read
