"""Disks that are full, read-only or gone while ``dos train`` is at work: one line, nothing lost."""

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from deep_oversampling import InputError, durable, fit
from deep_oversampling.runs import unfinished
from toy import blobs, small, weights
from trainings import OPTIONS, After, finished, plant, refused, told


@pytest.fixture(autouse=True)
def orchard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(tmp_path, monkeypatch)


WRITES = 23  # of the run below: every checkpoint and moment, its settings and its results


def failing(code: int) -> Callable[[], None]:
    def fail() -> None:
        raise OSError(code, os.strerror(code))

    return fail


def counted(monkeypatch: pytest.MonkeyPatch, function: str) -> list[object]:
    """Its calls."""
    calls: list[object] = []
    real = getattr(os, function)
    monkeypatch.setattr(os, function, lambda *some: (calls.append(some), real(*some))[1])
    return calls


def survives(
    function: str, times: int, act: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> str:
    """What it says when something happens at that call; called again, it ends like the other."""
    with monkeypatch.context() as patch:
        patch.setattr(os, function, After(times, act, getattr(os, function)))
        said = refused()
    assert "\n" not in said
    assert not list(Path("r").glob("**/*.part"))
    finished()
    assert told("r") == told("whole")
    return said


@pytest.fixture
def whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unfinished, "_MINUTES", 10.0)
    finished("--out", "whole")


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EIO])
@pytest.mark.parametrize("times", [1, 4, 20])
@pytest.mark.usefixtures("whole")
def test_a_write_that_fails(code: int, times: int, monkeypatch: pytest.MonkeyPatch) -> None:
    said = survives("replace", times, failing(code), monkeypatch)
    assert os.strerror(code) in said


@pytest.mark.slow
@pytest.mark.usefixtures("whole")
def test_every_write_may_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        calls = counted(patch, "replace")
        finished()
    assert len(calls) == WRITES
    for times in range(1, WRITES + 1):
        shutil.rmtree("r")
        survives("replace", times, failing(errno.ENOSPC), monkeypatch)


@pytest.mark.parametrize("gone", ["r/unfinished/dos", "r"])
@pytest.mark.usefixtures("whole")
def test_a_folder_that_vanishes(gone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    said = survives("fsync", 6, lambda: shutil.rmtree(gone), monkeypatch)
    assert "No such file or directory" in said


LIMITED = """
import resource, sys
from deep_oversampling import cli
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv.pop(1)),) * 2)
cli.main()
"""


@pytest.mark.slow
@pytest.mark.usefixtures("whole")
def test_a_limit_on_the_size_of_files(tmp_path: Path) -> None:
    """A real failure of write(2), in the midst of a file."""
    command = [sys.executable, "-c", LIMITED, "300000", "train", *OPTIONS]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 1
    assert "Traceback" not in result.stderr
    last = result.stderr.strip().splitlines()[-1]
    assert last.startswith("dos: r/unfinished/dos must be a folder with room for checkpoints")
    assert "File too large" in last
    assert not list(Path("r").glob("**/*.part"))
    finished()
    assert told("r") == told("whole")


@pytest.mark.slow
@pytest.mark.usefixtures("whole")
def test_a_disk_that_is_full(tmp_path: Path) -> None:
    """A real one, of a megabyte and a half, which holds two checkpoints and no third."""
    Path("r").mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1500k", "none", "r"]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("only root can mount a disk")
    try:
        assert "No space left on device" in refused()
        kept = sorted(Path("r/unfinished/dos").glob("*.checkpoint"))
        assert len(kept) == 2
        assert all(durable.read_checked(path) is not None for path in kept)
        subprocess.run(["mount", "-o", "remount,ro", "r"], check=True)
        assert "Read-only file system" in refused()
        subprocess.run(["mount", "-o", "remount,rw,size=100m", "r"], check=True)
        assert "rounds were done before; going on" in finished()
        assert told("r") == told("whole")
    finally:
        subprocess.run(["umount", "r"], check=True)


def test_a_folder_for_checkpoints_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="must be a folder with room for checkpoints"):
        fit(small(), blobs(), rounds=1, device="cpu", checkpoint=tmp_path / "file" / "c")


@pytest.mark.parametrize("times", [1, 2, 3])
def test_in_python_the_earlier_checkpoint_is_intact(
    times: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options: dict[str, Any] = {"rounds": 2, "device": "cpu"}
    fit(alone := small(), blobs(), **options)
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", After(times, failing(errno.ENOSPC), os.replace))
        with pytest.raises(InputError, match=r"No space left.*earlier ones are as they were"):
            fit(small(), blobs(), checkpoint=tmp_path / "c", **options)
    assert len(list((tmp_path / "c").iterdir())) == min(2, times - 1)
    fit(again := small(), blobs(), checkpoint=tmp_path / "c", **options)
    assert weights(again).equal(weights(alone))
