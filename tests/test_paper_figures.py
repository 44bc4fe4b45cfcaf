"""Figures: what is seen in a training, and drawings that are the same bytes every time."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from sklearn.metrics import precision_recall_curve

from deep_oversampling.data import Splits
from deep_oversampling.paper import figures
from deep_oversampling.paper.experiments import LOOKED_AT
from deep_oversampling.paper.figures import FIGURES, draw_figures
from deep_oversampling.paper.looks import _curve, look
from deep_oversampling.paper.store import Stored, figures_folder, read_stored
from deep_oversampling.rivals import METHODS
from deep_oversampling.rivals.compare import run_trials
from paper_sets import SHAPES, Shelf, Trainings, pictures, shelf, trainings
from some_trials import SETTING
from test_reproduce import page, run

__all__ = ["shelf", "trainings"]  # fixtures

SMALL = replace(SETTING, imbalance="drop:4:0.5", model="C2-F6", rounds=2, batch_size=20, k=2)
SPLITS = Splits("small", pictures(SHAPES["mnist"], 12, 0), test=pictures(SHAPES["mnist"], 5, 1))


def test_a_look_has_a_value_for_every_round_and_all_points() -> None:
    found = look(SPLITS, SMALL, torch.device("cpu"))
    assert json.loads(json.dumps(found)) == found
    assert len(found["minority"]) == 4
    assert found["labels"] == SPLITS.test.y.tolist()
    assert tuple(found["methods"]) == LOOKED_AT
    for seen in found["methods"].values():
        assert len(seen["within"]) == 2 * SMALL.rounds
        assert len(seen["before"]) == len(seen["after"]) == 50
        assert seen["before"] != seen["after"]
        assert len(seen["curve"]) <= 100
    # until over-sampling begins all are trained alike
    first = [seen["within"][: SMALL.rounds] for seen in found["methods"].values()]
    assert first[0] == first[1] == first[2]
    assert len({str(seen["after"]) for seen in found["methods"].values()}) == 3


def test_looking_changes_nothing() -> None:
    """The curve is that of the trial with this seed."""
    (trial,) = run_trials(SPLITS, SMALL, [METHODS["dos"]], [0], device="cpu")
    seen = look(SPLITS, SMALL, torch.device("cpu"))["methods"]["dos"]
    area = sum(precision for _, precision in seen["curve"]) / len(seen["curve"])
    assert area == pytest.approx(trial.mean("auprc", "minority"), abs=0.1)


def test_curves_are_those_of_scikit_learn() -> None:
    generator = torch.Generator().manual_seed(0)
    p, y = torch.rand(60, 1, generator=generator), torch.randint(2, (60,), generator=generator)
    precision, recall, _ = precision_recall_curve(y == 1, p[:, 0])
    precision, recall = precision[:-1], recall[:-1]  # the last is made up: recall 0
    for r, value in _curve(p, y, [1]):
        assert value == pytest.approx(max(precision[recall >= r - 1e-3]), abs=1e-3)


def test_large_test_sets_are_thinned() -> None:
    many = Splits("many", SPLITS.train, test=pictures((1, 28, 28), 150, 1))
    setting = replace(SMALL, rounds=1, model="C1-F2")
    assert len(look(many, setting, torch.device("cpu"))["labels"]) == 500


# drawing


@pytest.fixture
def drawing(trainings: Trainings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Really."""
    monkeypatch.setattr(figures, "draw_figures", draw_figures)


def drawn(folder: str = "results") -> dict[str, bytes]:
    return {path.stem: path.read_bytes() for path in Path(folder, "figures").glob("*.svg")}


def test_figures_are_the_same_bytes_and_on_the_page(drawing: None) -> None:
    pytest.importorskip("matplotlib")
    run("reduction", "figures", "--trials", "2")
    first = drawn()
    assert set(first) == set(FIGURES)
    assert all(f"(./figures/{name}.svg)" in page() for name in FIGURES)
    assert "- [Figures](#figures)" in page()
    run("--render")
    assert drawn() == first
    assert not any(b"dc:date" in content for content in first.values())


def test_a_look_is_taken_once(trainings: Trainings) -> None:
    run("figures")
    run("figures")
    assert trainings.looks == ["MNIST drop:4:0.99", "MNIST-BACK-ROTATION drop:4:0.9"]
    assert trainings.done == []


def test_a_look_at_other_data_is_taken_again(trainings: Trainings, shelf: Shelf) -> None:
    run("figures")
    shelf.of_each = 30
    run("figures")
    assert len(trainings.looks) == 4


def test_without_matplotlib_there_is_a_page_and_one_note(
    drawing: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    said = run("figures", "runtime", "--trials", "1")
    assert said.count("figures need matplotlib, found that it cannot be imported (") == 1
    assert "## Figures" not in page()


def test_nothing_stored_is_nothing_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    draw_figures(Stored({}, {}, {}), tmp_path)
    assert not figures_folder(tmp_path).exists()
    assert read_stored(tmp_path).looks == {}
