"""What the pages say of the modern network is what was measured: no figure without its trials."""

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import pytest

from deep_oversampling.rivals.summary import compared
from modern_table import Found, by_setting, grouped, percent
from test_documentation import DOCS, PAGES, ROOT

MEAN = r"\d\d\.\d\d ± \d\.\d\d"
COLUMNS = {"large classes": "many", "rare classes": "few", "F1 as trained": "f1_as_trained"}


class Row(NamedTuple):
    """Of a table: the trainings of a form, and all others of its setting."""

    form: str
    found: Found

    def mean(self, name: str) -> float:
        return 100 * fmean(trial.get(name, 0.0) for trial in self.found[self.form].values())

    def gain(self) -> tuple[float, float]:
        """Over its partner, in points, and p."""
        name, plus, _ = self.form.partition("+")
        own, partner = self.found[self.form], self.found[name if plus else "ce"]
        pairs = [(own[s]["accuracy"], partner[s]["accuracy"]) for s in own if s in partner]
        difference, p = compared(pairs)
        return 100 * difference, p


Measured = dict[str, list[Row]]


@pytest.fixture(scope="module")
def measured() -> Measured:
    """Accuracy of stored trials, as it is written -> whose it is."""
    paths = sorted((ROOT / "results" / "modern").glob("*.jsonl"))
    of_search = [path for path in paths if '"form"' in path.read_text()]
    rows = defaultdict(list)
    for lines in by_setting(of_search).values():
        found = grouped(lines)
        for form, own in found.items():
            mean = percent([trial["accuracy"] for trial in own.values()])
            rows[mean].append(Row(form, found))
    return rows


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_means_are_those_of_stored_trials(page: Path, measured: Measured) -> None:
    unknown = {one for one in re.findall(rf"\b{MEAN}\b", page.read_text()) if one not in measured}
    assert not unknown


def table_rows() -> Iterator[dict[str, str]]:
    """Of all tables of accuracy: the heads of columns -> what a row has there."""
    text = (DOCS / "modern.md").read_text().translate(str.maketrans("−", "-", "*"))
    for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        lines = [line.strip("|").split("|") for line in table.splitlines()]
        heads, _, *rows = ([cell.strip() for cell in line] for line in lines)
        if {"accuracy", *COLUMNS} <= set(heads):
            yield from (dict(zip(heads, row, strict=True)) for row in rows)


def near(written: str) -> Any:
    """What may be rounded to it."""
    digits = len(written.partition(".")[2])
    return pytest.approx(float(written), abs=0.501 * 10**-digits)


def test_rows_of_tables_are_those_of_stored_trials(measured: Measured) -> None:
    rows = [row for row in table_rows() if row["accuracy"] != "–"]
    assert len(rows) > 50
    for row in rows:
        written = [near(row[head]) for head in COLUMNS]
        found = [[one.mean(name) for name in COLUMNS.values()] for one in measured[row["accuracy"]]]
        assert written in found, row


def test_gains_over_partners_are_those_of_stored_trials(measured: Measured) -> None:
    rows = [row for row in table_rows() if row.get("- its partner")]
    assert len(rows) > 25
    for row in rows:
        gain, p = re.fullmatch(r"([+-]\d+\.\d\d) \(p (.*)\)", row["- its partner"]).groups()
        for difference, found in (one.gain() for one in measured[row["accuracy"]]):
            assert difference == near(gain)
            assert found < 0.001 if p == "< .001" else found == near(p.removeprefix("= ")), row
