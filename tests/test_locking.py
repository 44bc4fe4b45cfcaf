"""One process at a time, and no lock that outlives its owner."""

import errno
import subprocess
import sys
from pathlib import Path

import pytest

from deep_oversampling import InputError, locking
from deep_oversampling.locking import Lock

TAKES = """
import sys
from pathlib import Path
from deep_oversampling.locking import Lock
Lock(Path(sys.argv[1]), of="it", keep=True).take()
print("taken", flush=True)
sys.stdin.read()
"""


def test_who_comes_second_is_refused_until_the_first_is_done(tmp_path: Path) -> None:
    first, second = (Lock(tmp_path / "lock", of="the folder") for _ in range(2))
    with first, pytest.raises(InputError, match="the folder must be used by one process at a time"):
        second.take()
    assert not (tmp_path / "lock").exists()
    with second:
        pass
    second.release()  # once more is no harm


def test_a_file_that_is_there_for_something_else_stays_and_can_be_written(tmp_path: Path) -> None:
    path = tmp_path / "trials.jsonl"
    path.write_text("a\n")
    with Lock(path, of="it", keep=True), path.open("a") as file:
        file.write("b\n")
    assert path.read_text() == "a\nb\n"


def test_it_ends_with_a_process_that_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "trials.jsonl"
    command = [sys.executable, "-c", TAKES, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout
        other.stdout.readline()
        with pytest.raises(InputError, match="another one is at work there"):
            Lock(path, of="it").take()
        other.kill()
    with Lock(path, of="it"):
        pass


def test_a_file_that_was_deleted_meanwhile_is_no_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The owner deletes it between our opening and our locking it."""
    path, lock, opened = tmp_path / "lock", locking._lock, []

    def locked(handle: int) -> None:
        opened.append(handle)
        if len(opened) == 1:
            path.unlink()
        lock(handle)

    monkeypatch.setattr(locking, "_lock", locked)
    with Lock(path, of="it"):
        assert len(opened) == 2
        with pytest.raises(InputError, match="one process at a time"):
            Lock(path, of="it").take()


def test_where_there_are_no_locks_it_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuses(handle: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(locking, "_lock", refuses)
    with Lock(tmp_path / "lock", of="it"):
        pass
    assert "it cannot be locked here" in caplog.text


def test_a_place_that_cannot_be_written_to(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="it must be where it can be written to"):
        Lock(tmp_path / "none" / "lock", of="it").take()
