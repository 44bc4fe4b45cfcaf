"""Files that change: between two starts, while they are decoded, and what must not be kept."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from deep_oversampling import InputError
from deep_oversampling.data.pictures.decoding import decode
from deep_oversampling.data.pictures.folders import list_folder
from deep_oversampling.data.splits import Splits
from deep_oversampling.reading import read_plain

RED, GREEN, BLUE = (255, 0, 0), (0, 255, 0), (0, 0, 255)


def paint(path: Path, colour: tuple[int, int, int]) -> None:
    """A file whose size does not depend on the colour."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (4, 4), colour).save(path, "BMP")


def colours(splits: Splits) -> list[tuple[str, tuple[int, ...]]]:
    """The label and the colour of every sample."""
    labels, pixels = splits.train.labels, splits.train.x[:][:, :, 0, 0]
    return [(str(label), tuple(x)) for label, x in zip(labels, pixels.tolist(), strict=True)]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, colour in (("a/0", RED), ("a/1", GREEN), ("b/0", BLUE)):
        paint(tmp_path / "set" / f"{name}.bmp", colour)
    return tmp_path / "set"


@pytest.fixture
def load(root: Path, tmp_path: Path) -> Callable[..., Splits]:
    return lambda **options: decode(list_folder(root), tmp_path / "cache", **options)


def test_contents_that_change_places_change_their_labels(
    root: Path, load: Callable[..., Splits]
) -> None:
    assert colours(load()) == [("a", RED), ("a", GREEN), ("b", BLUE)]
    paint(root / "a/1.bmp", BLUE)
    paint(root / "b/0.bmp", GREEN)
    assert colours(load()) == [("a", RED), ("a", BLUE), ("b", GREEN)]


def test_other_content_of_the_same_size_and_time_is_noticed(
    root: Path, load: Callable[..., Splits]
) -> None:
    load()
    file = root / "a/0.bmp"
    before = file.stat()
    paint(file, BLUE)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert file.stat().st_size == before.st_size
    assert colours(load())[0] == ("a", BLUE)


@pytest.mark.parametrize("change", ["content", "gone"])
def test_a_file_that_changes_while_it_is_decoded_stops_it(
    root: Path, load: Callable[..., Splits], tmp_path: Path, change: str
) -> None:
    file = root / "a/0.bmp"

    def meddle(done: int, total: int) -> None:
        if done == total // 2:  # all were looked at, none is decoded
            file.unlink()
            if change == "content":
                paint(file, GREEN)

    with pytest.raises(InputError, match=r"must not change while they are decoded, .*start again"):
        load(on_progress=meddle)
    assert list((tmp_path / "cache").iterdir()) == []
    paint(file, RED)
    assert colours(load()) == [("a", RED), ("a", GREEN), ("b", BLUE)]


def test_what_the_disk_failed_to_give_is_looked_at_again(
    root: Path, load: Callable[..., Splits], monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(path: str, most: int) -> bytes:
        if path.endswith("1.bmp"):
            raise OSError(5, "Input/output error")
        return read_plain(path, most)

    monkeypatch.setattr("deep_oversampling.data.pictures.survey.read_plain", failing)
    splits = load()
    assert [Path(one.file).name for one in splits.skipped] == ["1.bmp"]
    monkeypatch.undo()
    assert colours(load()) == [("a", RED), ("a", GREEN), ("b", BLUE)]


def test_unreadable_files_in_different_places_are_different(
    root: Path, load: Callable[..., Splits]
) -> None:
    (root / "b/1.bmp").symlink_to("nowhere.bmp")
    shutil.move(root / "b/0.bmp", root / "b/2.bmp")
    assert colours(load()) == [("a", RED), ("a", GREEN), ("b", BLUE)]
    (root / "b/1.bmp").unlink()
    paint(root / "b/1.bmp", GREEN)
    (root / "a/1.bmp").unlink()
    (root / "a/1.bmp").symlink_to("nowhere.bmp")
    splits = load()
    assert colours(splits) == [("a", RED), ("b", GREEN), ("b", BLUE)]
    assert splits.skipped[0].file == str(root / "a/1.bmp")


def test_memory_that_runs_out_is_not_the_pictures_fault(
    root: Path, load: Callable[..., Splits], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_memory(*_: object) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr("PIL.ImageOps.exif_transpose", no_memory)
        with pytest.raises(MemoryError):
            load()
    assert list((tmp_path / "cache").iterdir()) == []
    assert load().skipped == ()


def test_skipped_files_are_named_where_they_are_now(root: Path, tmp_path: Path) -> None:
    (root / "a/broken.bmp").write_bytes(b"BM nothing")
    decode(list_folder(root), tmp_path / "cache")
    root.rename(tmp_path / "moved")
    splits = decode(list_folder(tmp_path / "moved"), tmp_path / "cache")
    assert [one.file for one in splits.skipped] == [str(tmp_path / "moved" / "a/broken.bmp")]


def test_bodies_that_are_all_cut_off(root: Path, load: Callable[..., Splits]) -> None:
    for file in root.rglob("*.bmp"):
        file.write_bytes(file.read_bytes()[:60])  # the header is whole
    with pytest.raises(InputError, match=r"none of the 3 of set can, the first: .*0\.bmp"):
        load()
    with pytest.raises(InputError, match=r"every picture must be readable, found .*0\.bmp"):
        load(strict=True)


def test_others_may_read_the_cache(load: Callable[..., Splits], tmp_path: Path) -> None:
    umask = os.umask(0o022)
    try:
        load()
    finally:
        os.umask(umask)
    (folder,) = (p for p in (tmp_path / "cache").iterdir() if p.name != "states")
    assert folder.stat().st_mode & 0o777 == 0o755


def test_warnings_are_as_before_when_it_stops(root: Path, load: Callable[..., Splits]) -> None:
    import warnings

    (root / "a/1.bmp").write_bytes(b"")
    filters = list(warnings.filters)
    with pytest.raises(InputError) as stopped:
        load(strict=True)
    assert stopped.value.__traceback__ is not None  # which still holds on to the frames
    assert warnings.filters == filters
