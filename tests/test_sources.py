"""Official files in, samples out: the binary releases and SVHN, written small by the tests."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.io import savemat

from deep_oversampling import InputError, Samples
from deep_oversampling.data.official.binary import load_cifar10, load_cifar100, load_stl10
from deep_oversampling.data.official.svhn import load_svhn
from deep_oversampling.data.seal import seal
from deep_oversampling.data.splits import Splits


def pictures(m: int, side: int, seed: int = 0) -> np.ndarray:  # (m, 3, side, side)
    return np.random.default_rng(seed).integers(0, 256, (m, 3, side, side), np.uint8)


def same(samples: Samples, x: np.ndarray, y: list[int]) -> None:
    assert samples.x.dtype == torch.uint8
    assert np.array_equal(samples.x, x)
    assert samples.y.tolist() == y


def write_cifar(file: Path, x: np.ndarray, *labels: list[int]) -> None:
    file.parent.mkdir(exist_ok=True)
    columns = np.array(labels, np.uint8).T  # (m, label bytes)
    file.write_bytes(np.hstack([columns, x.reshape(len(x), -1)]).tobytes())


def cifar10(folder: Path, label: int = 9) -> Path:
    for i in range(1, 6):
        write_cifar(
            folder / f"cifar-10-batches-bin/data_batch_{i}.bin", pictures(2, 32, i), [i, label]
        )
    write_cifar(folder / "cifar-10-batches-bin/test_batch.bin", pictures(3, 32), [0, 1, 2])
    return folder


def cifar100(folder: Path, label: int = 99) -> Path:
    write_cifar(folder / "cifar-100-binary/train.bin", pictures(2, 32, 1), [19, 0], [7, label])
    write_cifar(folder / "cifar-100-binary/test.bin", pictures(1, 32), [4], [5])
    return folder


def stl10(folder: Path, label: int = 10, labels: int = 2) -> Path:
    root = folder / "stl10_binary"
    root.mkdir()
    for part, m in (("train", 2), ("test", 1)):
        columns = pictures(m, 96).transpose(0, 1, 3, 2)  # the official order
        (root / f"{part}_X.bin").write_bytes(columns.tobytes())
        (root / f"{part}_y.bin").write_bytes(bytes([label, 1][: min(m, labels)]))
    return folder


def test_cifar10_is_five_batches_one_after_the_other(tmp_path: Path) -> None:
    splits = load_cifar10(cifar10(tmp_path))
    x = np.concatenate([pictures(2, 32, i) for i in range(1, 6)])
    same(splits.train, x, [1, 9, 2, 9, 3, 9, 4, 9, 5, 9])
    assert splits.test is not None
    same(splits.test, pictures(3, 32), [0, 1, 2])
    assert (splits.name, splits.validation) == ("CIFAR-10", None)
    assert splits.train.classes[1] == "automobile"
    assert splits.train.n == 10


def test_cifar100_has_its_fine_labels(tmp_path: Path) -> None:
    splits = load_cifar100(cifar100(tmp_path))
    same(splits.train, pictures(2, 32, 1), [7, 99])
    assert splits.test is not None
    same(splits.test, pictures(1, 32), [5])
    names = splits.train.classes
    assert (splits.name, len(names), len(set(names))) == ("CIFAR-100", 100, 100)
    assert list(names) == sorted(names)
    assert (names[1], names[99]) == ("aquarium_fish", "worm")


def test_stl10_is_turned_upright(tmp_path: Path) -> None:
    splits = load_stl10(stl10(tmp_path))
    same(splits.train, pictures(2, 96), [9, 0])
    assert splits.test is not None
    same(splits.test, pictures(1, 96), [9])
    assert (splits.name, splits.train.classes[7]) == ("STL-10", "monkey")


@pytest.mark.parametrize(
    ("load", "write", "file", "message"),
    [
        (
            load_cifar10,
            lambda folder: cifar10(folder, 10),
            "data_batch_1.bin",
            "must hold labels 0 … 9, found 10 at row 1; the file is damaged or of another set",
        ),
        (
            load_cifar100,
            lambda folder: cifar100(folder, 100),
            "train.bin",
            "must hold labels 0 … 99, found 100 at row 1",
        ),
        (
            load_stl10,
            lambda folder: stl10(folder, 0),
            "train_y.bin",
            "must hold labels 1 … 10, found 0 at row 0",
        ),
        (
            load_stl10,
            lambda folder: stl10(folder, labels=1),
            "train_y.bin",
            "must hold one label per image, found 2 images and 1 labels; take both from the same",
        ),
    ],
    ids=["cifar10", "cifar100", "stl10", "counts"],
)
def test_labels_that_do_not_fit_are_refused(
    tmp_path: Path,
    load: Callable[[Path], Splits],
    write: Callable[[Path], Path],
    file: str,
    message: str,
) -> None:
    with pytest.raises(InputError, match=rf"{file} {message}"):
        load(write(tmp_path))


@pytest.mark.parametrize("cut", [0, 1, 3000], ids=["empty", "one byte", "short"])
@pytest.mark.parametrize(
    ("load", "write", "file", "size"),
    [
        (load_cifar10, cifar10, "cifar-10-batches-bin/data_batch_4.bin", 3073),
        (load_cifar100, cifar100, "cifar-100-binary/test.bin", 3074),
        (load_stl10, stl10, "stl10_binary/test_X.bin", 27648),
    ],
    ids=["cifar10", "cifar100", "stl10"],
)
def test_files_of_a_wrong_size_are_refused(
    tmp_path: Path,
    load: Callable[[Path], Splits],
    write: Callable[[Path], Path],
    file: str,
    size: int,
    cut: int,
) -> None:
    path = write(tmp_path) / file
    path.write_bytes(path.read_bytes()[:cut])
    expected = (
        rf"{path.name} must hold whole records of {size} bytes, found {cut} bytes; the file is "
        "cut off or another one, download it again"
    )
    with pytest.raises(InputError, match=expected):
        load(tmp_path)


@pytest.mark.parametrize("load", [load_cifar10, load_cifar100, load_stl10])
def test_missing_files_are_named(tmp_path: Path, load: Callable[[Path], Splits]) -> None:
    with pytest.raises(
        InputError, match=r"must have the file .*\.bin, found none; 'dos data fetch'"
    ):
        load(tmp_path)


def svhn_x(m: int) -> np.ndarray:  # (32, 32, 3, m)
    return pictures(m, 32).transpose(2, 3, 1, 0)


def svhn(folder: Path, **changed: Any) -> Path:
    (folder / "svhn").mkdir(exist_ok=True)
    for part, m in (("train", 3), ("test", 2)):
        file = {"X": svhn_x(m), "y": np.array([[10], [1], [9]], np.uint8)[:m]}
        found = {key: value for key, value in (file | changed).items() if value is not None}
        savemat(folder / "svhn" / f"{part}_32x32.mat", found, do_compression=True)
    return folder


def test_svhn_calls_its_zeros_ten(tmp_path: Path) -> None:
    splits = load_svhn(svhn(tmp_path), tmp_path / "cache")
    same(splits.train, pictures(3, 32), [0, 1, 9])
    assert splits.test is not None
    same(splits.test, pictures(2, 32), [0, 1])
    assert (splits.name, splits.validation) == ("SVHN", None)
    assert splits.train.classes == tuple("0123456789")


def test_svhn_is_decoded_once_and_again_when_the_file_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache"
    first = load_svhn(svhn(tmp_path), cache)
    with monkeypatch.context() as patch:
        patch.setattr("deep_oversampling.data.official.svhn.read_arrays", None)
        again = load_svhn(tmp_path, cache)
    assert torch.equal(first.train.y, again.train.y)
    changed = load_svhn(svhn(tmp_path, X=svhn_x(1), y=np.array([[2]])), cache)
    assert changed.train.y.tolist() == [2]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"X": None}, "must hold the variables X and y, found y; take the cropped digits"),
        ({"y": None, "digitStruct": 1}, "must hold the variables X and y, found X, digitStruct; "),
        (
            {"X": svhn_x(3)[:28]},
            r"must hold X of bytes and of shape \(32, 32, 3, m\), found uint8 of shape "
            r"\(28, 32, 3, 3\)",
        ),
        ({"X": svhn_x(3) / 255}, r"found float64 of shape \(32, 32, 3, 3\); take the official"),
        ({"X": svhn_x(3)[..., 0]}, r"found uint8 of shape \(32, 32, 3\)"),
        (
            {"y": np.ones((3, 2), int)},
            r"must hold y of integers and of shape \(m, 1\), found int64 of shape \(3, 2\)",
        ),
        ({"y": np.full((3, 1), 0.5)}, r"found float64 of shape \(3, 1\); take the official file"),
        ({"y": np.ones((4, 1), int)}, "must hold one label per image, found 3 images and 4 labels"),
        ({"y": np.array([[1], [11], [1]])}, "must hold labels 1 … 10, found 11 at row 1"),
        ({"y": np.array([[1], [1], [0]])}, "must hold labels 1 … 10, found 0 at row 2"),
    ],
    ids=["no X", "no y", "size", "floats", "axes", "y axes", "y floats", "counts", "11", "0"],
)
def test_svhn_files_that_do_not_fit_are_refused(
    tmp_path: Path, changed: dict[str, Any], message: str
) -> None:
    cache = tmp_path / "cache"
    with pytest.raises(InputError, match=rf"train_32x32\.mat .*{message}"):
        load_svhn(svhn(tmp_path, **changed), cache)
    assert not list(cache.iterdir())  # nothing half-done is left


@pytest.mark.parametrize("keep", [0, 20, 200, -1000], ids=["empty", "head", "start", "most"])
def test_files_that_are_not_mat_files_are_refused(tmp_path: Path, keep: int) -> None:
    file = svhn(tmp_path) / "svhn/train_32x32.mat"
    file.write_bytes(file.read_bytes()[:keep])
    with pytest.raises(
        InputError, match=r"train_32x32\.mat must be a readable \.mat file, found: .+; download it"
    ):
        load_svhn(tmp_path, tmp_path / "cache")


def test_text_is_not_a_mat_file(tmp_path: Path) -> None:
    file = svhn(tmp_path) / "svhn/test_32x32.mat"
    file.write_text("<html>not found</html>" * 100)
    with pytest.raises(InputError, match=r"test_32x32\.mat must be a readable \.mat file"):
        load_svhn(tmp_path, tmp_path / "cache")


def test_a_missing_mat_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"must have the file .*train_32x32\.mat, found none"):
        load_svhn(tmp_path, tmp_path / "cache")


def test_what_is_kept_on_disk_may_be_changed_in_memory(tmp_path: Path) -> None:
    svhn(tmp_path)
    first = load_svhn(tmp_path, tmp_path / "cache").train.x
    expected = first.clone()
    first.zero_()  # of a read-only mapping this would be the end of the process
    assert torch.equal(load_svhn(tmp_path, tmp_path / "cache").train.x, expected)


@pytest.mark.parametrize("harm", ["gone", "cut off"])
def test_a_damaged_cache_is_made_again(
    tmp_path: Path, harm: str, caplog: pytest.LogCaptureFixture
) -> None:
    svhn(tmp_path)
    expected = load_svhn(tmp_path, tmp_path / "cache").train.x.clone()
    path = next((tmp_path / "cache").glob("*/train-x.npy"))
    content = path.read_bytes()
    path.unlink()
    if harm == "cut off":
        path.write_bytes(content[:-100])
    assert torch.equal(load_svhn(tmp_path, tmp_path / "cache").train.x, expected)
    assert "train-x.npy is not as it was written" in caplog.text


def test_arrays_that_are_sealed_and_wrong_are_named(tmp_path: Path) -> None:
    svhn(tmp_path)
    load_svhn(tmp_path, tmp_path / "cache")
    path = next((tmp_path / "cache").glob("*/train-x.npy"))
    path.write_bytes(path.read_bytes()[:-100])  # a map of what is promised would end the process
    seal(path.parent, path.parent.name)
    with pytest.raises(InputError, match=r"damaged: .*; delete that folder, and it is decoded"):
        load_svhn(tmp_path, tmp_path / "cache")
