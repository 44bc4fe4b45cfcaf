"""What a reader wants to know first."""

from __future__ import annotations

from collections.abc import Sequence

from ..rivals.summary import cell
from .cells import CellMaker, beyond_noise, number
from .experiments import LEVELS, TABLES, Experiment
from .markdown import table
from .performance import found_title, number_of
from .printed import Printed
from .store import Stored

__all__ = ["headline"]

_GROUPS = ("minority", "majority")


def headline(stored: Stored, makers: Sequence[tuple[str, CellMaker]]) -> list[str]:
    """F1 of the rare and the frequent classes, and how much of the paper is reached."""
    experiments = TABLES["reduction"].experiments
    cells = CellMaker("reduction")
    rows, above, tests = [], 0, 0
    for experiment in experiments:
        p = next(p for p in LEVELS if experiment.imbalance.endswith(f":{p}"))
        row = [_pair(stored, experiment, method) for method in ("cnn", "ros", "dos")]
        row += [_printed(cells, experiment, method) for method in ("cnn", "dos")]
        rows.append([found_title(stored, experiment), number_of(p), *row])
        dos, cnn, ros = (stored.of(experiment, method) for method in ("dos", "cnn", "ros"))
        if dos and cnn and ros:
            tests += len(_GROUPS)
            above += sum(beyond_noise(dos, [cnn, ros], "f1", group) for group in _GROUPS)
    heads = ["set", "p", "CNN", "random over-sampling", "**DOS**", "paper: CNN", "paper: DOS"]
    lines = ["## In short", "", "Minority / majority F1 over the reduction rate p:", ""]
    lines += table(heads, rows)
    lower = sum(len(maker.lower) for _, maker in makers)
    total = lower + sum(maker.reached for _, maker in makers)
    if total:
        doubted = sum(maker.lower_than_doubted for _, maker in makers)
        of_them = f"; of the other {lower}, {doubted} are in doubt" if lower else ""
        text = f"{total - lower} of {total} printed numbers are reached or exceeded{of_them}"
        lines.append(f"- {text} (F1 and AUPRC; recall in the comparison of baselines).")
    if tests and not stored.quick:
        lines.append(
            f"- DOS is above CNN and random over-sampling beyond noise in {above} of {tests} of "
            "these F1."
        )
    return [*lines, ""]


def _pair(stored: Stored, experiment: Experiment, method: str) -> str:
    trials = stored.of(experiment, method)
    means = [cell([t.mean("f1", group) for t in trials]).mean for group in _GROUPS]
    return " / ".join(map(number, means)) if trials else "–"


def _printed(cells: CellMaker, experiment: Experiment, method: str) -> str:
    found = [
        cells.find(experiment.data, experiment.imbalance, method, experiment.k, group, "f1")
        for group in _GROUPS
    ]
    return " / ".join(_text(cells, one) for one in found)


def _text(cells: CellMaker, one: Printed | None) -> str:
    return cells.printed_text(one, "") if one else "–"
