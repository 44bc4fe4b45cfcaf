"""Checkpoints and models with a right checksum that do not fit: a line, and never a traceback."""

import copy
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load, load_file, save, save_file
from torch import Tensor, nn
from torch.optim import SGD, Adafactor, Adam, NAdam
from typer.testing import CliRunner

from deep_oversampling import (
    EarlyStopping,
    InputError,
    Stopped,
    cli,
    fit,
    load_weights,
    save_weights,
)
from deep_oversampling.durable import read_checked, write_checked
from deep_oversampling.optimizer_state import keep_state, put_state, state_misfit
from deep_oversampling.runs import Run
from picture_files import folder_of
from test_resuming import StopsAt
from toy import blobs, small, weights

Tensors, About = dict[str, Tensor], dict[str, Any]
Change = Callable[[Tensors, About], object]

OPTIONS: dict[str, Any] = {
    **{"rounds": 2, "batch_size": 5, "device": "cpu", "seed": 3},
    **{"optimizer": partial(Adam, lr=1e-2), "stop": EarlyStopping(patience=3)},
    "validation": blobs(seed=2),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Stopped within the last round; the checkpoint before it is of the round before."""
    folder = tmp_path_factory.mktemp("checkpoints")
    with pytest.raises(Stopped):
        fit(small(), blobs(), checkpoint=StopsAt(folder, 8), **OPTIONS)
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "checkpoints"))


def craft(path: Path, change: Change) -> None:
    """Changed inside, with the checksum that is then right."""
    content = read_checked(path)
    assert content is not None
    size = int.from_bytes(content[:8], "little")
    about = json.loads(json.loads(content[8 : 8 + size])["__metadata__"]["about"])
    tensors = load(content)
    change(tensors, about)
    write_checked(path, save(tensors, {"about": json.dumps(about)}))


def put(name: str, value: Tensor) -> Change:
    return lambda tensors, _: tensors.update({name: value})


def say(**values: Any) -> Change:
    return lambda _, about: about.update(values)


W, B = "embedder.1.weight", "embedder.1.bias"  # (8, 4) and (8,)
CRAFTED: dict[str, tuple[Change, str]] = {
    "weight left out": (lambda t, _: t.pop(f"weights.{W}"), f"no weights '{W}'"),
    "weight too many": (put("weights.x", torch.zeros(2)), "unknown weights 'x'"),
    "shape": (put(f"weights.{B}", torch.zeros(9)), r"shape \(9,\) and torch.float32 instead of"),
    "type": (put(f"start.{B}", torch.zeros(8).half()), r"torch.float16 instead of \(8,\)"),
    "nan at the start": (put(f"start.{B}", torch.full((8,), torch.nan)), "NaN or infinity in the"),
    "nan in the best": (put(f"best.{B}", torch.full((8,), torch.inf)), "NaN or infinity in the"),
    "no start": (
        lambda t, _: [t.pop(name) for name in list(t) if name.startswith("start.")],
        "a round that was begun without the weights it began with",
    ),
    "no best": (
        lambda t, _: [t.pop(name) for name in list(t) if name.startswith("best.")],
        "a best round without its weights",
    ),
    "moment left out": (lambda t, _: t.pop("optimizer.0.exp_avg"), "no '0.exp_avg' of the opt"),
    "moment's shape": (put("optimizer.0.exp_avg", torch.zeros(3)), r"float32 of shape \(3,\) as"),
    "parameter 99": (put("optimizer.99.exp_avg", torch.zeros(3)), "'99.exp_avg' where the optim"),
    "parameter -1": (put("optimizer.-1.exp_avg", torch.zeros(3)), "'-1.exp_avg' where the optim"),
    "steps below 0": (put("optimizer.0.step", torch.tensor(-3.0)), "-3 as '0.step' of the optim"),
    "number for a tensor": (say(numbers={"0.exp_avg": 2.0}), "a number as '0.exp_avg' of the"),
    "other tensors": (put("extra.a", torch.zeros(3)), "unknown tensors 'extra'"),
    "rounds below 0": (say(rounds=-1), "-1 rounds of 4"),
    "rounds too many": (say(rounds=2**40), "1099511627776 rounds of 4"),
    "step too far": (say(step=10**6), "step 1000000 of a round of"),
    "step below 0": (say(step=-1), "step -1 of a round of"),
    "losses": (put("halfway.losses", torch.zeros(1, 2)), "losses of shape"),
    "random": (put("random.cpu", torch.zeros(5, dtype=torch.uint8)), "states of the random"),
    "best round": (lambda _, a: a["history"].update(kept=77), "77 as the best of 3 rounds"),
    "seconds": (lambda _, a: a["history"]["rounds"][0].update(seconds="x"), "of another type"),
    "history": (lambda _, a: a["history"]["rounds"].pop(), "a history of 2 rounds after 3"),
    "spreads": (lambda _, a: a["history"]["spreads"].clear(), "0 spreads of 1 rounds of DOS"),
    "not judged": (
        lambda _, a: a["history"]["rounds"][2].update(validation=None),
        "no f1 of the minority after round 3",
    ),
    "mishap": (
        lambda _, a: a["history"].update(
            mishaps=[{"round": 1, "found": "", "done": "", "rate": -5.0}]
        ),
        "a mishap of round 1 with -5 of the learning rate",
    ),
}


@pytest.mark.parametrize("case", CRAFTED)
def test_what_does_not_fit_is_refused_in_a_line(
    case: str, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    change, found = CRAFTED[case]
    before, last = sorted(folder.glob("*.checkpoint"))
    before.unlink()
    craft(last, change)
    with pytest.raises(InputError, match=rf"must be a checkpoint of .* found:? .*{found}") as error:
        fit(small(), blobs(), checkpoint=folder, **OPTIONS)
    assert not caplog.records
    assert "\n" not in str(error.value)
    assert str(error.value).endswith("get an undamaged copy, or delete it to begin anew")


@pytest.mark.parametrize("case", ["weight left out", "step too far", "other tensors"])
def test_the_one_before_is_taken_where_it_fits(
    case: str, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    fit(whole := small(), blobs(), **OPTIONS)
    craft(max(folder.glob("*.checkpoint")), CRAFTED[case][0])
    fit(other := small(), blobs(), checkpoint=folder, **OPTIONS)
    assert torch.equal(weights(other), weights(whole))
    (line,) = [record.message for record in caplog.records]
    assert line.endswith("delete it to begin anew; it is passed over")


def test_nan_within_a_round_is_no_reason_to_refuse(folder: Path) -> None:
    """A loss may be lost long before the round is over and anybody looks."""
    for name in (f"weights.{B}", "optimizer.1.exp_avg"):
        craft(max(folder.glob("*.checkpoint")), put(name, torch.full((8,), torch.nan)))
    history = fit(small(), blobs(), checkpoint=folder, **OPTIONS)
    assert "the loss must stay finite" in history.mishaps[0].found


@pytest.mark.parametrize("make", [Adam, NAdam, partial(SGD, lr=0.1, momentum=0.9), Adafactor])
def test_the_state_of_any_optimiser_is_kept_and_fits(make: Callable[..., Any]) -> None:
    def stepped(optimizer: Any, network: nn.Module, times: int) -> None:
        for _ in range(times):
            optimizer.zero_grad()
            network(blobs().x).square().sum().backward()
            optimizer.step()

    network = small()
    stepped(first := make(network.parameters()), network, 3)
    kept, other = keep_state(first), copy.deepcopy(network)
    assert kept[0]
    assert not state_misfit(make, other, *kept)
    put_state(second := make(other.parameters()), *kept)
    stepped(first, network, 2)
    stepped(second, other, 2)
    assert torch.equal(weights(other), weights(network))


def test_an_optimiser_with_parameters_of_its_own_is_not_tried_out() -> None:
    network = small()
    before = weights(network)
    make = lambda _: SGD(network.parameters(), lr=0.1, weight_decay=0.5)  # noqa: E731
    assert state_misfit(make, nn.Linear(1, 1), {}, {}) == ""
    assert torch.equal(weights(network), before)


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (torch.full((8,), torch.nan), "NaN in"),
        (torch.full((8,), torch.inf), "infinity in"),
        (torch.zeros(8, dtype=torch.int64), "torch.int64 where the network has torch.float32 in"),
        (torch.zeros(9), "of another shape"),
    ],
)
def test_weights_in_a_file_must_fit(value: Tensor, found: str, tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    save_weights(small(), path)
    save_file({**load_file(path), B: value}, path)
    with pytest.raises(InputError, match=found):
        load_weights(small(), path)


def test_weights_of_half_precision_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    save_weights(small(), path)
    halved = {n: t.half() if t.is_floating_point() else t for n, t in load_file(path).items()}
    save_file(halved, path)
    load_weights(other := small(seed=4), path)
    assert torch.allclose(weights(other), weights(small()), atol=1e-3)


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With a run of them."""
    place = tmp_path_factory.mktemp("pictures")
    fruit = folder_of(place / "fruit", {"apple": 20, "pear": 10}, (16, 16, 3))
    options = ["--rounds", "1", "--device", "cpu", "--cache", place / "cache", "--out"]
    asked = [*map(str, ["train", fruit, *options, place / "run"])]
    assert CliRunner().invoke(cli.app, asked).exit_code == 0
    return place


def dos(place: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    cache = {"DOS_CACHE": str(place / "cache"), "DOS_DATA": str(place / "data")}
    return subprocess.run(
        [sys.executable, "-m", "deep_oversampling", *arguments],
        cwd=place,
        env={**os.environ, **cache},
        capture_output=True,
        text=True,
        check=False,
    )


NORMALIZATION = {
    "mean's shape": ("normalize.mean", torch.zeros(7, 1, 1), "found normalize.mean of shape"),
    "deviation": ("normalize.std", torch.zeros(3, 1, 1), "deviations above 0, found 0 in"),
    "nan": ("normalize.mean", torch.full((3, 1, 1), torch.nan), "or not finite"),
}


@pytest.mark.parametrize("case", NORMALIZATION)
def test_a_normalisation_must_suit_the_samples(case: str, pictures: Path, tmp_path: Path) -> None:
    name, value, found = NORMALIZATION[case]
    copied = Path(shutil.copytree(pictures / "run", tmp_path / "run"))
    weights_of = load_file(copied / "model.safetensors")
    save_file({**weights_of, name: value}, copied / "model.safetensors")
    with pytest.raises(InputError, match=found):
        Run.open(copied).network(device="cpu")


@pytest.mark.slow
@pytest.mark.parametrize("command", ["predict", "evaluate", "export"])
def test_commands_say_it_in_a_line(command: str, pictures: Path, tmp_path: Path) -> None:
    place = Path(shutil.copytree(pictures, tmp_path / "here"))
    path = place / "run" / "model.safetensors"
    save_file({n: t.flatten() for n, t in load_file(path).items()}, path)
    given = {"predict": ["fruit/apple"], "evaluate": ["fruit"], "export": []}[command]
    done = dos(place, command, "run", *given)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "run/model.safetensors must hold" in done.stderr
    assert not (place / "run" / "exported.onnx").exists()


@pytest.mark.slow
def test_training_goes_on_or_says_it_in_a_line(pictures: Path, tmp_path: Path) -> None:
    place = Path(shutil.copytree(pictures, tmp_path / "here"))
    stopped = """
import sys
from deep_oversampling.resuming import Checkpoints
from deep_oversampling.cli import main
due = Checkpoints.due
def stopping(self):
    self.stop()
    return due(self)
Checkpoints.due = stopping
main()
"""
    asked = ["train", "fruit", "--rounds", "2", "--batch-size", "5", "--device", "cpu"]
    subprocess.run([sys.executable, "-c", stopped, *asked, "--out", "cut"], cwd=place, check=False)
    (first,) = (place / "cut" / "unfinished" / "dos").glob("*.checkpoint")
    whole = first.read_bytes()
    craft(first, put("weights.x", torch.zeros(2)))
    done = dos(place, *asked, "--out", "cut")
    assert done.returncode == 1
    assert "unknown weights 'x'" in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
    (first.with_name("00000009.checkpoint")).write_bytes(first.read_bytes())
    first.write_bytes(whole)
    done = dos(place, *asked, "--out", "cut")
    assert done.returncode == 0, done.stderr
    assert "it is passed over" in done.stderr
