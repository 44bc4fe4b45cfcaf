"""Folders that are whole or not there, whoever else is filling the cache."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from deep_oversampling import InputError
from deep_oversampling.data.cache import kept, remember, remembered, state_of
from deep_oversampling.data.seal import breach, seal

PROGRAM = """
import sys
from pathlib import Path
from deep_oversampling.data.cache import kept
for i in range(100):
    folder = kept(Path(sys.argv[1]), f"{i:032x}", lambda part: (part / "x").write_text("whole"))
    assert (folder / "x").read_text() == "whole"
"""


@pytest.mark.slow
def test_many_processes_at_once_are_all_right(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "cache")]
    processes = [subprocess.Popen(command) for _ in range(3)]
    assert [process.wait() for process in processes] == [0, 0, 0]
    assert sorted(p.name for p in (tmp_path / "cache").iterdir()) == [
        f"{i:032x}" for i in range(100)
    ]


def test_what_is_there_is_not_made_again(tmp_path: Path) -> None:
    made: list[Path] = []
    first, second = kept(tmp_path, "a", made.append), kept(tmp_path, "a", made.append)
    assert first == second == tmp_path / "a"
    assert len(made) == 1


def test_of_a_large_file_both_ends_and_blocks_between_are_looked_at(tmp_path: Path) -> None:
    size = 1 << 25
    (tmp_path / "x").write_bytes(bytes(size))
    seal(tmp_path, "a")
    assert breach(tmp_path, "a") == ""
    assert breach(tmp_path, "b") == "its seal is that of another one"
    for place in (0, size - 1):
        with (tmp_path / "x").open("r+b") as file:
            file.seek(place)
            file.write(b"1")
        assert breach(tmp_path, "a") == "x is not as it was written"
        with (tmp_path / "x").open("r+b") as file:
            file.seek(place)
            file.write(b"\0")
    (tmp_path / "x").write_bytes(bytes(size // 4096 * 4095))
    assert breach(tmp_path, "a") == "x is not as it was written"


def test_what_fails_leaves_nothing(tmp_path: Path) -> None:
    def fail(folder: Path) -> None:
        (folder / "x").write_text("half")
        raise InputError("no")

    with pytest.raises(InputError, match="no"):
        kept(tmp_path, "a", fail)
    assert list(tmp_path.iterdir()) == []


def test_states_lead_to_folders_that_are_there(tmp_path: Path) -> None:
    folder = kept(tmp_path, "a" * 32, lambda part: None)
    assert remembered(tmp_path, "state") is None
    remember(tmp_path, "state", folder)
    assert remembered(tmp_path, "state") == folder
    shutil.rmtree(folder)
    assert remembered(tmp_path, "state") is None
    (tmp_path / "states" / "state").write_text("")
    assert remembered(tmp_path, "state") is None


def test_a_cache_that_cannot_be_written_forgets(tmp_path: Path) -> None:
    (tmp_path / "states").write_text("a file")
    remember(tmp_path, "state", tmp_path)
    assert remembered(tmp_path, "state") is None


def test_the_state_depends_on_files_and_settings(tmp_path: Path) -> None:
    file = tmp_path / "x"
    file.write_text("a")
    state = state_of([file], 1)
    assert state_of([str(file)], 1) == state
    assert state_of([file], 2) != state
    file.write_text("bc")
    assert state_of([file], 1) != state
    file.unlink()
    assert state_of([file], 1) not in {state, state_of([], 1)}
