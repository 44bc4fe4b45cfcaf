"""run.json: what a run was and what came of it; checked when it is read."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import torch

from .. import __version__
from ..data import fingerprint
from ..errors import InputError
from ..writing import jsonable, write_whole
from .preparing import Task
from .training import Outcome

__all__ = ["Record", "make_record", "read_record", "write_record"]

_FORMAT, _VERSION = "deep_oversampling run", 1


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
    r: list[int]
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
        content = json.loads(path.read_bytes().decode("utf-8", "surrogateescape"))
    except OSError as error:
        raise InputError(
            f"{path.parent} must be the folder of a run, found that run.json cannot be read: "
            f"{error.strerror}; a training that is still going on has none yet, and one that was "
            f"killed goes on: dos train --config {path.parent}/config.toml --out {path.parent}"
        ) from None
    except (ValueError, RecursionError) as error:
        raise _not_a_run(path, f"no JSON: {error}") from None
    if not isinstance(content, dict) or content.pop("format", None) != _FORMAT:
        raise _not_a_run(path, f"no {_FORMAT!r} as its format")
    if (version := content.pop("version", None)) != _VERSION:
        raise InputError(
            f"{path} must be a run of format version {_VERSION}, found version {version!r}; use "
            "the release of deep_oversampling that wrote it, or train again"
        )
    names = [field.name for field in fields(Record)]
    for what, odd in (("no", set(names) - set(content)), ("unknown", set(content) - set(names))):
        if odd:
            raise _not_a_run(path, f"{what} {', '.join(sorted(odd))}")
    for name, (holds, must) in _MUST.items():
        if not holds(content[name]):
            raise _not_a_run(path, f"{name} = {content[name]!r:.80} where there must be {must}")
    n = len(content["classes"])
    if n < 2 or any(len(content[name]) != n for name in ("k", "r")):
        raise _not_a_run(path, f"{n} classes, {len(content['k'])} of k, {len(content['r'])} of r")
    if not isinstance(getattr(torch, content["input_dtype"], None), torch.dtype):
        raise _not_a_run(path, f"input_dtype = {content['input_dtype']!r}")
    return Record(**content)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_positive(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


def _are_counts(value: Any) -> bool:
    return isinstance(value, list) and all(type(one) is int and one >= 0 for one in value)


def _is_table(value: Any) -> bool:
    return isinstance(value, dict)


_MUST: dict[str, tuple[Callable[[Any], bool], str]] = {
    **dict.fromkeys(("status", "data", "model", "input_dtype"), (_is_text, "text")),
    **dict.fromkeys(("classes", "minority"), (_are_texts, "a list of names")),
    **dict.fromkeys(("k", "r", "input_shape"), (_are_counts, "a list of whole numbers")),
    **dict.fromkeys(("temperature", "seconds"), (_is_positive, "a number above 0")),
    **dict.fromkeys(
        ("counts", "fingerprints", "measures", "history", "versions"), (_is_table, "a table")
    ),
    "candidates": (lambda value: isinstance(value, list), "a list"),
    "held_out": (lambda value: isinstance(value, bool), "true or false"),
}


def _not_a_run(path: Path, found: str) -> InputError:
    return InputError(
        f"{path} must be as dos train writes it, found {found}; train again, or get an undamaged "
        "copy"
    )
