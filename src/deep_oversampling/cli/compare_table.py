"""The table of ``dos compare``, and the lines below it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table
from rich.text import Text

from .showing import cell

if TYPE_CHECKING:
    from ..rivals.summary import Cell, Row
    from ..rivals.trials import Trial

__all__ = ["print_table"]

CERTAIN = 0.05  # a difference with a smaller p is beyond noise
_NAMES = {"f1": "F1", "auprc": "AUPRC", "recall": "recall"}
_TOLD = "F1 as trained: of all classes, were they as frequent in the test as they are in training"
_SAME = 0.005  # a difference that needs no column
_ANY = 10_000  # columns: more than a table has


def print_table(
    rows: list[Row], trials: list[Trial], group: str, title: str, measure: str = "f1"
) -> None:
    """A row for every method; below it what the columns mean, and what went wrong."""
    from ..metrics import AS_TRAINED
    from ..rivals import METHODS
    from ..rivals.summary import REFERENCE, places

    seeds = len({trial.seed for trial in trials})
    columns = _columns(group, measure)
    as_trained = ("all", AS_TRAINED)
    if measure != "recall" and any(_differ(row.cells["all"], AS_TRAINED, "f1") for row in rows):
        columns.append(as_trained)
    compared = len(rows) > 1 and any(row.method == REFERENCE for row in rows)
    table = Table(
        title=cell(
            f"{title}: {'1 trial' if seeds == 1 else f'{seeds} trials, mean ± sd'}", "italic"
        ),
        box=SIMPLE,
        padding=(0, 1, 0, 0),
        show_edge=False,
    )
    table.add_column("method", no_wrap=True)
    for of_group, shown in columns:
        heading = f"{of_group}\n{_NAMES[shown]}" if shown in _NAMES else "F1 as\ntrained"
        table.add_column(heading, justify="right", no_wrap=True)
    for heading in ("− DOS", "p") if compared else ():
        table.add_column(heading, justify="right", no_wrap=True)
    # a mean over fewer trials is one over others: it cannot be the best
    whole = [row for row in rows if row.trials == seeds]
    best = {c: max((_known(row.cells[c[0]][c[1]]) for row in whole), default=0) for c in columns}
    for row in rows:
        cells = [_cell(row.cells[g][m], row in whole, best[g, m]) for g, m in columns]
        if as_trained in columns:
            cells[-1] = cells[-1].partition(" ±")[0]  # 80 columns have no room for more
        table.add_row(METHODS[row.method].title, *cells, *(_against(row) if compared else ()))
    console, unbounded = Console(), Console(width=_ANY)
    if unbounded.measure(table).maximum > console.width:
        table.padding = (0, 0, 0, 0)  # columns a space closer
    # as wide as it is: in a narrow terminal its lines go on below, and no number is cut
    Console(width=max(unbounded.measure(table).maximum, console.width)).print(table)
    notes = _legend(group, measure) if compared else []
    notes += [_TOLD] if as_trained in columns else []
    notes += [f"{row.method}: left out of {row.left_out}" for row in rows if row.left_out]
    notes += [f"{row.method}: lost in {row.lost}" for row in rows if row.lost]
    differing = [f"{what} {', '.join(values)}" for what, values in places(trials).items()]
    if differing:
        notes.append(f"trials were run in different places: {'; '.join(differing)}")
    if notes:
        print()
    for note in notes:
        lines = Text(note).wrap(console, max(1, console.width - 2))
        print("\n  ".join(line.plain.rstrip() for line in lines))


def _columns(group: str, measure: str) -> list[tuple[str, str]]:
    """Group and measure. The mean recall of all classes is the accuracy on a balanced test set."""
    if measure == "recall":
        return [(shown, "recall") for shown in ("all", "majority", "minority")]
    if group == "minority":
        return [("minority", "f1"), ("majority", "f1"), ("minority", "auprc")]
    return [("all", "f1"), ("all", "auprc")]


def _differ(cells: dict[str, Cell], one: str, other: str) -> bool:
    return abs(cells[one].mean - cells[other].mean) > _SAME


def _legend(group: str, measure: str) -> list[str]:
    from ..rivals.summary import TEST

    told = f"− DOS: difference of {group} {_NAMES[measure]}; * where p < {CERTAIN}"
    return [told, f"p: {TEST}"]


def _known(cell: Cell) -> float:
    return -math.inf if math.isnan(cell.mean) else cell.mean


def _cell(cell: Cell, whole: bool, best: float) -> str:
    if math.isnan(cell.mean):
        return "–"
    text = f"{cell.mean:.3f}" + ("" if math.isnan(cell.sd) else f" ± {cell.sd:.3f}")
    text = text.replace("0.", ".")
    return f"[bold]{text}" if whole and cell.mean == best else text


def _against(row: Row) -> tuple[str, str]:
    if math.isnan(row.difference):
        return "", ""
    p = "" if math.isnan(row.p) else f"{row.p:.3f}".replace("0.", ".")
    p = "<.001" if row.p < 0.001 else p
    return f"{row.difference:+.3f}".replace("0.", "."), p + ("*" if row.p < CERTAIN else " ")
