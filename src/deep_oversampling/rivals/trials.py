"""A trial as one line of JSON, in a file that a stopped comparison goes on with."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..reading import MOST_WORDS, parse_json, read_lines
from ..schema import is_number, is_text, is_whole, list_of, or_none, table, table_of
from ..writing import refuse_links

__all__ = [
    "GROUPS",
    "Setting",
    "Trial",
    "append_header",
    "append_trial",
    "check_writable",
    "read_headers",
    "read_trials",
]

GROUPS = ("minority", "majority", "all")  # of classes
_HEADER = "header"  # the key of a line that is no trial: where and when those below it were run


@dataclass(frozen=True)
class Setting:
    """All that a trial depends on but its method and seed."""

    data: str
    contents: str  # a fingerprint of its labels and of some samples: a name may stand for others
    imbalance: str
    model: str
    k: int
    rounds: int  # T, after as many initial ones (R11)
    batch_size: int
    learning_rate: float
    test_share: float  # held out by each trial's seed, where the data has no test set
    plan: str = "by counts"  # of DOS; "uniform": k for every class and r = 1, for balanced data
    schedule: str = "constant"  # of the learning rate; "cosine": from round to round, down to 0
    rates: tuple[tuple[str, float], ...] = ()  # of methods that have a learning rate of their own
    late_rounds: int | None = None  # the last, to which some methods defer; None: T
    head_rounds: int = 0  # cRT: g alone, after all others; 0: in the last T rounds
    weight_decay: float = 0.0
    augment: str = "none"  # of what training sees; "crop-flip"
    even: bool = False  # a round presents as many images as there are, whatever the method
    judge: str = "test"  # what is measured on; "removed": samples that the protocol took away
    bf16: bool = False  # mixed precision
    tau: float = 1.0  # of methods that adjust logits in training, and of DOS with pieces

    @property
    def late(self) -> int:
        """The rounds to which some methods defer."""
        return self.rounds if self.late_rounds is None else self.late_rounds

    def of(self, method: str) -> Setting:
        """What a method's trials depend on, and no other's learning rate."""
        rate = dict(self.rates).get(method, self.learning_rate)
        return replace(self, learning_rate=rate, rates=())


@dataclass(frozen=True)
class Trial:
    """One method, one seed."""

    setting: Setting  # of this method
    method: str
    seed: int
    minority: tuple[int, ...]  # the classes that the plan favours
    samples: tuple[int, ...]  # (n,)  of each class in training
    measures: dict[str, tuple[float | None, ...]]  # measure -> (n,); None: no sample to test on
    presented: int  # images in all
    seconds: float  # of training; the same for methods that share one
    where: dict[str, str]  # versions and hardware
    left_out: str = ""  # the reason, where the method could not be run
    lost: str = ""  # the reason, where training was lost; measured is what it had before

    def mean(self, measure: str, group: str) -> float:
        """Over the classes of a group that have a value; NaN if there is none."""
        everything = range(len(self.samples))
        classes = {
            "minority": self.minority,
            "majority": [j for j in everything if j not in self.minority],
            "all": everything,
        }
        column = self.measures.get(measure, ())
        values = [v for j in classes[group] if j < len(column) and (v := column[j]) is not None]
        return sum(values) / len(values) if values else math.nan


def append_trial(path: Path, trial: Trial) -> None:
    _append(path, asdict(trial))


def append_header(path: Path, header: dict[str, Any]) -> None:
    """Where and when the trials that follow are run."""
    _append(path, {_HEADER: header})


def _append(path: Path, content: dict[str, Any]) -> None:
    """One line, written in one go; after a torn one, on a line of its own."""
    line = json.dumps(content) + "\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab+") as file:
            if file.tell():
                file.seek(-1, os.SEEK_END)
                line = line if file.read() == b"\n" else "\n" + line
            file.write(line.encode())
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise _not_writable(path, error) from None


def _not_writable(path: Path, error: OSError) -> InputError:
    return InputError(
        f"{path} must be a file that can be written to: {error}; choose another folder (--out)"
    )


def read_trials(
    path: Path,
    setting: Setting | None = None,
    *,
    on_broken: Callable[[int], None] | None = None,  # the number of a line that is no JSON
) -> list[Trial]:
    """The trials of a file, the first of each method and seed; other settings are refused.

    A broken line, torn when the process died, is passed over: its trial is run again.
    """
    found: dict[tuple[str, int], Trial] = {}
    rates: dict[str, float] = {}  # of the methods, where nothing but the file says them
    for number, content in _lines(path, on_broken):
        if _is_header(content):
            continue
        trial = _trial(path, number, content)
        rate = rates.setdefault(trial.method, trial.setting.learning_rate)
        if found and not setting:
            wanted = replace(next(iter(found.values())).setting, learning_rate=rate)
        else:
            wanted = setting.of(trial.method) if setting else trial.setting
        if trial.setting != wanted:
            raise InputError(
                f"{path} must hold trials of one setting, found {_difference(trial, wanted)} in "
                f"line {number}; choose another folder (--out)"
            )
        key = (trial.method, trial.seed)
        if key not in found or found[key].left_out:  # what was left out may have been run later
            found[key] = trial
    return list(found.values())


def read_headers(path: Path) -> list[dict[str, Any]]:
    """Where and when the trials of a file were run; ``dos compare`` writes no headers."""
    return [content[_HEADER] for _, content in _lines(path) if _is_header(content)]


def _lines(path: Path, on_broken: Callable[[int], None] | None = None) -> Iterator[tuple[int, Any]]:
    if not path.exists():
        return
    try:
        for number, line in enumerate(read_lines(path, MOST_WORDS), 1):
            try:
                content = parse_json(line.decode())
            except UnicodeDecodeError:
                raise
            except ValueError:
                if on_broken:
                    on_broken(number)
                continue
            yield number, content
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} must be a readable file of trials: {error}") from None


def _is_header(content: Any) -> bool:
    return isinstance(content, dict) and isinstance(content.get(_HEADER), dict)


def check_writable(path: Path) -> None:
    """Before hours of training, not after."""
    refuse_links([path])
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.open("ab").close()
    except OSError as error:
        raise _not_writable(path, error) from None


def _trial(path: Path, number: int, values: Any) -> Trial:
    try:
        setting = {"contents": "", **values["setting"]}  # the first trials had no fingerprint
        setting.pop("initial_rounds", None)  # of a release that said it; it was always T
        rates = tuple((name, rate) for name, rate in setting.get("rates", ()))
        lists = {name: tuple(values[name]) for name in ("minority", "samples")}
        measures = {name: tuple(column) for name, column in values["measures"].items()}
        own = Setting(**{**setting, "rates": rates}).of(values["method"])
        made = Trial(**{**values, **lists, "measures": measures, "setting": own})
        if not _is_trial({**values, "setting": setting}):
            raise TypeError("a value is of another type than it must be")
    except (TypeError, KeyError, AttributeError, ValueError) as error:
        raise InputError(
            f"{path} must hold trials as this release writes them, found in line {number}: "
            f"{error}; use the release that wrote it, or choose another folder (--out)"
        ) from None
    return made


_is_setting = table(
    **dict.fromkeys(("data", "contents", "imbalance", "model"), is_text),
    **dict.fromkeys(("k", "rounds", "batch_size"), is_whole),
    **dict.fromkeys(("learning_rate", "test_share"), is_number),
)
_is_trial = table(
    setting=_is_setting,
    method=is_text,
    **dict.fromkeys(("seed", "presented"), is_whole),
    **dict.fromkeys(("minority", "samples"), list_of(is_whole)),
    measures=table_of(list_of(or_none(is_number))),
    seconds=is_number,
    where=table_of(is_text),
)


def _difference(trial: Trial, setting: Setting) -> str:
    theirs, ours = asdict(trial.setting), asdict(setting)
    other = [name for name in ours if theirs[name] != ours[name]]
    return ", ".join(f"{name} {theirs[name]!r} instead of {ours[name]!r}" for name in other)
