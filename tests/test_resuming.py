"""A training that is killed goes on as if nothing had happened, bit by bit."""

import contextlib
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.optim import SGD, Adam, AdamW
from torch.optim.lr_scheduler import CosineAnnealingLR

from deep_oversampling import (
    Checkpoints,
    CropAndFlip,
    EarlyStopping,
    History,
    InputError,
    Network,
    Samples,
    Stopped,
    durable,
    fit,
    fit_many,
    lenet,
    presenting,
    snapshots,
)
from deep_oversampling.seeding import isolated
from toy import blobs, generator, small, weights

OPTIONS: dict[str, Any] = {"rounds": 2, "batch_size": 5, "device": "cpu", "seed": 3}


def regularised(seed: int = 0) -> Network:
    """Batch norm, whose statistics are state, and dropout, which draws in every step."""
    with isolated(generator(seed)):
        layers = [nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 5)]
        return Network(nn.Sequential(*layers), nn.Linear(5, 3))


def pictures() -> Samples:
    x = torch.randint(0, 256, (40, 1, 16, 16), generator=generator(), dtype=torch.uint8)
    return Samples(x, torch.tensor([0] * 28 + [1] * 12))


CASES: dict[str, tuple[Callable[[], Network], Callable[[], Samples], dict[str, Any]]] = {
    "mlp": (small, blobs, {}),
    "batch norm and dropout": (regularised, blobs, {}),
    "adam": (small, blobs, {"optimizer": partial(Adam, lr=1e-3)}),
    "adamw, cosine": (
        small,
        blobs,
        {"optimizer": partial(AdamW, lr=1e-2), "schedule": partial(CosineAnnealingLR, T_max=4)},
    ),
    "pictures, augmented": (
        lambda: lenet((1, 16, 16), 2),
        pictures,
        {"augment": CropAndFlip(2), "optimizer": partial(SGD, lr=0.01, momentum=0.9)},
    ),
}


def told(history: History) -> list[Any]:
    """All but the seconds."""
    rounds = [{**r, "seconds": 0} for r in history.to_dict()["rounds"]]
    return [rounds, history.to_dict()["spreads"]]


class StopsAt(Checkpoints):
    """Asks for an end when it has been looked at so many times."""

    def __init__(self, folder: Path, times: int) -> None:
        super().__init__(folder)
        self._left = times

    def due(self) -> bool:
        self._left -= 1
        if self._left == 0:
            self.stop()
        return super().due()


def trained(case: str, **options: Any) -> tuple[Tensor, list[Any]]:
    make, samples, own = CASES[case]
    network = make()
    with torch.random.fork_rng():
        history = fit(network, samples(), **{**OPTIONS, **own, **options})
    return torch.cat([t.flatten().double() for t in network.state_dict().values()]), told(history)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("times", [1, 2, 3, 4, 5, 7, 9])
