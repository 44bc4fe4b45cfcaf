"""The story of a run: what was trained, gathered as it was."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from deep_oversampling import __version__, algorithm
from deep_oversampling.data import fingerprint, load
from deep_oversampling.report.story import Story
from deep_oversampling.runs import Outcome, Settings, Task, prepare, train
from deep_oversampling.runs.record import make_record
from deep_oversampling.runs.telling import tell
from picture_files import folder_of

COUNTS = {"apple": 30, "pear": 20, "plum": 8}


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[Task, Outcome, Story]:
    place = tmp_path_factory.mktemp("told")
    folder = folder_of(place / "fruit", COUNTS, (12, 12, 3))
    settings = Settings(str(folder), rounds=3, k=5, device="cpu")
    task = prepare(settings, load(folder, cache=place / "c"))
    outcome = train(task)
    assert outcome is not None
    return task, outcome, tell(task, outcome, make_record(task, outcome, held_out=True))


def test_counts_and_plan(told: tuple[Task, Outcome, Story]) -> None:
    _, _, story = told
    assert story.classes == ("apple", "pear", "plum")
    assert story.minority == (2,)
    assert story.counts.tolist() == [24, 16, 6]
    assert story.presented.tolist() == [24, 16, 18]
    assert sorted(story.probabilities) == sorted(story.histories) == ["dos", "plain"]
    for p in story.probabilities.values():
        assert p.shape == (len(story.labels), 3)
        assert p.sum(1) == pytest.approx(1, abs=1e-5)


def test_moments_are_seen_by_one_projection(told: tuple[Task, Outcome, Story]) -> None:
    _, outcome, story = told
    titles = ["before DOS", "after round 1", "after round 2", "after round 3"]
    assert [moment.title for moment in story.moments] == titles
    assert all(m.points.shape == (len(story.moment_labels), 2) for m in story.moments)
    last, v = story.moments[-1].points, outcome.witness.moments(done=6)[-1][1].double()
    assert last.mean(0) == pytest.approx(0, abs=1e-4)
    kept = torch.linalg.svdvals(v - v.mean(0))[:2].numpy()  # the two widest directions
    assert np.linalg.svd(last, compute_uv=False) == pytest.approx(kept, rel=1e-3)


def test_nothing_was_mixed_in_a_last_round_without_neighbours(
    told: tuple[Task, Outcome, Story],
) -> None:
    task = replace(told[0], plan=told[0].plan.cautious(1.0))
    outcome = train(task)
    assert outcome is not None
    story = tell(task, outcome, make_record(task, outcome, held_out=True))
    assert story.over_sampled == ()
    assert story.presented.tolist() == [24, 16, 18]
    assert story.facts["k"] == "5, once classes are known"


def test_over_sampled_examples_are_rows_of_the_last_round(
    told: tuple[Task, Outcome, Story],
) -> None:
    task, _, story = told
    assert len(story.over_sampled) == 6
    for one in story.over_sampled:
        assert one.label == 2
        assert Path(one.name).parent.name == "plum"
        assert len(one.neighbours) == task.plan.k[2] == 5
        assert one.weight + sum(w for _, _, w in one.neighbours) == pytest.approx(1, abs=1e-5)
        assert one.image is not None
        assert one.image.shape == (12, 12, 3)
        assert len({one.name, *(name for _, name, _ in one.neighbours)}) == 6


def test_with_pieces_the_pictures_are_those_that_were_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = folder_of(tmp_path / "fruit", COUNTS, (12, 12, 3))
    settings = Settings(str(folder), rounds=2, pieces=True, augment=True, device="cpu")
    task = prepare(settings, load(folder, cache=tmp_path / "c"))
    tables, make = [], algorithm.with_pieces
    keep = lambda *given, **more: tables.append(make(*given, **more)) or tables[-1]  # noqa: E731
    monkeypatch.setattr(algorithm, "with_pieces", keep)
    outcome = train(task)
    assert outcome is not None
    last = tables[-1]
    shown = last[torch.arange(len(last))]
    story = tell(task, outcome, make_record(task, outcome, held_out=True))
    assert story.facts["pieces"].startswith("of a neighbour")
    assert {one.label for one in story.over_sampled} == {0, 1, 2}
    for one in story.over_sampled:
        (neighbour,) = one.neighbours
        assert one.weight + neighbour[2] == pytest.approx(1, abs=1e-5)
        assert Path(neighbour[1]).parent.name == Path(one.name).parent.name
        assert neighbour[1] != one.name
        assert one.image is not None
        x = torch.from_numpy(one.image).permute(2, 0, 1)
        assert bool((shown.x == x).flatten(1).all(1).any())
    with_a_piece = [one.weight < 1 - 1e-5 for one in story.over_sampled]  # up to rounding
    assert 0 < sum(with_a_piece) < len(with_a_piece)


def test_mistakes_are_the_most_certain_of_rare_classes(
    told: tuple[Task, Outcome, Story],
) -> None:
    task, _, story = told
    for method, found in story.mistakes.items():
        p, y = story.probabilities[method], story.labels
        wrong = (p.argmax(1) != y) & (y == 2)
        assert len(found) == min(24, wrong.sum())
        assert [one.probability for one in found] == sorted(p[wrong].max(1), reverse=True)
        assert all(one.label == 2 != one.predicted for one in found)
    assert task.splits.files


def test_facts_name_the_settings(told: tuple[Task, Outcome, Story]) -> None:
    task, _, story = told
    assert story.facts["model"] == "lenet"
    assert story.facts["status"] == "finished"
    assert "weights" not in story.facts
    assert (
        story.facts["rounds"]
        == "3 plain, then 3 of DOS; the baseline 6 plain ones, 3 of them shared"
    )
    assert f"deep-oversampling {__version__}, torch {torch.__version__}" in story.facts["versions"]
    said = f"train {fingerprint(task.train)}, validation {fingerprint(task.validation)}"
    assert story.facts["fingerprints"] == said


def test_without_a_baseline_none_is_spoken_of(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "fruit", COUNTS, (12, 12, 3))
    settings = Settings(str(folder), rounds=1, baseline=False, device="cpu")
    task = prepare(settings, load(folder, cache=tmp_path / "c"))
    outcome = train(task)
    assert outcome is not None
    story = tell(task, outcome, make_record(task, outcome, held_out=True))
    assert story.facts["rounds"] == "1 plain, then 1 of DOS"
