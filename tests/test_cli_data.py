"""``dos data``, as a user types it."""

import gzip
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from commands import called, refused
from deep_oversampling.data import load, load_index
from picture_files import folder_of


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("DOS_DATA", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)


def run(*arguments: str | Path, code: int = 0) -> str:
    result = called("data", *arguments)
    assert result.exit_code == code, result.output
    return result.stdout


def write_idx(path: Path, array: np.ndarray) -> None:
    header = bytes([0, 0, 8, array.ndim]) + b"".join(s.to_bytes(4) for s in array.shape)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(header + array.astype(np.uint8).tobytes()))


def test_list_names_every_set_and_what_is_here(tmp_path: Path) -> None:
    write_idx(tmp_path / "data" / "mnist" / "train-labels-idx1-ubyte.gz", np.zeros(3))
    table = run("list")
    for name in ("mnist", "cifar100", "stl10", "svhn", "digits"):
        assert name in table
    assert "1 of 4 files" in table
    assert "re-created from mnist" in table
    assert str(tmp_path / "data") in table.replace("\n", "")


def test_verify_says_missing_and_differs(tmp_path: Path) -> None:
    write_idx(tmp_path / "data" / "mnist" / "train-labels-idx1-ubyte.gz", np.zeros(3))
    lines = run("verify", "mnist", code=1).splitlines()
    assert [line.split(": ")[1] for line in lines] == ["missing", "differs", "missing", "missing"]
    assert "delete it and fetch again" in lines[1]
    everything = run("verify", code=1)
    assert "digits: has no files" in everything
    (tmp_path / "data" / "mnist" / "train-labels-idx1-ubyte.gz").unlink()
    assert "differs" not in run("verify")


def test_show_prints_counts_and_draws_the_classes(tmp_path: Path) -> None:
    for part, count in (("train", 3), ("test", 1)):
        folder_of(tmp_path / "pets" / part, {"cat": count, "große Hunde": 2})
    output = run("show", "pets")
    assert "pets: samples of 3 × 6 × 5, uint8" in output
    rows = [line.split() for line in output.splitlines()]
    assert ["cat", "3", "1"] in rows
    assert ["große", "Hunde", "2", "2"] in rows
    assert ["all", "5", "3"] in rows
    with Image.open(tmp_path / "pets-classes.png") as sheet:
        assert sheet.size == (140 + 10 * 68, 2 * 68 + 4)
        shades = np.asarray(sheet)[30, 145::68].mean(1)  # the middle of each place
    assert (shades[:3] < 60).all()  # three dark pictures of cats
    assert (shades[3:] == 255).all()  # then paper


def test_show_an_imbalance_and_write_it_down(tmp_path: Path) -> None:
    output = run("show", "digits", "--imbalance", "exp:10", "--seed", "3", "--index", "lt.json")
    assert "exp:10" in output
    subset = load_index(tmp_path / "lt.json", load("digits").train)
    assert f"train: {len(subset.rows)} of 1797 samples" in output
    assert subset.seed == 3


def test_show_names_what_was_skipped(tmp_path: Path) -> None:
    folder_of(tmp_path / "set", {"a": 2, "b": 2})
    (tmp_path / "set" / "a" / "1.png").write_text("nonsense")
    output = run("show", "set", "--size", "4")
    assert "1.png: it is no picture" in output
    assert "1 unreadable pictures were skipped" in output


def test_vectors_are_not_drawn(tmp_path: Path) -> None:
    np.savez(tmp_path / "v.npz", x=np.zeros((4, 3), np.float32), y=[0, 1, 0, 1])
    assert "samples of each class" not in run("show", "v.npz")
    assert not list(tmp_path.glob("*.png"))


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.uint16, bool])
def test_images_of_any_type_are_drawn(tmp_path: Path, dtype: type) -> None:
    x = np.arange(4 * 1 * 90 * 200).reshape(4, 1, 90, 200).astype(dtype)
    np.savez(tmp_path / "v.npz", x=x, y=[0, 1, 0, 1])
    run("show", "v.npz", "--picture", "v.png")
    with Image.open(tmp_path / "v.png") as sheet:
        pixels = np.asarray(sheet)
    assert (pixels[70:72, 140:] == 255).all()  # between the rows: large images are made smaller


def test_names_are_shown_as_they_are(tmp_path: Path) -> None:
    folder_of(tmp_path / "set", {"[cat]": 1, "[bold]dog": 1, "[": 1})
    output = run("show", "set")
    for name in ("[cat]", "[bold]dog"):
        assert name in output


def test_mnist_full_has_the_files_of_mnist() -> None:
    assert "mnist/train-images" in run("verify", "mnist-full", code=1)
    assert "needs no files" in run("fetch", "digits")


def test_wrong_use_is_refused(tmp_path: Path) -> None:
    folder_of(tmp_path / "set", {"a": 1, "b": 1})
    assert "did you mean exp:factor?" in refused("data", "show", "digits", "--imbalance", "expp:3")
    where = "must be a file in a folder"
    assert where in refused("data", "show", "set", "--picture", "no/where.png")
    assert where in refused("data", "show", "digits", "--index", "no/where.json")
    (tmp_path / "set" / "b" / "0.png").write_text("nonsense")
    assert "every picture must be readable" in refused("data", "show", "set", "--strict")
    assert "end it in .png" in refused("data", "show", "digits", "--picture", "x.jpg")
    assert not list(tmp_path.rglob("*.part"))


def test_wrong_use_is_one_line() -> None:
    command = [sys.executable, "-m", "deep_oversampling", "data", "fetch", "shvn"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert result.stderr.startswith("dos: ")
    assert "did you mean 'svhn'?" in result.stderr
    assert result.stderr.count("\n") == 1


def test_what_a_terminal_cannot_show_is_no_reason_to_stop(tmp_path: Path) -> None:
    folder_of(tmp_path / "set", {"猫": 1, "b": 1})
    command = [sys.executable, "-m", "deep_oversampling", "data", "show", "set"]
    ascii_only = {"PYTHONIOENCODING": "ascii", "DOS_CACHE": str(tmp_path / "c"), "PATH": ""}
    result = subprocess.run(command, capture_output=True, check=False, cwd=tmp_path, env=ascii_only)
    assert result.returncode == 0, result.stderr
    assert rb"\u732b" in result.stdout