def test_stopped_between_steps_it_goes_on_bit_by_bit(case: str, times: int, tmp_path: Path) -> None:
    whole, history = trained(case)
    with pytest.raises(Stopped, match="the same call goes on from"):
        trained(case, checkpoint=StopsAt(tmp_path, times))
    torch.rand(3)  # the world goes on in between
    found, told_again = trained(case, checkpoint=tmp_path)
    assert torch.equal(found, whole)
    assert told_again == history


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.usefixtures("deterministic")
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("times", [3, 5, 8])
def test_on_a_gpu_it_goes_on_bit_by_bit(
    case: str, times: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(presenting, "_STEPS", 2)  # a GPU is told of many steps at once
    expected = trained(case, device="cuda")
    with pytest.raises(Stopped):
        trained(case, device="cuda", checkpoint=StopsAt(tmp_path, times))
    found = trained(case, device="cuda", checkpoint=tmp_path)
    assert torch.equal(found[0], expected[0])
    assert found[1] == expected[1]


def test_stopped_again_and_again(tmp_path: Path) -> None:
    whole, history = trained("batch norm and dropout")
    for _ in range(40):
        try:
            found, told_again = trained(
                "batch norm and dropout", checkpoint=StopsAt(tmp_path, times=1)
            )
            break
        except Stopped:
            continue
    assert torch.equal(found, whole)
    assert told_again == history


def test_a_finished_training_is_not_trained_again(tmp_path: Path) -> None:
    first = trained("mlp", checkpoint=tmp_path)
    rounds: list[object] = []
    assert torch.equal(first[0], trained("mlp", checkpoint=tmp_path, on_round=rounds.append)[0])
    assert rounds == []
    assert trained("mlp", checkpoint=tmp_path)[1] == first[1]


def test_two_files_are_kept(tmp_path: Path) -> None:
    trained("mlp", checkpoint=tmp_path)
    assert [path.name for path in sorted(tmp_path.iterdir())] == [
        "00000003.checkpoint",
        "00000004.checkpoint",
    ]


@pytest.mark.parametrize("damage", ["cut", "changed", "empty"])
def test_of_a_torn_file_the_one_before_is_taken(
    damage: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    whole, _ = trained("mlp", checkpoint=tmp_path)
    last = max(tmp_path.iterdir())
    data = last.read_bytes()
    middle = len(data) // 2
    changed = data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]
    last.write_bytes({"cut": data[:middle], "changed": changed, "empty": b""}[damage])
    found, _ = trained("mlp", checkpoint=tmp_path)
    assert torch.equal(found, whole)
    (record,) = caplog.records
    assert "is not whole and is passed over" in record.message


@pytest.mark.parametrize(
    ("options", "difference"),
    [
        ({"rounds": 3}, "rounds 2 instead of 3"),
        ({"seed": 4}, "seed 3 instead of 4"),
        ({"pull": 1.0}, "pull 10.0 instead of 1.0"),
        ({"optimizer": partial(SGD, lr=0.5)}, "optimizer"),
        ({"schedule": partial(CosineAnnealingLR, T_max=4)}, "schedule None instead of"),
    ],
)
def test_other_settings_are_refused(
    options: dict[str, Any], difference: str, tmp_path: Path
) -> None:
    trained("mlp", checkpoint=tmp_path)
    with pytest.raises(InputError, match=rf"of the same training, found .*{difference}"):
        trained("mlp", checkpoint=tmp_path, **options)


def test_other_samples_and_networks_are_refused(tmp_path: Path) -> None:
    fit(small(), blobs(), checkpoint=tmp_path, **OPTIONS)
    with pytest.raises(InputError, match=r"found .*samples"):
        fit(small(), blobs(seed=1), checkpoint=tmp_path, **OPTIONS)
    with pytest.raises(InputError, match=r"found .*network"):
        fit(regularised(), blobs(), checkpoint=tmp_path, **OPTIONS)


@pytest.mark.parametrize("row", [0, 1, 333, 999])
def test_a_single_sample_that_was_changed_is_noticed(row: int, tmp_path: Path) -> None:
    samples = blobs((900, 60, 40))
    fit(small(), samples, checkpoint=tmp_path, **OPTIONS | {"batch_size": 500})
    samples.x[row, 2] += 1e-3
    with pytest.raises(InputError, match=r"found samples '\w+' instead of '\w+'"):
        fit(small(), samples, checkpoint=tmp_path, **OPTIONS | {"batch_size": 500})


def test_a_newer_version_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "_VERSION", 2)
    trained("mlp", checkpoint=tmp_path)
    monkeypatch.setattr(snapshots, "_VERSION", 1)
    with pytest.raises(InputError, match="found version 2 instead of 1; use the release"):
        trained("mlp", checkpoint=tmp_path)


def test_a_checkpoint_is_for_one_network(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="for the training of one network, found 2"):
        fit_many([small(), small()], blobs(), checkpoint=tmp_path)


def test_a_full_disk_leaves_the_earlier_checkpoints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[int] = []

    def fails(handle: int) -> None:
        written.append(handle)
        if len(written) > 2:  # a file and its folder are synced
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(durable.os, "fsync", fails)
    with pytest.raises(InputError, match=r"room for checkpoints: .*No space left.*as they were"):
        trained("mlp", checkpoint=tmp_path)
    monkeypatch.undo()
    assert [path.name for path in tmp_path.iterdir()] == ["00000001.checkpoint"]
    assert torch.equal(trained("mlp", checkpoint=tmp_path)[0], trained("mlp")[0])


