"""A folder from a stranger: links in it lead nothing that is written or deleted elsewhere."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from deep_oversampling import InputError, fit
from deep_oversampling.cli.joining import _written_down
from deep_oversampling.durable import read_checked, write_checked
from deep_oversampling.locking import Lock
from deep_oversampling.paper.store import copy_printed
from deep_oversampling.rivals.trials import check_writable
from deep_oversampling.writing import write_whole
from test_resuming import StopsAt
from toy import blobs, small
from trainings import finished, plant, refused

OPTIONS = {"rounds": 2, "device": "cpu"}


@pytest.fixture
def precious(tmp_path: Path) -> Path:
    """What the stranger would like to be written over, or deleted."""
    file = tmp_path / "precious" / "folder" / "gold"
    file.parent.mkdir(parents=True)
    file.write_text("gold")
    yield file
    assert file.read_text() == "gold"
    assert sorted(path.name for path in (tmp_path / "precious").rglob("*")) == ["folder", "gold"]


@pytest.fixture
def orchard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(tmp_path, monkeypatch)


@pytest.mark.usefixtures("orchard")
@pytest.mark.parametrize("name", ["unfinished", "unfinished/dos", "unfinished/moments/dos-1"])
@pytest.mark.parametrize("overwrite", [[], ["--overwrite"]], ids=["", "overwrite"])
def test_a_run_is_not_made_through_a_link(name: str, overwrite: list[str], precious: Path) -> None:
    """Whatever was in `unfinished` was deleted, wherever it was."""
    link = Path("r", name)
    link.parent.mkdir(parents=True)
    link.symlink_to(precious.parents[1], target_is_directory=True)
    assert f"{link} must be a file or folder of its own, found a link" in refused(*overwrite)
    link.unlink()
    finished(*overwrite)


def test_checkpoints_are_not_written_through_a_link(precious: Path, tmp_path: Path) -> None:
    folder = tmp_path / "c"
    with pytest.raises(Exception, match="the same call goes on"):
        fit(small(), blobs(), checkpoint=StopsAt(folder, 1), **OPTIONS)
    for number in range(2, 9):
        (folder / f"{number:08}.checkpoint.part").symlink_to(precious)
    fit(small(), blobs(), checkpoint=folder, **OPTIONS)


def test_what_a_kill_has_left_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "a.part").write_text("half of somethi")
    write_checked(tmp_path / "a", b"whole")
    assert read_checked(tmp_path / "a") == b"whole"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_lock_is_no_link(precious: Path, tmp_path: Path) -> None:
    (tmp_path / "lock").symlink_to(precious.parent / "made")
    with pytest.raises(InputError, match="it must be where it can be written to"):
        Lock(tmp_path / "lock", of="it").take()


def test_trials_are_not_appended_to_another_file(precious: Path, tmp_path: Path) -> None:
    (tmp_path / "trials.jsonl").symlink_to(precious)
    with pytest.raises(InputError, match=r"trials.jsonl must be a file .* found a link"):
        check_writable(tmp_path / "trials.jsonl")


@pytest.mark.parametrize("name", ["logs", "logs/process-1.txt"])
def test_what_other_processes_say_is_not_written_elsewhere(
    name: str, precious: Path, tmp_path: Path
) -> None:
    (tmp_path / "r" / name).parent.mkdir(parents=True)
    (tmp_path / "r" / name).symlink_to(precious.parent if name == "logs" else precious)
    with (
        pytest.raises(InputError, match="found a link"),
        _written_down(tmp_path / "r", SimpleNamespace(rank=1)),
    ):
        pass


def test_results_take_the_place_of_a_link(precious: Path, tmp_path: Path) -> None:
    (tmp_path / "printed").mkdir()
    (tmp_path / "printed" / "runtime.csv").symlink_to(precious)
    copy_printed(tmp_path)
    (tmp_path / "page.md").symlink_to(precious)
    write_whole({tmp_path / "page.md": b"page"})
    for name in ("printed/runtime.csv", "page.md"):
        assert not (tmp_path / name).is_symlink()
