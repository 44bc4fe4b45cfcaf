"""run.json: what a run was and what came of it; checked when it is read."""

from __future__ import annotations

import json
import math
import platform
import shlex
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import torch

from .. import __version__
from ..data import fingerprint
from ..errors import InputError
from ..metrics import MEASURES
from ..reading import MOST_WORDS, Migrations, migrated, parse_json, read_plain
from ..schema import (
    Holds,
    is_count,
    is_history,
    is_number,
    is_text,
    is_true_or_false,
    list_of,
    or_none,
    table_of,
)
from ..writing import jsonable, write_whole
from .places import CONFIG
from .preparing import Task
from .training import Outcome

__all__ = ["Record", "make_record", "read_record", "write_record"]

_FORMAT, _VERSION = "deep_oversampling run", 1
_MIGRATIONS: Migrations = {}  # no other version was ever written
_LARGEST = 2**28  # values of a sample; what a file says is not built before it is checked


@dataclass(frozen=True)
class Record:
    """Per class, lists are in the order of ``classes``; None stands for what is no number."""

    status: str  # "finished", or where it was stopped and why
    data: str  # its name
    model: str
    classes: list[str]
    input_shape: list[int]  # of a sample
    input_dtype: str  # "uint8" or "float32", …
    k: list[int]
    r: list[float]
    minority: list[str]  # classes that the plan favours
    counts: dict[str, list[int]]  # "train" and "validation"
    fingerprints: dict[str, str]  # of both
    held_out: bool  # validation samples were taken from those to train on
    temperature: float
    measures: dict[str, Any]  # method -> group -> measure -> value, on validation
    history: dict[str, Any]  # method -> History.to_dict()
    candidates: list[dict[str, Any]]  # of k = "auto", the best first
    seconds: float
    versions: dict[str, str]


def make_record(task: Task, outcome: Outcome, *, held_out: bool) -> Record:
    train, plan, settings = task.train, task.plan, task.settings
    parts = {"train": train, "validation": task.validation}
    return Record(
        status=outcome.status,
        data=task.splits.name,
        model=settings.model,
        classes=list(train.classes),
        input_shape=list(train.x.shape[1:]),
        input_dtype=str(train.x.dtype).removeprefix("torch."),
        k=plan.k.tolist(),
        r=plan.r.tolist(),
        minority=[train.classes[j] for j in plan.minority.nonzero().flatten().tolist()],
        counts={name: part.class_counts.tolist() for name, part in parts.items()},
        fingerprints={name: fingerprint(part) for name, part in parts.items()},
        held_out=held_out,
        temperature=outcome.temperature,
        measures=outcome.measures,
        history={method: history.to_dict() for method, history in outcome.histories.items()},
        candidates=[asdict(one) for one in task.candidates],
        seconds=round(outcome.seconds, 3),
        versions={
            "deep-oversampling": __version__,
            "torch": str(torch.__version__),
            "python": platform.python_version(),
            "device": str(task.device),
        },
    )


def write_record(record: Record, path: Path) -> None:
    content = {"format": _FORMAT, "version": _VERSION, **asdict(record)}
    text = json.dumps(jsonable(content), indent=1, ensure_ascii=False, allow_nan=False)
    write_whole({path: (text + "\n").encode("utf-8", "surrogateescape")})


