"""Pictures are decoded once, found again by their content, and nothing is left half-done."""

import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from deep_oversampling import InputError
from deep_oversampling.data.pictures import decoding
from deep_oversampling.data.pictures.decoding import decode
from deep_oversampling.data.pictures.folders import list_folder
from deep_oversampling.data.splits import Splits
from deep_oversampling.views import View
from picture_files import folder_of, pixels, save

COUNTS = {"a": 3, "b": 2}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return folder_of(tmp_path / "set", COUNTS)


@pytest.fixture
def load(root: Path, tmp_path: Path) -> Callable[..., Splits]:
    return lambda **options: decode(list_folder(root), tmp_path / "cache", **options)


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows with every picture that is decoded."""
    seen: list[int] = []
    read = decoding.read_picture

    def counting(content: bytes, *args: int, **options: bool) -> object:
        seen.append(len(content))
        return read(content, *args, **options)

    monkeypatch.setattr(decoding, "read_picture", counting)
    return seen


def entries(cache: Path) -> list[str]:
    return sorted(p.name for p in cache.iterdir() if p.name != "states")


def test_samples_are_the_pictures(load: Callable[..., Splits]) -> None:
    splits = load()
    assert splits.name == "set"
    assert splits.test is None
    assert splits.validation is None
    assert splits.skipped == ()
    train = splits.train
    assert train.x.shape == (5, 3, 6, 5)
    assert train.x.dtype == torch.uint8
    assert train.classes == ("a", "b")
    assert train.y.tolist() == [0, 0, 0, 1, 1]
    assert isinstance(train.x, View)
    assert np.array_equal(train.x[4], pixels(40, seed=1001).transpose(2, 0, 1))


def test_splits_are_kept_apart(tmp_path: Path) -> None:
    for k, split in enumerate(("train", "val", "test")):
        save(tmp_path / "set" / split / "a" / "0.png", 10 * k)
        save(tmp_path / "set" / split / "b" / "0.png", 10 * k + 100)
    splits = decode(list_folder(tmp_path / "set"), tmp_path / "cache")
    for part, base in [(splits.train, 0), (splits.validation, 10), (splits.test, 20)]:
        assert part is not None
        assert [int(x.min()) // 10 * 10 for x in part.x[:]] == [base, base + 100]


def test_a_second_start_reads_no_picture(
    root: Path, load: Callable[..., Splits], decoded: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = load()
    assert len(decoded) == 5
    monkeypatch.setattr(Path, "read_bytes", lambda path: pytest.fail(f"{path} was read"))
    assert torch.equal(load().train.x[:], first.train.x[:])
    assert len(decoded) == 5


def test_the_same_content_elsewhere_is_not_decoded_again(
    root: Path, load: Callable[..., Splits], decoded: list[int], tmp_path: Path
) -> None:
    first = load()
    shutil.copytree(root, tmp_path / "copy")
    second = decode(list_folder(tmp_path / "copy"), tmp_path / "cache")
    assert len(decoded) == 5
    assert torch.equal(second.train.x[:], first.train.x[:])


@pytest.mark.parametrize("change", ["content", "name of a class", "size", "colour"])
def test_other_content_or_settings_are_decoded(
    root: Path, load: Callable[..., Splits], decoded: list[int], change: str
) -> None:
    load()
    options: dict[str, object] = {}
    if change == "content":
        before = (root / "a" / "0.png").stat()
        save(root / "a" / "0.png", 90)
        os.utime(root / "a" / "0.png", ns=(before.st_atime_ns, before.st_mtime_ns))
    elif change == "name of a class":
        (root / "a").rename(root / "A")
    elif change == "size":
        options["size"] = 4
    else:
        options["grey"] = True
    load(**options)
    assert len(decoded) == 10


def test_touched_files_are_looked_at_and_found_the_same(
    root: Path, load: Callable[..., Splits], decoded: list[int]
) -> None:
    load()
    (root / "a" / "0.png").touch()
    load()
    assert len(decoded) == 5


def test_mixed_sizes_become_squares(root: Path, load: Callable[..., Splits]) -> None:
    save(root / "a" / "large.png", 0, (40, 30, 3))
    assert load().train.x.shape == (6, 3, 5, 5)
    assert load(size=(8, 9)).train.x.shape == (6, 3, 8, 9)
    assert load(size=12).train.x.shape == (6, 3, 12, 12)


def test_large_pictures_become_small_squares(tmp_path: Path) -> None:
    for name in "ab":
        save(tmp_path / "set" / name / "0.png", 0, (300, 400, 3))
    assert decode(list_folder(tmp_path / "set"), tmp_path).train.x.shape[1:] == (3, 224, 224)


def test_grey_pictures_have_one_channel_unless_one_has_colour(tmp_path: Path) -> None:
    root = folder_of(tmp_path / "set", COUNTS, (4, 4))
    assert decode(list_folder(root), tmp_path / "cache").train.x.shape == (5, 1, 4, 4)
    save(root / "b" / "colour.png", 0, (4, 4, 3))
    assert decode(list_folder(root), tmp_path / "cache").train.x.shape == (6, 3, 4, 4)


def test_unreadable_pictures_are_named_and_skipped(
    root: Path, load: Callable[..., Splits], caplog: pytest.LogCaptureFixture
) -> None:
    (root / "a" / "1.png").write_bytes((root / "a" / "1.png").read_bytes()[:60])
    (root / "a" / "2.png").write_text("this is no picture")
    (root / "b" / "gone.png").symlink_to("nowhere.png")
    for _ in range(2):  # the second time from the cache
        with caplog.at_level(logging.WARNING):
            splits = load()
        assert splits.train.y.tolist() == [0, 1, 1]
        assert [Path(one.file).name for one in splits.skipped] == ["1.png", "2.png", "gone.png"]
        assert "no picture" in splits.skipped[1].reason
        assert "No such file" in splits.skipped[2].reason
        assert "2.png" in caplog.text
        caplog.clear()


def test_strict_stops_at_an_unreadable_picture(
    root: Path, load: Callable[..., Splits], tmp_path: Path
) -> None:
    (root / "a" / "1.png").write_bytes(b"")
    with pytest.raises(InputError, match=r"found .*1\.png: .*repair or remove it"):
        load(strict=True)
    assert entries(tmp_path / "cache") == []
    load()
    with pytest.raises(InputError, match=r"found .*1\.png: .*repair or remove it"):
        load(strict=True)  # from the cache too


def test_a_class_of_which_nothing_can_be_read(root: Path, load: Callable[..., Splits]) -> None:
    for file in (root / "b").iterdir():
        file.write_bytes(b"")
    with pytest.raises(InputError, match="can be read, found none of 'b'"):
        load()


def test_nothing_can_be_read(root: Path, load: Callable[..., Splits], tmp_path: Path) -> None:
    for file in root.rglob("*.png"):
        file.write_bytes(b"nothing")
    with pytest.raises(InputError, match=r"none of the 5 of set can, the first: .*0\.png"):
        load()
    assert not (tmp_path / "cache").exists()


def test_a_giant_is_not_decoded(
    root: Path, load: Callable[..., Splits], monkeypatch: pytest.MonkeyPatch
) -> None:
    save(root / "a" / "giant.png", 0, (60, 60, 3))
    monkeypatch.setattr("PIL.Image.MAX_IMAGE_PIXELS", 3000)
    (skipped,) = load().skipped
    assert skipped.file.endswith("giant.png")
    assert skipped.reason == "it has 3,600 pixels, more than the 3,000 that are decoded"


def test_test_pictures_that_are_trained_on_are_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for split in ("train", "test"):
        folder_of(tmp_path / "set" / split, COUNTS)
    for _ in range(2):  # the second time from the cache
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            decode(list_folder(tmp_path / "set"), tmp_path / "cache")
        assert "5 pictures to validate or test on are in train too" in caplog.text


def test_progress_goes_from_nothing_to_all(load: Callable[..., Splits]) -> None:
    calls: list[tuple[int, int]] = []
    load(on_progress=lambda done, total: calls.append((done, total)))
    assert calls == [(i, 10) for i in range(1, 11)]
    load(on_progress=lambda done, total: pytest.fail("nothing is decoded"))


@pytest.mark.parametrize("size", [0, -3, (0, 5)])
def test_impossible_sizes(load: Callable[..., Splits], size: object) -> None:
    with pytest.raises(InputError, match="size must be a number of pixels or"):
        load(size=size)


PROGRAM = """
import resource, signal, sys
from pathlib import Path
from deep_oversampling.data.pictures.decoding import decode
from deep_oversampling.data.pictures.folders import list_folder
from deep_oversampling.errors import InputError
if len(sys.argv) > 3:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]),) * 2)
try:
    print(len(decode(list_folder(sys.argv[1]), Path(sys.argv[2])).train))
