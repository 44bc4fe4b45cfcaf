"""The numbers that the paper prints, and what makes some of them doubtful.

They are shown beside ours, never aimed at. docs/readings.md says how the doubts were found.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from importlib.resources import files

from ..errors import InputError

__all__ = ["TABLES", "Printed", "datasets", "printed"]

TABLES = ("classwise", "summary", "baseline", "reduction", "over-k", "balanced", "runtime")


@dataclass(frozen=True)
class Printed:
    """One number of one table."""

    data: str
    imbalance: str  # a protocol; empty where the paper names none
    method: str  # a name in METHODS
    k: int | None
    classes: str  # minority, majority, all, or a digit: "4", "4*" where it was reduced
    measure: str  # one of MEASURES; in runtime: ratio, of DOS to the plain CNN
    printed: float
    text: str  # of the number, with its digits
    doubt: str  # reasons, "; " between them; empty if there is none


def printed(table: str) -> list[Printed]:
    """A table's numbers, in its order.

    >>> one = printed("reduction")[0]
    >>> one.data, one.imbalance, one.method, one.classes, one.measure, one.text
    ('mnist', 'drop:4:0.9', 'cnn', 'minority', 'precision', '0.98')
    """
    if table not in TABLES:
        raise InputError(
            f"a printed table must be one of {', '.join(TABLES)}, found {table!r}; "
            "the sets and their networks are read by datasets()"
        )
    return [
        Printed(
            data=row["data"],
            imbalance=row["imbalance"],
            method=row["method"],
            k=int(row["k"]) if row["k"] else None,
            classes=row["classes"],
            measure=row["measure"],
            printed=float(row["printed"]),
            text=row["printed"],
            doubt=row["doubt"],
        )
        for row in _rows(table)
    ]


def datasets() -> list[dict[str, str]]:
    """The sets, their networks (layers, without the softmax), batch sizes and training rounds."""
    return _rows("datasets")


def _rows(table: str) -> list[dict[str, str]]:
    path = files(__package__) / "printed" / f"{table}.csv"
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))