PROGRAM = """
import sys
import torch
torch.set_num_threads(1)
sys.path.insert(0, sys.argv[1])
from test_resuming import CASES, OPTIONS
from toy import weights
from deep_oversampling import Checkpoints, fit
make, samples, own = CASES["batch norm and dropout"]
network = make()
print("begun", flush=True)
options = {**OPTIONS, **own, "rounds": 8, "batch_size": 2}
fit(network, samples(), checkpoint=Checkpoints(sys.argv[2], minutes=1e-6), **options)
torch.save(weights(network), sys.argv[3])
"""


def run_program(folder: Path, result: Path) -> "subprocess.Popen[str]":
    here = str(Path(__file__).parent)
    command = [sys.executable, "-c", PROGRAM, here, str(folder), str(result)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def killed_until_done(folder: Path, kills: int, seed: int) -> int:
    """How often it really was killed at work."""
    result, draw, hit = folder / "weights", random.Random(seed), 0
    for _ in range(kills):
        with run_program(folder / "run", result) as process:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(draw.uniform(0, 0.6))
            process.send_signal(signal.SIGKILL)
        hit += process.returncode == -signal.SIGKILL
    with run_program(folder / "run", result) as process:
        assert process.wait() == 0
    return hit


@pytest.mark.slow
def test_killed_at_twenty_moments_it_ends_with_the_same_bits(tmp_path: Path) -> None:
    (tmp_path / "whole").mkdir()
    (tmp_path / "killed").mkdir()
    killed_until_done(tmp_path / "whole", kills=0, seed=0)
    assert killed_until_done(tmp_path / "killed", kills=20, seed=0) >= 10
    whole, killed = (torch.load(tmp_path / name / "weights") for name in ("whole", "killed"))
    assert torch.equal(whole, killed)


STOPPING = {"stop": EarlyStopping(patience=2), "rounds": 8}


@pytest.mark.parametrize("times", [1, 9, 18, 27, 36, 45])
def test_early_stopping_goes_on_as_well(times: int, tmp_path: Path) -> None:
    """The best weights so far are in the checkpoint, so that a stop may fall anywhere."""
    options = STOPPING | {"validation": blobs(seed=2)}
    whole, history = trained("mlp", **options)
    assert len(history[0]) < 16  # it did stop
    with contextlib.suppress(Stopped):
        trained("mlp", checkpoint=StopsAt(tmp_path, times), **options)
    for _ in range(2):  # the second time, there is nothing left to train
        found, told_again = trained("mlp", checkpoint=tmp_path, **options)
        assert torch.equal(found, whole)
        assert told_again == history


def test_early_stopping_on_other_samples_is_refused(tmp_path: Path) -> None:
    trained("mlp", checkpoint=tmp_path, validation=blobs(seed=2), **STOPPING)
    with pytest.raises(InputError, match="found validation"):
        trained("mlp", checkpoint=tmp_path, validation=blobs(seed=5), **STOPPING)


def test_other_initial_weights_are_harmless_and_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    fit(whole := small(), blobs(), **OPTIONS)
    with pytest.raises(Stopped):
        fit(small(), blobs(), checkpoint=StopsAt(tmp_path, 5), **OPTIONS)
    for _ in range(2):
        other = small(seed=9)
        fit(other, blobs(), checkpoint=tmp_path, **OPTIONS)
        assert torch.equal(weights(other), weights(whole))
    assert [record.message.split(" in ")[0] for record in caplog.records] == [
        "the network has other weights than the training"
    ] * 2


def test_the_folder_is_for_one_process_at_a_time(tmp_path: Path) -> None:
    def once_more(_: object) -> None:
        fit(small(), blobs(), checkpoint=tmp_path, **OPTIONS)

    with pytest.raises(InputError, match=r"one process at a time.*another one is at work"):
        fit(small(), blobs(), checkpoint=tmp_path, on_round=once_more, **OPTIONS)
    fit(small(), blobs(), checkpoint=tmp_path, **OPTIONS)  # who failed has let go of it
