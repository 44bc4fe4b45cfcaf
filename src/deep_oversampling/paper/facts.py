"""The smaller tables: digit by digit, the data sets, and the time it takes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..rivals.summary import cell
from ..rivals.trials import Trial
from .cells import DOUBT, CellMaker, number
from .experiments import TABLES, Experiment
from .markdown import measure_names, method_title, plain, set_title, table
from .performance import found_title
from .printed import datasets as printed_datasets
from .settings import SETS
from .store import Stored

__all__ = ["classwise", "datasets", "runtime", "summary"]

_MEASURES = ("precision", "recall", "f1")
_TITLES = {"cnn": "CNN", "cnn-cl": "deep representation + kNN"}
_KINDS = {"drop": "four classes reduced", "none": "as it is", "x10": "ten-fold"}
_STARRED = {0, 4, 5, 6}  # the digits that the printed trial reduced


def classwise(stored: Stored, cells: CellMaker, method: str) -> list[str]:
    """Digit by digit, of the trials that reduced the digit (*), or did not, as the printed one."""
    even, reduced = TABLES["classwise"].experiments
    rows = []
    for digit in range(10):
        starred = digit in _STARRED
        label = f"{digit}*" if starred else f"{digit}"
        some = [t for t in stored.of(reduced, method) if (digit in t.minority) == starred]
        row = [label]
        for kind, experiment, trials, name in (
            ("balanced", even, stored.of(even, method), f"{digit}"),
            ("imbalanced", reduced, some, label),
        ):
            row += [
                cells.cell(
                    _of_digit(trials, measure, digit),
                    cells.find(experiment.data, experiment.imbalance, method, 5, name, measure),
                    f"{kind}, digit {name}: {measure}",
                )
                for measure in _MEASURES
            ]
        rows.append([*row, str(len(some))])
    heads = [f"{kind}: {name}" for kind in ("balanced", "imbalanced") for name in _names()]
    return table(["digit", *heads, "trials"], rows)


def summary(stored: Stored, cells: CellMaker) -> list[str]:
    """The means over the classes."""
    even, reduced = TABLES["classwise"].experiments
    rows = []
    for title, experiment, group in (
        ("balanced", even, "all"),
        ("minority", reduced, "minority"),
        ("majority", reduced, "majority"),
    ):
        row = [title]
        for method, words in _TITLES.items():
            trials = stored.of(experiment, method)
            row += [
                cells.cell(
                    [trial.mean(measure, group) for trial in trials],
                    cells.find(experiment.data, experiment.imbalance, method, 5, group, measure),
                    f"{words}, {title}: {measure}",
                )
                for measure in _MEASURES
            ]
        rows.append(row)
    heads = [f"{words}: {name}" for words in _TITLES.values() for name in _names()]
    return table(["classes", *heads], rows)


def datasets(stored: Stored, cells: CellMaker) -> list[str]:
    """What was loaded and how it was trained on; the printed line where it says otherwise."""
    told = {row["data"]: row for row in printed_datasets()}
    rows = []
    for name in SETS:
        facts = stored.datasets.get(name)
        ours = _of_set(facts) if facts else ["–"] * 6
        rows.append([set_title(name, facts["found"] if facts else None), *ours])
        if name in told:
            row = told[name]
            rows.append([f"printed {DOUBT}" if row["doubt"] else "printed", *_of_printed(row)])
            if row["doubt"]:
                cells.doubts.setdefault(row["doubt"], []).append(set_title(name))
    heads = ["set", "classes", "training", "test", "image", "CNN layers", "batch size/rounds"]
    return [*table(heads, rows), *_learning_rates(stored.datasets)]


def _learning_rates(sets: dict[str, dict[str, Any]]) -> list[str]:
    """Which the paper does not print."""
    used = {
        f"{set_title(name)}, {_KINDS.get(kind, plain(kind))}": rates
        for name, facts in sets.items()
        for kind, rates in facts["rates"].items()
    }
    methods = list(dict.fromkeys(method for rates in used.values() for method in rates))
    rows = [[title, *_each(rates, methods)] for title, rates in used.items()]
    return table(["learning rate, not printed", *map(method_title, methods)], rows)


def _each(rates: dict[str, float], methods: list[str]) -> list[str]:
    return [f"{rates[method]:g}" if method in rates else "–" for method in methods]


def _of_set(facts: dict[str, Any]) -> list[str]:
    return [
        str(facts["classes"]),
        f"{facts['train']:,}",
        f"{facts['test']:,}",
        " × ".join(map(str, facts["shape"])),
        plain(facts["layers"]),
        f"{facts['batch_size']}/{facts['rounds']}",
    ]


def _of_printed(row: dict[str, str]) -> list[str]:
    return [
        row["classes"],
        f"{int(row['training']):,}",
        f"{int(row['test']):,}",
        row["shape"].replace("x", " × "),
        row["layers"],
        f"{row['batch_size']}/{row['rounds']}",
    ]


def runtime(stored: Stored, cells: CellMaker) -> list[str]:
    """Seconds of training, and how much longer DOS takes."""
    rows = []
    for experiment in TABLES["runtime"].experiments:
        seconds = [
            cell([t.seconds for t in stored.of(experiment, m)]).mean for m in ("cnn", "ros", "dos")
        ]
        one = cells.find(experiment.data, "", "dos", 5, "all", "ratio")  # no p is named
        shown = f" ({cells.printed_text(one, set_title(experiment.data))})" if one else ""
        rows.append(
            [
                found_title(stored, experiment),
                *(number(value, 2) for value in seconds),
                _ratio(stored, experiment, "cnn", "seconds") + shown,
                _ratio(stored, experiment, "ros", "seconds"),
                _ratio(stored, experiment, "cnn", "presented"),
            ]
        )
    heads = [
        "CNN, s",
        "random over-sampling, s",
        "DOS, s",
        "DOS / CNN",
        "DOS / random over-sampling",
    ]
    return table(["set, p = .99", *heads, "images presented, DOS / CNN"], rows)


def _ratio(stored: Stored, experiment: Experiment, to: str, what: str) -> str:
    own = {t.seed: float(getattr(t, what)) for t in stored.of(experiment, "dos")}
    other = {t.seed: float(getattr(t, what)) for t in stored.of(experiment, to)}
    ratios = [own[seed] / other[seed] for seed in own if other.get(seed)]
    found = cell(ratios)
    text = number(found.mean, 2)
    return text if math.isnan(found.sd) else f"{text} ± {number(found.sd, 2)}"


def _of_digit(trials: Sequence[Trial], measure: str, digit: int) -> list[float]:
    values = [t.measures[measure][digit] for t in trials]
    return [value for value in values if value is not None]


def _names() -> list[str]:
    return measure_names(_MEASURES)
