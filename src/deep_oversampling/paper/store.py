"""The folder of the results: where its files are, and what they say without any data at hand."""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..reading import MOST_WORDS, parse_json, read_plain
from ..rivals import METHODS
from ..rivals.trials import Setting, Trial, read_headers, read_trials
from ..schema import Holds, is_number, is_text, is_whole, list_of, table, table_of
from ..writing import write_whole
from .experiments import LOOKED_AT, TABLES, Experiment
from .settings import SETS

__all__ = [
    "Stored",
    "check_results",
    "copy_printed",
    "datasets_file",
    "figures_folder",
    "read_datasets",
    "read_noting",
    "read_stored",
    "remarks_file",
    "trials_file",
    "write_json",
]


def trials_file(out: Path, name: str) -> Path:
    return out / "trials" / f"{name}.jsonl"


def figures_folder(out: Path) -> Path:
    return out / "figures"


def datasets_file(out: Path) -> Path:
    return out / "datasets.json"


def remarks_file(out: Path) -> Path:
    """What people wrote about the numbers of these trials; by hand, and of no others."""
    return out / "remarks.toml"


@dataclass(frozen=True, eq=False)
class Stored:
    """All that a page is made of."""

    trials: dict[str, list[Trial]]  # experiment -> trials
    headers: dict[str, list[dict[str, Any]]]
    datasets: dict[str, dict[str, Any]]
    looks: dict[str, dict[str, Any]] = field(default_factory=dict)  # into single trainings
    remarks: dict[str, dict[str, str]] = field(default_factory=dict)  # table -> where -> why
    broken: list[str] = field(default_factory=list)  # about lines that could not be read

    def of(self, experiment: Experiment, method: str) -> list[Trial]:
        """Of one method, in the order of their seeds; none where it was left out."""
        found = self.trials.get(experiment.name, [])
        chosen = [t for t in found if t.method == method and not t.left_out]
        return sorted(chosen, key=lambda trial: trial.seed)

    @property
    def quick(self) -> bool:
        headers = [header for of in self.headers.values() for header in of]
        return any(header.get("quick") for header in [*headers, *self.looks.values()])


def read_stored(out: Path) -> Stored:
    """What is there; an experiment that was not run has no trials."""
    names = {one.name for table in TABLES.values() for one in table.experiments}
    paths = {name: trials_file(out, name) for name in sorted(names)}
    broken: list[str] = []
    return Stored(
        {name: read_noting(path, broken) for name, path in paths.items()},
        {name: _headers(path) for name, path in paths.items()},
        read_datasets(out),
        {path.stem: _json(path, _is_look) for path in sorted(figures_folder(out).glob("*.json"))},
        _remarks(remarks_file(out)),
        broken,
    )


def read_noting(path: Path, notes: list[str], setting: Setting | None = None) -> list[Trial]:
    """Trials of a file, all or those of a setting; a line that is broken is noted."""
    told = "is broken and set aside; the others are kept"
    return read_trials(
        path, setting, on_broken=lambda number: notes.append(f"{path}, line {number} {told}")
    )


def check_results(out: Path) -> None:
    """Before a page is written over by an empty one."""
    kept = [*(out / "trials").glob("*.jsonl"), *figures_folder(out).glob("*.json")]
    if not kept and not datasets_file(out).exists():
        raise InputError(
            f"{out} must be a folder of results, found no trials in it; name another (--out), or "
            "run dos reproduce without --render first"
        )


def read_datasets(out: Path) -> dict[str, dict[str, Any]]:
    """What the sets are and how they are used, by name."""
    path = datasets_file(out)
    return _json(path, _are_sets) if path.exists() else {}


def write_json(path: Path, content: dict[str, Any]) -> None:
    write_whole({path: (json.dumps(content) + "\n").encode()})


def _json(path: Path, holds: Holds) -> dict[str, Any]:
    try:
        content: dict[str, Any] = parse_json(read_plain(path, MOST_WORDS).decode())
        if not holds(content):
            raise ValueError("values are missing, or of another type than they must be")
    except (OSError, ValueError) as error:
        raise InputError(
            f"{path} must be a file that dos reproduce wrote, found: {error}; delete it, and "
            "dos reproduce writes it again"
        ) from None
    return content


def _remarks(path: Path) -> dict[str, dict[str, str]]:
    """None where nobody has written any."""
    if not path.exists():
        return {}
    try:
        content: dict[str, dict[str, str]] = tomllib.loads(read_plain(path, MOST_WORDS).decode())
        if not _are_remarks(content):
            raise ValueError("a section of another name, or a remark that is no text")
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(
            f"{path} must be TOML with a section for each table that has remarks "
            f'({", ".join(_REMARKED)}) and lines like "where" = "why" in it, found: {error}'
        ) from None
    return content


def _headers(path: Path) -> list[dict[str, Any]]:
    found = read_headers(path)
    if not all(map(_is_header, found)):
        raise InputError(
            f"{path} must have headers that say where and when its trials were run, found one "
            "that does not; delete that line"
        )
    return found


_is_header = table(where=table_of(is_text), date=is_text)


def _are_rates(value: Any) -> bool:
    """Of methods, by name."""
    return table_of(is_number)(value) and value.keys() <= METHODS.keys()


_is_set = table(
    **dict.fromkeys(("found", "layers"), is_text),
    **dict.fromkeys(("classes", "train", "test", "batch_size", "rounds"), is_whole),
    shape=list_of(is_whole),
    rates=table_of(_are_rates),
)


_REMARKED = (*TABLES, "figures")


def _are_remarks(value: Any) -> bool:
    return table_of(table_of(is_text))(value) and value.keys() <= set(_REMARKED)


def _are_sets(value: Any) -> bool:
    return table_of(_is_set)(value) and value.keys() <= SETS.keys()


_are_points = list_of(lambda point: list_of(is_number)(point) and len(point) == 2)
_looks_right = table(
    setting=table(data=is_text, imbalance=is_text, rounds=is_whole),
    **dict.fromkeys(("minority", "labels"), list_of(is_whole)),
    methods=table_of(
        table(
            within=list_of(is_number),
            **dict.fromkeys(("curve", "before", "after"), _are_points),
        ),
        needs=LOOKED_AT,
    ),
)


def _is_look(value: Any) -> bool:
    """With a point for every label, and nothing that no figure has a place for."""
    return (
        _looks_right(value)
        and len(value["methods"]) == len(LOOKED_AT)
        and all(
            seen["curve"] and len(seen["before"]) == len(seen["after"]) == len(value["labels"])
            for seen in value["methods"].values()
        )
    )


def copy_printed(out: Path) -> None:
    """The paper's numbers beside ours, so that the folder is complete."""
    printed = files(__package__).joinpath("printed").iterdir()
    tables = [file for file in printed if file.name.endswith(".csv")]
    write_whole({out / "printed" / file.name: file.read_bytes() for file in tables})
