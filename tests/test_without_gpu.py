"""Without a GPU and without a word, large pictures become small ones for a small network."""

from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from deep_oversampling import cli
from deep_oversampling.data import load
from deep_oversampling.runs import Run, Settings, prepare, read_settings, without_gpu
from picture_files import folder_of

COUNTS = {"cat": 9, "dog": 5}


@pytest.fixture
def large(tmp_path: Path) -> Path:
    return folder_of(tmp_path / "large", COUNTS, (90, 120, 3))


def dos_train(place: Path, *arguments: str | Path) -> tuple[str, Run]:
    options = ["--rounds", "1", "--no-baseline", "--device", "cpu", "--cache", place / "cache"]
    given = [*map(str, ["train", *arguments, *options, "--out", place / "run"])]
    done = CliRunner().invoke(cli.app, given)
    assert done.exit_code == 0, done.output + repr(done.exception)
    return done.output, Run.open(place / "run")


def test_the_plan_says_what_was_chosen_and_how_to_ask_for_more(large: Path, tmp_path: Path) -> None:
    output, run = dos_train(tmp_path, large)
    assert "large: samples of 3 × 64 × 64, 2 classes" in output
    assert "LeNet on pictures of 64 × 64, to end in minutes without a GPU" in output
    assert "--model resnet18" in output
    assert (run.record.model, run.record.input_shape) == ("lenet", [3, 64, 64])


def test_its_settings_make_it_again_wherever_that_is(
    large: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dos_train(tmp_path, large)
    config = tmp_path / "run" / "config.toml"
    assert read_settings(config)["size"] == 64
    assert read_settings(config)["model"] == "lenet"
    again = Settings(**read_settings(config))
    monkeypatch.setattr(without_gpu, "pick_device", lambda device: torch.device("cuda"))
    assert without_gpu.largest_side(again) is None  # it is settled already
    task = prepare(again, load(large, size=again.size, cache=tmp_path / "cache"))
    assert task.train.x.shape[1:] == (3, 64, 64)
    assert task.settings == again


@pytest.mark.parametrize(
    ("asked", "model", "shape"),
    [
        ({"size": 70}, "resnet18", (3, 70, 70)),
        ({"model": "lenet"}, "lenet", (3, 90, 120)),
        ({"size": 32}, "lenet", (3, 32, 32)),
    ],
    ids=str,
)
def test_a_word_about_it_is_heeded(
    large: Path, tmp_path: Path, asked: dict, model: str, shape: tuple[int, ...]
) -> None:
    settings = Settings(str(large), device="cpu", **asked)
    most = without_gpu.largest_side(settings)
    task = prepare(settings, load(large, size=settings.size, most=most, cache=tmp_path / "cache"))
    assert (task.settings.model, task.train.x.shape[1:]) == (model, shape)
    assert without_gpu.NOTE not in task.notes


def test_small_pictures_stay_as_they_are(tmp_path: Path) -> None:
    output, run = dos_train(tmp_path, folder_of(tmp_path / "small", COUNTS, (20, 30, 3)))
    assert "without a GPU" not in output
    assert run.record.input_shape == [3, 20, 30]
    assert "size" not in read_settings(tmp_path / "run" / "config.toml")


@pytest.mark.parametrize(
    ("device", "options", "side"),
    [
        ("cpu", {}, 64),
        ("cuda", {}, None),
        ("mps", {}, None),
        ("cpu", {"model": "resnet18"}, None),
        ("cpu", {"size": 224}, None),
        ("cpu", {"weights": "resnet18.safetensors"}, None),
    ],
)
def test_the_rule(
    device: str, options: dict, side: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(without_gpu, "pick_device", lambda given: torch.device(device))
    assert without_gpu.largest_side(Settings("pictures", **options)) == side


def test_most_is_for_what_is_larger(large: Path, tmp_path: Path) -> None:
    shapes = {most: load(large, most=most, cache=tmp_path).train.x.shape[2:] for most in (64, 200)}
    assert shapes == {64: (64, 64), 200: (90, 120)}
    assert load(large, size=100, most=64, cache=tmp_path).train.x.shape[2:] == (100, 100)
