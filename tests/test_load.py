"""The front door: names, folders, manifests, arrays; and the folders that options name."""

from pathlib import Path

import numpy as np
import pytest

from deep_oversampling import InputError
from deep_oversampling.data import load
from deep_oversampling.data.cache import cache_folder, data_folder
from deep_oversampling.data.load import NAMES, check_size
from deep_oversampling.data.official.catalogue import CATALOGUE
from picture_files import folder_of


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("DOS_DATA", str(tmp_path / "data"))


def test_every_set_of_the_catalogue_can_be_loaded_by_name() -> None:
    assert set(CATALOGUE) <= set(NAMES)


@pytest.mark.parametrize("name", sorted(set(NAMES) - {"digits"}))
def test_missing_files_are_named(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=rf"must have the file {tmp_path}.data.*'dos data fetch'"):
        load(name)


def test_digits_come_with_scikit_learn() -> None:
    splits = load("digits")
    assert splits.train.x.shape == (1797, 1, 8, 8)
    assert int(splits.train.x.max()) == 240


def test_a_folder_a_manifest_and_arrays_give_the_same(tmp_path: Path) -> None:
    root = folder_of(tmp_path / "set", {"a": 2, "b": 3})
    folder = load(root).train
    lines = [f"{f.relative_to(root)},{f.parent.name}" for f in sorted(root.rglob("*.png"))]
    (root / "list.csv").write_text("path,label\n" + "\n".join(lines))
    manifest = load(str(root / "list.csv")).train
    np.savez(tmp_path / "set.npz", x=folder.x[:].numpy(), y=folder.labels)
    arrays = load(tmp_path / "set.npz").train
    for other in (manifest, arrays):
        assert np.array_equal(other.x[:], folder.x[:])
        assert other.labels.tolist() == folder.labels.tolist()


def test_a_folder_of_arrays(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros((4, 3)))
    np.save(tmp_path / "y.npy", [0, 1, 0, 1])
    assert load(tmp_path).train.x.shape == (4, 3)


def test_arrays_among_pictures_do_not_make_them_arrays(tmp_path: Path) -> None:
    root = folder_of(tmp_path / "set", {"a": 2, "b": 3})
    np.save(root / "embeddings.npy", np.zeros(3))
    assert len(load(root).train) == 5


def test_a_path_with_the_name_of_a_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert len(load(Path("digits")).train) == 1797
    folder_of(tmp_path / "digits", {"a": 2, "b": 3})
    assert len(load(Path("digits")).train) == 5
    assert len(load("./digits").train) == 5
    assert len(load("digits").train) == 1797


@pytest.mark.parametrize("source", ["digits", "set.npz", "pictures"])
def test_what_is_stored_keeps_its_size(
    source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder_of(tmp_path / "pictures", {"a": 2, "b": 3}, (12, 12))
    np.savez("set.npz", x=np.zeros((4, 1, 8, 8), np.uint8), y=[0, 1, 0, 1])
    for size in (None, 8):
        check_size(load(source, size=size), size)
    splits = load(source, size=9)
    if source == "pictures":
        check_size(splits, 9)
    else:
        with pytest.raises(InputError, match=r"size must be left out .* shape \(1, 8, 8\)"):
            check_size(splits, 9)


def test_options_reach_the_pictures(tmp_path: Path) -> None:
    root = folder_of(tmp_path / "set", {"a": 2, "b": 3})
    seen: list[int] = []
    splits = load(root, size=4, grey=True, on_progress=lambda done, total: seen.append(done))
    assert splits.train.x.shape == (5, 1, 4, 4)
    assert seen[-1] == 10
    (root / "a" / "0.png").write_text("nonsense")
    assert len(load(root).skipped) == 1
    with pytest.raises(InputError, match="every picture must be readable"):
        load(root, strict=True)


def test_what_is_neither_a_name_nor_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"found no 'Cifar_10'; did you mean 'cifar10'\?"):
        load("Cifar_10")
    with pytest.raises(InputError, match=r"must be the name of a set .* or a path, found no"):
        load(tmp_path / "nothing")


@pytest.mark.parametrize("source", ["", "x" * 300, "~nobody-of-that-name/x", "a\0b"])
def test_impossible_paths(source: str) -> None:
    with pytest.raises(InputError, match="must be the name of a set"):
        load(source)


@pytest.mark.parametrize("source", [None, 3, ["a"], np.zeros(3)])
def test_what_is_no_path(source: object) -> None:
    with pytest.raises(InputError, match=r"must be a name or a path, found .*from_dataset takes"):
        load(source)  # type: ignore[arg-type]


def test_a_file_of_another_kind(tmp_path: Path) -> None:
    (tmp_path / "x.png").write_bytes(b"")
    with pytest.raises(InputError, match=r"must end in .csv, .npy, .npz, .parquet, .tsv, found"):
        load(tmp_path / "x.png")


def test_folders_by_argument_by_variable_by_platform(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert data_folder() == tmp_path / "data"
    assert cache_folder() == tmp_path / "cache"
    assert data_folder("~/sets") == Path.home() / "sets"
    monkeypatch.delenv("DOS_DATA")
    monkeypatch.delenv("DOS_CACHE")
    assert data_folder().parts[-2:] == ("deep-oversampling", "data")
    assert cache_folder().parts[-2:] == ("deep-oversampling", "decoded")
