"""``dos train``, as a user types it: a folder of pictures in, a folder of a run out."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from safetensors.torch import load_file

import commands
from commands import called
from deep_oversampling import lenet, resnet18, save_weights
from deep_oversampling.cli.threads import suit_threads
from deep_oversampling.data import load
from deep_oversampling.runs import Run, Settings, read_settings
from deep_oversampling.runs.settings import as_toml
from picture_files import folder_of, save

COUNTS = {"apple": 30, "pear": 20, "große Pflaume": 6}
QUICK = ["--rounds", "2", "--device", "cpu"]
FILES = ["baseline.safetensors", "config.toml", "model.safetensors", "report.html", "run.json"]


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("DOS_DATA", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    return folder_of(tmp_path / "fruit", COUNTS, (16, 16, 3))


def run(*arguments: str | Path) -> str:
    result = called("train", *arguments, *QUICK)
    assert result.exit_code == 0, result.output + repr(result.exception)
    return result.output


def refused(*arguments: str | Path) -> str:
    return commands.refused("train", *arguments, *QUICK)


def record(folder: Path | str) -> dict:
    return json.loads((Path(folder) / "run.json").read_text())


def test_a_run_leaves_everything_in_a_folder(pictures: Path) -> None:
    said = run(pictures)
    folder = Path("runs/fruit-1")
    assert [name for name in FILES if (folder / name).is_file()] == FILES
    assert not list(folder.glob("*.part"))
    for text in ("große Pflaume", "1 rare class is over-sampled", "lenet", "DOS 4/4", "plain 4/4"):
        assert text in said
    assert f"run: {folder}" in said
    assert f"report: {folder / 'report.html'}" in said
    found = record(folder)
    assert found["status"] == "finished"
    assert found["minority"] == ["große Pflaume"]
    assert found["counts"] == {"train": [24, 5, 16], "validation": [6, 1, 4]}
    assert [r["task"] for r in found["history"]["dos"]["rounds"]] == ["single"] * 2 + ["multi"] * 2
    assert sorted(found["measures"]["plain"]) == ["all", "majority", "minority"]


def test_its_config_makes_it_again(pictures: Path) -> None:
    run(pictures, "--seed", "3")
    run("--config", "runs/fruit-1/config.toml")
    first, second = (load_file(f"runs/fruit-{i}/model.safetensors") for i in (1, 2))
    assert all(bool((first[name] == second[name]).all()) for name in first)
    both = [Path(f"runs/fruit-{i}/config.toml").read_text() for i in (1, 2)]
    assert both[0] == both[1]
    run("--config", "runs/fruit-1/config.toml", "--seed", "4")
    third = load_file("runs/fruit-3/model.safetensors")
    assert not all(bool((first[name] == third[name]).all()) for name in first)


def test_the_baseline_starts_from_the_same_weights_and_can_be_left_out(pictures: Path) -> None:
    run(pictures, "--out", "with")
    run(pictures, "--out", "without", "--no-baseline")
    assert not Path("without/baseline.safetensors").exists()
    assert list(record("without")["measures"]) == ["dos"]
    a, b = (load_file(f"{name}/model.safetensors") for name in ("with", "without"))
    assert all(bool((a[name] == b[name]).all()) for name in a)
    rounds = record("with")["history"]
    initial = [[r["classifier_loss"] for r in rounds[m]["rounds"][:2]] for m in ("dos", "plain")]
    assert initial[0] == initial[1]


def test_splits_that_are_there_are_used_and_test_is_not(tmp_path: Path) -> None:
    for part, counts in (("train", (12, 6)), ("val", (4, 3)), ("test", (2, 2))):
        folder_of(tmp_path / "pets" / part, dict(zip(("cat", "dog"), counts, strict=True)))
    said = run("pets", "--out", "r")
    assert record("r")["counts"] == {"train": [12, 6], "validation": [4, 3]}
    assert record("r")["held_out"] is False
    assert "held out" not in said


def test_k_can_be_chosen(pictures: Path) -> None:
    said = run(pictures, "--k", "auto", "--no-baseline", "--out", "r")
    assert "were chosen on a part" in said
    best = record("r")["candidates"][0]
    assert record("r")["k"][1] == min(best["k"], 4)
    assert 'k = "auto"' in Path("r/config.toml").read_text()


def test_arrays_and_sets_by_name_are_data_too(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(60, 5)).astype(np.float32), np.repeat(["a", "b"], [50, 10])
    np.savez(tmp_path / "table.npz", x=x + (y == "b")[:, None], y=y)
    assert "mlp" in run("table.npz", "--out", "vectors")
    assert "Digits" in run("digits", "--rounds", "1", "--no-baseline", "--out", "named")


def test_weights_to_start_from(pictures: Path, tmp_path: Path) -> None:
    save_weights(lenet((3, 16, 16), 7, seed=9), tmp_path / "other.safetensors")
    said = run(pictures, "--weights", "other.safetensors", "--out", "r")
    assert "weights from other.safetensors; new: classifier.0.weight" in said


def test_a_corrupt_picture_is_named_and_skipped(pictures: Path) -> None:
    (pictures / "apple" / "broken.png").write_bytes(b"no picture")
    assert "skipped" in run(pictures)
    assert "broken.png" in run(pictures)


def test_many_classes_are_summed_up(tmp_path: Path) -> None:
    folder_of(tmp_path / "many", {f"c{j:02}": 2 + (j < 3) * 5 for j in range(25)}, (8, 8, 3))
    said = run("many", "--no-baseline")
    assert "… 5 more" in said
    assert "fewer than 5 neighbours in their class: c03, c04, c05, c06, c07 and 17 more" in said


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        ({}, "found no subfolder"),
        ({"apple": 4}, "two or more classes, found 1"),
        ({"apple": 4, "pear": 1}, "two samples or more to be split"),
    ],
    ids=["empty", "one class", "one sample"],
)
def test_data_that_cannot_be_trained_on(tmp_path: Path, counts: dict, words: str) -> None:
    (tmp_path / "d").mkdir()
    folder_of(tmp_path / "d", counts)
    assert words in refused("d")
    assert not Path("runs").exists()


def test_data_that_is_not_there() -> None:
    assert "found no 'nowhere'" in refused("nowhere")


def test_a_folder_in_use_is_refused_unless_asked(pictures: Path) -> None:
    run(pictures, "--out", "r", "--rounds", "1")
    before = Path("r/model.safetensors").read_bytes()
    assert "(--overwrite)" in refused(pictures, "--out", "r")
    assert "(--overwrite)" in refused("nowhere", "--out", "r")  # before data is read
    assert Path("r/model.safetensors").read_bytes() == before
    Path("r/exported.onnx").write_bytes(b"of the run before")
    run(pictures, "--out", "r", "--overwrite", "--no-baseline")
    assert not Path("r/baseline.safetensors").exists()
    assert not Path("r/exported.onnx").exists()


def test_a_file_is_no_folder_for_a_run(pictures: Path) -> None:
    Path("r").write_text("precious")
    for more in ([], ["--overwrite"]):
        assert "r must be a folder that can be made" in refused(pictures, "--out", "r", *more)
    assert Path("r").read_text() == "precious"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_to(pictures: Path, tmp_path: Path) -> None:
    (tmp_path / "locked").mkdir(mode=0o500)
    assert "can be made and written to" in refused(pictures, "--out", "locked/r")


def test_a_file_in_the_place_of_the_folder(pictures: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert "can be made and written to" in refused(pictures, "--out", "file/r")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--weights", "none.safetensors"], "must be a safetensors file"),
        (["--device", "warp"], "device must be one that this machine has (cpu"),
    ],
)
def test_options_that_cannot_be_here(pictures: Path, options: list[str], words: str) -> None:
    assert words in commands.refused("train", pictures, *options)
    assert not Path("runs").exists()


def test_a_config_is_checked(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text('data = "x"\nround = 3\n')
    assert "found 'round'; did you mean rounds?" in refused("--config", "c.toml")
    (tmp_path / "c.toml").write_text('data = "x"\nseed = "now"\n')
    assert "seed must be a whole number, found 'now'" in refused("--config", "c.toml")
    (tmp_path / "c.toml").write_text("data = \n")
    assert "must be a TOML file" in refused("--config", "c.toml")
    assert called("train").exit_code == 2


def test_toml_keeps_every_option(tmp_path: Path) -> None:
    settings = Settings('a "b"\\c\nü', "lenet", weights="w", k="auto", rounds=3, augment=False)
    (tmp_path / "c.toml").write_text(as_toml(settings), encoding="utf-8")
    assert Settings(**read_settings(tmp_path / "c.toml")) == settings


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "deep_oversampling", *map(str, arguments)]


@contextmanager
def killed_after(process: "subprocess.Popen[str]", seconds: float) -> Iterator[None]:
    """So that a failure is a failure and no endless wait."""
    timer = threading.Timer(seconds, process.kill)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def test_a_narrow_terminal_loses_no_number(pictures: Path) -> None:
    result = subprocess.run(
        command("train", pictures, "--no-baseline", *QUICK),
        capture_output=True,
        text=True,
        env={**os.environ, "COLUMNS": "40"},
    )
    assert result.returncode == 0, result.stderr
    assert "precision  recall    F1  AUPRC" in result.stdout
    assert "Traceback" not in result.stderr


def test_ctrl_c_leaves_what_was_trained(pictures: Path) -> None:
    options = ["--rounds", "5000", "--device", "cpu", "--out", "r", "--no-baseline"]
    with (
        subprocess.Popen(
            command("train", pictures, *options),
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
            # what runs in the background may have been told to ignore ctrl-C, and its children too
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        ) as process,
        killed_after(process, seconds=300),
    ):
        assert process.stderr
        while not process.stderr.readline().startswith("DOS 3/"):
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
    assert process.returncode == 130, rest
    assert "Traceback" not in rest
    last = rest.strip().splitlines()[-1]
    assert last.startswith("dos: stopped after round ")
    found = Run.open("r")
    assert f"dos: {found.record.status};" in last
    done = int(found.record.status.split()[3])
    assert len(found.record.history["dos"]["rounds"]) == done
    network = found.network(device="cpu")
    assert sum(p.numel() for p in network.parameters()) > 0
    assert Path("r/report.html").exists()


def test_ctrl_c_before_the_first_round_leaves_nothing(
    pictures: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("deep_oversampling.runs.training.fit", stop)
    result = called("train", pictures, *QUICK)
    assert result.exit_code == 130
    assert "nothing was kept" in result.output
    assert not list(Path("runs").iterdir())


def test_a_loss_that_is_lost_says_so(pictures: Path) -> None:
    result = called("train", pictures, "--learning-rate", "1e30", *QUICK)
    assert result.exit_code == 1
    assert "learning rate" in result.output + str(result.exception)
    assert not list(Path("runs").iterdir())  # a lower one may be tried at the same place


def test_new_pictures_do_not_move_old_names(pictures: Path) -> None:
    splits = load(pictures)
    assert Path(splits.file_of(splits.train, 0)).parent.name == "apple"
    (pictures / "apple" / "00.png").write_bytes(b"no picture")
    splits = load(pictures)
    assert Path(splits.file_of(splits.train, 0)).name == "0.png"
    save(pictures / "apple" / "000.png", 0, (16, 16, 3))
    splits = load(pictures)
    assert Path(splits.file_of(splits.train, 0)).name == "0.png"
    assert Path(splits.file_of(splits.train, 1)).name == "000.png"


@pytest.mark.parametrize(("said", "threads"), [(None, 1), ("2", 2)])
def test_a_small_network_is_trained_by_one_thread(
    said: str | None, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[int] = [2]
    monkeypatch.setattr("torch.set_num_threads", found.append)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if said:
        monkeypatch.setenv("OMP_NUM_THREADS", said)
    suit_threads(lenet())
    assert found[-1] == threads
    found.append(2)
    suit_threads(resnet18())  # eleven million weights
    assert found[-1] == 2