except InputError as error:
    sys.exit(f"refused: {error}")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no limits on files there")
def test_a_disk_that_fills_up_is_an_error_and_leaves_nothing(root: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    command = [sys.executable, "-c", PROGRAM, str(root), str(cache), "300"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert "refused: the cache folder must be writeable and have room" in result.stderr
    assert "File too large" in result.stderr
    assert entries(cache) == []


def test_a_disk_that_is_too_small_is_known_before_decoding(
    load: Callable[..., Splits], decoded: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(9, 9, 0))
    with pytest.raises(InputError, match=r"have room, found at .* GB are needed"):
        load()
    assert decoded == []


@pytest.mark.parametrize("cache", ["/proc/nothing", "file/below"])
def test_a_folder_that_cannot_be_written(root: Path, tmp_path: Path, cache: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="the cache folder must be writeable"):
        decode(list_folder(root), tmp_path / cache)


def test_what_dead_processes_left_is_swept_away(
    load: Callable[..., Splits], tmp_path: Path
) -> None:
    names = [f"{'0' * 32}.{'1' * 8}.part", f"{'0' * 32}.{'2' * 8}.part", "holiday.part"]
    old, young, own = (tmp_path / "cache" / name for name in names)
    for part in (old, young, own):
        part.mkdir(parents=True)
        (part / "x").write_bytes(b"half")
    for path in (old, old / "x", own, own / "x"):
        os.utime(path, (0, 0))
    (tmp_path / "cache" / "download.zip.part").write_bytes(b"a file")
    load()
    assert not old.exists()
    assert young.exists()
    assert own.exists()  # not ours


@pytest.mark.slow
def test_two_processes_fill_the_cache_at_once(root: Path, tmp_path: Path) -> None:
    folder_of(root, {"c": 150, "d": 150})
    command = [sys.executable, "-c", PROGRAM, str(root), str(tmp_path / "cache")]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert [process.communicate()[0] for process in both] == ["305\n", "305\n"]
    assert len(entries(tmp_path / "cache")) == 1
