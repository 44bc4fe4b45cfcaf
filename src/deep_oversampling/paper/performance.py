"""The tables over reduction rate, over k and on balanced data, and the comparison of baselines."""

from __future__ import annotations

from collections.abc import Sequence

from ..metrics import AS_TRAINED, MEASURES
from ..rivals.trials import Trial
from .cells import COMPARED, CellMaker, beyond_noise
from .experiments import LEVELS, REDUCED_SETS, TABLES, Experiment, K
from .markdown import measure_names, method_title, set_title, table
from .store import Stored

__all__ = ["balanced", "baseline", "over_k", "reduction"]

_GROUPS = ("minority", "majority")
_PERCENT = {"none": "0", "gaussian:0.2": "20", "gaussian:0.4": "40"}


def reduction(stored: Stored, cells: CellMaker) -> list[str]:
    """A part for every set: p, classes, method."""
    lines = []
    for data in REDUCED_SETS:
        of_set = [one for one in TABLES["reduction"].experiments if one.data == data]
        rows = []
        for experiment, p in zip(of_set, LEVELS, strict=True):
            for group in _GROUPS:
                for method in _dos_last(experiment.methods):
                    row = _measured(stored, cells, experiment, method, group, f"p = {p}")
                    rows.append([number_of(p), group, method_title(method), *row])
        heads = ["p", "classes", "method", *measure_names(MEASURES)]
        lines += [f"**{found_title(stored, of_set[0])}**", "", *table(heads, rows)]
    return lines + _as_trained(stored, cells)


def _as_trained(stored: Stored, cells: CellMaker) -> list[str]:
    """The methods again, on test images that are as imbalanced as training; where it is known."""
    experiments = TABLES["reduction"].experiments
    measured = [one for one in experiments if _knows(stored, one)]
    rows = []
    for method in _dos_last(experiments[0].methods):
        row = [
            _cell(stored, cells, one, method, "all", AS_TRAINED, "", _others(stored, one))
            for one in measured
        ]
        rows.append([method_title(method), *row])
    sets = [f"{set_title(one.data)} {number_of(one.imbalance.split(':')[-1])}" for one in measured]
    about = (
        "**If the test were as imbalanced as training**: mean F1 of all classes, each test image "
        "weighted by its class's share of the training set. The paper's test sets are balanced; "
        "most users' data is not."
    )
    return [about, "", *table(["method", *sets], rows)] if measured else []


def _knows(stored: Stored, experiment: Experiment) -> bool:
    return any(AS_TRAINED in trial.measures for trial in stored.trials.get(experiment.name, ()))


def over_k(stored: Stored, cells: CellMaker) -> list[str]:
    """A part for every set: classes, method and k, at p = .99."""
    lines = []
    for data in REDUCED_SETS:
        of_set = {one.k: one for one in TABLES["over-k"].experiments if one.data == data}
        rows = []
        for group in _GROUPS:
            for method in ("cnn", "cnn-cl", "ros"):
                row = _measured(stored, cells, of_set[5], method, group, "p = 0.99")
                rows.append([group, method_title(method), *row])
            for k in K:
                row = _measured(stored, cells, of_set[k], "dos", group, f"k = {k}", of_set[5])
                rows.append([group, method_title("dos", k), *row])
        heads = ["classes", "method", *measure_names(MEASURES)]
        lines += [f"**{found_title(stored, of_set[5])}**", "", *table(heads, rows)]
    return lines


def balanced(stored: Stored, cells: CellMaker) -> list[str]:
    """Over all classes: method and k, a pair of columns for every set."""
    experiments = TABLES["balanced"].experiments
    sets = list(dict.fromkeys(one.data for one in experiments))
    of = {(one.data, one.k): one for one in experiments}
    rows = []
    for method, k in [("cnn", 5), ("cnn-cl", 5), *(("dos", k) for k in K)]:
        row = [method_title(method, k if method == "dos" else None)]
        for data in sets:
            plain = stored.of(of[data, 5], "cnn")
            row += [
                _cell(stored, cells, of[data, k], method, "all", measure, f"k = {k}", [plain])
                for measure in COMPARED
            ]
        rows.append(row)
    titles = [found_title(stored, of[data, 5]) for data in sets]
    heads = [f"{title}: {name}" for title in titles for name in measure_names(COMPARED)]
    return table(["method", *heads], rows)


def baseline(stored: Stored, cells: CellMaker) -> list[str]:
    """Mean class-wise recall: reduction, method."""
    experiments = TABLES["baseline"].experiments
    methods = ("cnn", "ros", "tl-rs-csl", "lmle", "dos", "dos-lr", "dos-knn")
    rows = []
    for experiment in experiments:
        percent = _PERCENT[experiment.imbalance]
        others = _others(stored, experiment)
        row = [
            _cell(stored, cells, experiment, method, "all", "recall", f"{percent} %", others)
            for method in methods
        ]
        rows.append([f"{percent} %", *row])
    heads = ["reduction", *map(method_title, methods)]
    return [f"**{found_title(stored, experiments[0])}**", "", *table(heads, rows)]


def number_of(p: str) -> str:
    """.9, .95, .99"""
    return p.removeprefix("0")


def found_title(stored: Stored, experiment: Experiment) -> str:
    trials = stored.trials.get(experiment.name)
    return set_title(experiment.data, trials[0].setting.data if trials else None)


def _dos_last(methods: Sequence[str]) -> list[str]:
    return sorted(methods, key=lambda method: method == "dos")


def _others(stored: Stored, experiment: Experiment) -> list[list[Trial]]:
    """The plain CNN, and random over-sampling where it is another thing."""
    names = ["cnn"] if experiment.plan == "uniform" else ["cnn", "ros"]
    return [stored.of(experiment, name) for name in names]


def _measured(
    stored: Stored,
    cells: CellMaker,
    experiment: Experiment,
    method: str,
    group: str,
    setting: str,
    beside: Experiment | None = None,  # where the CNN and random over-sampling are
) -> list[str]:
    others = _others(stored, beside or experiment)
    return [
        _cell(stored, cells, experiment, method, group, measure, setting, others)
        for measure in MEASURES
    ]


def _cell(
    stored: Stored,
    cells: CellMaker,
    experiment: Experiment,
    method: str,
    group: str,
    measure: str,
    setting: str,
    others: list[list[Trial]],
) -> str:
    trials = stored.of(experiment, method)
    one = cells.find(experiment.data, experiment.imbalance, method, experiment.k, group, measure)
    where = f"{set_title(experiment.data)}, {setting}, {method_title(method).strip('*')}, {group}"
    tested = (*cells.measures, AS_TRAINED) if cells.measures else ()
    beyond = method == "dos" and measure in tested and beyond_noise(trials, others, measure, group)
    values = [trial.mean(measure, group) for trial in trials]
    return cells.cell(values, one, f"{where}: {measure}", beyond=beyond)
