"""A cell of the page: our mean and deviation, the printed number, and the marks of both."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from ..rivals.summary import cell, compared
from ..rivals.trials import Trial
from .printed import Printed, printed

__all__ = [
    "BEYOND",
    "COMPARED",
    "DOUBT",
    "LOWER",
    "CellMaker",
    "beyond_noise",
    "number",
    "rounding",
]

LOWER, DOUBT, BEYOND = "▼", "?", "★"
COMPARED = ("f1", "auprc")  # precision and recall are exchanged in some printed rows
_CERTAIN = 0.05  # a difference with a smaller p is beyond noise


def number(value: float, digits: int = 3) -> str:
    """As the pages write shares.

    >>> number(0.87249), number(1.0), number(math.nan)
    ('.872', '1.000', '–')
    """
    if math.isnan(value):
        return "–"
    text = f"{value:.{digits}f}"
    return text.removeprefix("0") if abs(value) < 1 else text


def rounding(one: Printed) -> float:
    """Half a unit of its last digit.

    >>> rounding(Printed("", "", "", None, "all", "f1", 0.95, "0.95", ""))
    0.005
    """
    digits = len(one.text.partition(".")[2])
    return round(0.5 * 10.0**-digits, 9)


def beyond_noise(dos: Sequence[Trial], others: Sequence[Sequence[Trial]], m: str, g: str) -> bool:
    """Whether DOS is above each of the others by the paired t-test over the trials."""
    return bool(others) and all(_above(dos, other, m, g) for other in others)


def _above(dos: Sequence[Trial], other: Sequence[Trial], measure: str, group: str) -> bool:
    of = {trial.seed: trial.mean(measure, group) for trial in other}
    pairs = [(t.mean(measure, group), of[t.seed]) for t in dos if t.seed in of]
    pairs = [pair for pair in pairs if not math.isnan(sum(pair))]
    difference, p = compared(pairs)
    return difference > 0 and p < _CERTAIN


@dataclass(eq=False)
class CellMaker:
    """Makes the cells of one table, and counts what it marked."""

    table: str  # of the printed numbers; none: there are none to look up
    measures: tuple[str, ...] = COMPARED  # those in which ours may be called lower
    lower: list[str] = field(default_factory=list)  # where ours is
    doubts: dict[str, list[str]] = field(default_factory=dict)  # reason -> where
    lower_than_doubted: int = 0  # of them
    reached: int = 0  # printed numbers that ours is not lower than

    def __post_init__(self) -> None:
        self._printed: dict[tuple[str, ...], list[Printed]] = {}
        for one in printed(self.table) if self.table else ():
            key = (one.data, one.imbalance, one.method, one.classes, one.measure)
            self._printed.setdefault(key, []).append(one)

    def find(
        self, data: str, imbalance: str, method: str, k: int, classes: str, measure: str
    ) -> Printed | None:
        """The printed number; one without k stands for the k there is."""
        found = self._printed.get((data, imbalance, method, classes, measure), [])
        return next((one for one in found if one.k in (None, k)), None)

    def cell(
        self, values: Sequence[float], one: Printed | None, where: str, *, beyond: bool = False
    ) -> str:
        """``.951 ± .011 ★ (.95)``, or what there is of it."""
        ours = cell(list(values))
        text = number(ours.mean)
        if not math.isnan(ours.sd):
            text += f" ± {number(ours.sd)}"
        if beyond:
            text += f" {BEYOND}"
        if one is None:
            return text
        if one.measure in self.measures and not math.isnan(ours.mean):
            if ours.mean < float(one.text) - rounding(one):
                self.lower.append(where)
                self.lower_than_doubted += bool(one.doubt)
                text += f" {LOWER}"
            else:
                self.reached += 1
        return f"{text} ({self.printed_text(one, where)})"

    def printed_text(self, one: Printed, where: str) -> str:
        """As it is printed, without the zero before the point."""
        for reason in filter(None, one.doubt.split("; ")):
            self.doubts.setdefault(reason, []).append(where)
        return one.text.removeprefix("0") + (f" {DOUBT}" if one.doubt else "")