def read_record(path: Path) -> Record:
    """What must hold of each field is checked; a file of a later version is refused."""
    try:
        content = parse_json(read_plain(path, MOST_WORDS).decode("utf-8", "surrogateescape"))
    except OSError as error:
        raise InputError(
            f"{path.parent} must be the folder of a run, found that {path.name} cannot be read: "
            f"{error.strerror}; {_what_to_do_without(path)}"
        ) from None
    except ValueError as error:
        raise _not_a_run(path, f"no JSON: {error}") from None
    if not isinstance(content, dict) or content.pop("format", None) != _FORMAT:
        raise _not_a_run(path, f"no {_FORMAT!r} as its format")
    version = content.pop("version", None)
    content = migrated(content, version, _VERSION, _MIGRATIONS)
    if content is None:
        raise InputError(
            f"{path} must be a run of format version {_VERSION}, found version {version!r:.80}; "
            "use the release of deep_oversampling that wrote it, or train again"
        )
    names = [field.name for field in fields(Record)]
    for what, odd in (("no", set(names) - set(content)), ("unknown", set(content) - set(names))):
        if odd:
            raise _not_a_run(path, f"{what} {', '.join(sorted(odd))}")
    for name, (holds, must) in _MUST.items():
        if not holds(content[name]):
            raise _not_a_run(path, f"{name} = {content[name]!r:.80} where there must be {must}")
    n = len(content["classes"])
    lists = {name: content[name] for name in ("k", "r")} | content["counts"]
    if n < 2 or len(set(content["classes"])) < n:
        raise _not_a_run(path, f"{n} classes where two or more must differ in their names")
    for name, found in lists.items():
        if len(found) != n:
            raise _not_a_run(path, f"{n} classes, {len(found)} of {name}")
    dtype = getattr(torch, content["input_dtype"], None)
    if not isinstance(dtype, torch.dtype) or not (dtype.is_floating_point or dtype == torch.uint8):
        raise _not_a_run(path, f"input_dtype = {content['input_dtype']!r}")
    return Record(**content)


def _what_to_do_without(path: Path) -> str:
    """Of a run that is not finished, or in a folder that holds something else."""
    folder = path.parent
    if (folder / CONFIG).exists():
        return (
            "a training that is still going on has none yet, and one that was killed goes on: "
            f"dos train --config {shlex.quote(str(folder / CONFIG))} "
            f"--out {shlex.quote(str(folder))}"
        )
    runs = sorted(str(found.parent) for found in folder.glob(f"*/{path.name}"))
    there = f", such as {', '.join(runs[:3])}" if runs else ""
    return f"name a folder that dos train has filled{there}"


def _is_positive(value: Any) -> bool:
    return is_number(value) and value > 0


def _is_shape(value: Any) -> bool:
    sides = isinstance(value, list) and all(is_count(one) and one > 0 for one in value)
    return sides and 0 < len(value) <= 8 and math.prod(value) <= _LARGEST


def _are_measures(value: Any) -> bool:
    """Of every method the same groups, so that they can stand beside each other."""
    fits = table_of(table_of(table_of(or_none(is_number), needs=MEASURES)))(value)
    return fits and len({frozenset(groups) for groups in value.values()}) <= 1


_parts = ("train", "validation")
_MUST: dict[str, tuple[Holds, str]] = {
    **dict.fromkeys(("status", "data", "model", "input_dtype"), (is_text, "text")),
    **dict.fromkeys(("classes", "minority"), (list_of(is_text), "a list of names")),
    "k": (list_of(is_count), "a list of whole numbers"),
    "r": (list_of(_is_positive), "a list of numbers above 0"),
    **dict.fromkeys(("temperature", "seconds"), (_is_positive, "a number above 0")),
    "input_shape": (_is_shape, f"the sides of a sample of at most {_LARGEST:,} values"),
    "counts": (table_of(list_of(is_count), needs=_parts), "counts to train and validate on"),
    "fingerprints": (table_of(is_text, needs=_parts), "fingerprints of both"),
    "measures": (_are_measures, "measures of every method, for the same groups of classes"),
    "history": (table_of(is_history), "the history of every method"),
    "candidates": (list_of(table_of(or_none(is_number), needs=("k", "r_times"))), "choices of k"),
    "versions": (table_of(is_text), "a table of texts"),
    "held_out": (is_true_or_false, "true or false"),
}


def _not_a_run(path: Path, found: str) -> InputError:
    return InputError(
        f"{path} must be as dos train writes it, found {found}; train again, or get an undamaged "
        "copy"
    )
