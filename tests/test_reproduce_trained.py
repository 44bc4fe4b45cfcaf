"""``dos reproduce`` with nothing made up but the pictures."""

from pathlib import Path

import pytest

from deep_oversampling.paper import figures
from deep_oversampling.paper.experiments import TABLES
from deep_oversampling.rivals.trials import read_trials
from paper_sets import Shelf, shelf
from test_reproduce import page, run

__all__ = ["shelf"]  # a fixture


@pytest.mark.filterwarnings("ignore:class")  # few samples: fewer neighbours
@pytest.mark.parametrize("table", ["baseline", "classwise", "runtime"])
def test_tables_are_trained(
    shelf: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(figures, "draw_figures", lambda stored, out: None)
    run(table, "--quick", "--trials", "1", "--device", "cpu")
    for one in TABLES[table].experiments:
        found = read_trials(Path("runs/quick/trials", f"{one.name}.jsonl"))
        assert [trial.method for trial in found if trial.left_out] == []
        assert sorted(trial.method for trial in found) == sorted(one.methods)
        assert all(trial.mean("f1", "all") >= 0 for trial in found)  # numbers, not NaN
        copies = 20 * one.copies if one.copies > 1 else 200  # 20 of the 200 pictures, ten times
        assert one.imbalance != "none" or sum(found[0].samples) == copies
    assert (
        "not run yet"
        not in page("runs/quick").partition(TABLES[table].captions[-1])[2].split("\n## ")[0]
    )
