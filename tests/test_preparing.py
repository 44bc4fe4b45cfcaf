"""What is decided where an option of a run is not given."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from deep_oversampling import InputError, Samples, cli
from deep_oversampling.data import Splits, load
from deep_oversampling.runs import Settings, prepare, preparing
from picture_files import folder_of
from toy import blobs


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOS_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


def test_photographs_are_augmented_and_drawings_are_not(tmp_path: Path) -> None:
    folder_of(tmp_path / "photos", {"a": 4, "b": 4}, (40, 32, 3))
    folder_of(tmp_path / "scans", {"a": 4, "b": 4}, (40, 32))
    for name, augmented in (("photos", True), ("scans", False)):
        task = prepare(Settings(name), load(name))
        assert (task.augment is not None) is augmented
    assert prepare(Settings("photos", augment=False), load("photos")).augment is None


def test_augmented_pictures_are_over_sampled_without_neighbours(tmp_path: Path) -> None:
    folder_of(tmp_path / "photos", {"a": 20, "b": 5}, (40, 32, 3))
    task = prepare(Settings("photos"), load("photos"))
    assert (task.plan.k.tolist(), task.plan.r.tolist(), task.settings.k) == ([0, 0], [1, 4], 0)
    assert any("over-sampled without neighbours" in note for note in task.notes)
    assert task.settings.baseline
    for settings in (Settings("photos", k=3), Settings("photos", augment=False)):
        task = prepare(settings, load("photos"))
        assert task.plan.k.tolist() == [0, 3]  # all that the fourth of b has
        assert not [note for note in task.notes if "without neighbours" in note]


def test_where_nothing_is_over_sampled_nothing_is_trained_twice(tmp_path: Path) -> None:
    folder_of(tmp_path / "photos", {"a": 6, "b": 5}, (40, 32, 3))
    task = prepare(Settings("photos"), load("photos"))
    told = "no class is rare: nothing is over-sampled, and this is plain training"
    assert task.notes[-1] == told
    assert not task.settings.baseline
    result = CliRunner().invoke(cli.app, ["train", "photos", "--rounds", "2", "--out", "run"])
    assert result.exit_code == 0, result.output
    shown = " ".join(result.output.split())
    assert told in shown
    assert "all get r = 1 and no neighbours" in shown
    assert not Path("run/baseline.safetensors").exists()


def test_pieces_from_the_command_line(tmp_path: Path) -> None:
    folder_of(tmp_path / "photos", {"a": 20, "b": 7}, (40, 32, 3))
    call = CliRunner().invoke
    result = call(cli.app, ["train", "photos", "--pieces", "--rounds", "2", "--out", "run"])
    assert result.exit_code == 0, result.output
    shown = " ".join(result.output.split())
    assert "every other time with a piece of one of its k neighbours" in shown
    assert "lenet is mostly better without" in shown
    assert "b 6 1 5 1.63 10" in shown  # to train, to validate, k, r, rows
    record = json.loads(Path("run/run.json").read_text())
    assert record["r"] == [1.0, pytest.approx((16 / 6) ** 0.5)]
    assert "a margin, τ = 0.5" in shown
    assert "pieces = true" in Path("run/config.toml").read_text()
    planned = "k = 5, r = 1 to 1.63, pieces of neighbours, a margin of τ = 0.5"
    assert planned in " ".join(call(cli.app, ["info", "run"]).output.split())
    assert call(cli.app, ["evaluate", "run", "photos"]).exit_code == 0
    again = call(cli.app, ["train", "--config", "run/config.toml", "--out", "again"])
    assert again.exit_code == 0, again.output
    assert (
        Path("again/model.safetensors").read_bytes() == Path("run/model.safetensors").read_bytes()
    )


def test_a_large_margin_is_warned_of_where_training_is_short(tmp_path: Path) -> None:
    folder_of(tmp_path / "photos", {"a": 20, "b": 7}, (40, 32, 3))
    few = {"rounds": 31, "pieces": True}
    for change, warned in (
        ({"tau": 1.0}, True),
        ({"tau": 1.0, "rounds": 32}, False),
        ({"tau": 1.0, "pieces": False}, False),
        ({}, False),
    ):
        task = prepare(Settings("photos", **few | change), load("photos"))
        assert any("do harm in short trainings" in note for note in task.notes) is warned


def test_a_long_training_of_a_residual_network_is_told_of_pieces(tmp_path: Path) -> None:
    folder_of(tmp_path / "photos", {"a": 20, "b": 7}, (40, 32, 3))
    folder_of(tmp_path / "even", {"a": 20, "b": 20}, (40, 32, 3))
    long = {"rounds": 32, "model": "resnet32"}
    for data, change, told in (
        ("photos", {}, True),
        ("even", {}, False),  # no class is rare
        ("photos", {"rounds": 31}, False),
        ("photos", {"model": "lenet"}, False),
        ("photos", {"augment": False}, False),
        ("photos", {"pieces": True}, False),
        ("photos", {"pieces": False}, False),  # --no-pieces
    ):
        task = prepare(Settings(data, **long | change), load(data))
        assert any("may gain by pieces" in note for note in task.notes) is told, change


def test_a_falling_rate_and_weight_decay_from_the_command_line(tmp_path: Path) -> None:
    folder_of(tmp_path / "scans", {"a": 20, "b": 7}, (8, 8))
    call, usual = CliRunner().invoke, ["train", "scans", "--rounds", "2", "--no-baseline"]
    changes = {"rate": ["--schedule", "cosine"], "decay": ["--weight-decay", "0.1"], "none": []}
    weights = set()
    for name, change in changes.items():
        result = call(cli.app, [*usual, *change, "--out", name])
        assert result.exit_code == 0, result.output
        weights.add(Path(name, "model.safetensors").read_bytes())
    assert len(weights) == 3
    both = [*usual, "--schedule", "cosine", "--weight-decay", "5e-4", "--out", "both"]
    told = "learning rate 0.01, falling to 0 along a cosine, weight decay 0.0005"
    assert told in " ".join(call(cli.app, both).output.split())
    assert told in Path("both/report.html").read_text()
    config = Path("both/config.toml").read_text()
    assert 'schedule = "cosine"' in config
    assert "weight_decay = 0.0005" in config


def test_a_margin_from_the_command_line(tmp_path: Path) -> None:
    folder_of(tmp_path / "photos", {"a": 20, "b": 7}, (40, 32, 3))
    command = ["train", "photos", "--rounds", "1", "--out", "run"]
    result = CliRunner().invoke(cli.app, [*command, "--tau", "1.5"])
    assert result.exit_code == 0, result.output
    assert "rare classes have a margin, τ = 1.5" in " ".join(result.output.split())
    assert "tau = 1.5" in Path("run/config.toml").read_text()
    for tau in ("-1", "nan"):
        wrong = CliRunner().invoke(cli.app, [*command, "--overwrite", "--tau", tau])
        assert wrong.exit_code == 2
        assert "tau must be" in " ".join(wrong.output.replace("│", " ").split())
    assert "tau = 1.5" in Path("run/config.toml").read_text()


def test_what_a_file_asks_for_can_be_left_out(tmp_path: Path) -> None:
    folder_of(tmp_path / "photos", {"a": 20, "b": 15}, (40, 32, 3))
    command = ["train", "photos", "--pieces", "--rounds", "1", "--no-baseline", "--out", "run"]
    shown = " ".join(CliRunner().invoke(cli.app, command).output.split())
    assert "classes are levelled in part" in shown
    assert "1 plain round, then 1 of DOS" in shown
    again = ["train", "--config", "run/config.toml", "--no-pieces", "--out", "other"]
    again += ["--k", "0", "--tau", "0"]
    shown = " ".join(CliRunner().invoke(cli.app, again).output.split())
    assert "no class is rare: nothing is over-sampled, and this is plain training" in shown


def test_what_training_would_refuse_is_told_before_candidates_are_trained(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(preparing, "select", lambda *_, **__: pytest.fail("candidates"))
    samples = blobs((30, 30, 8))
    common = Samples(samples.x[:9], [0, 1, 0] * 3, samples.classes)
    other = Samples(samples.x[:9, :2], [0, 1, 2] * 3)
    misfits = {
        "early stopping must have validation samples of the minority": common,
        "must take validation samples of shape": other,
    }
    for message, validation in misfits.items():
        with pytest.raises(InputError, match=message):
            prepare(Settings("x", k="auto", patience=1), Splits("x", samples, validation))


def test_a_size_is_for_pictures() -> None:
    for size in (8, None):
        assert prepare(Settings("digits", size=size), load("digits")).train.x.shape[2:] == (8, 8)
    with pytest.raises(InputError, match=r"size must be left out .* found 12"):
        prepare(Settings("digits", size=12), load("digits"))


def test_pieces_need_pictures_and_neighbours(tmp_path: Path) -> None:
    np.savez("vectors.npz", x=np.eye(20, 4, dtype=np.float32), y=np.arange(20) % 2)
    folder_of(tmp_path / "photos", {"a": 20, "b": 7}, (40, 32, 3))
    for option in ("pieces", "augment"):
        result = CliRunner().invoke(cli.app, ["train", "vectors.npz", f"--{option}", "--out", "r"])
        assert isinstance(result.exception, InputError)  # which `main` tells in a line
        assert f"{option} must be of pictures" in str(result.exception)
        assert f"leave --{option} out" in str(result.exception)
        assert not Path("r").exists()
    wrong = CliRunner().invoke(cli.app, ["train", "photos", "--pieces", "--k", "0"])
    assert wrong.exit_code == 2
    assert "k must be 1 or more with pieces" in " ".join(wrong.output.replace("│", " ").split())
