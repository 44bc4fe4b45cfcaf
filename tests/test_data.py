"""Files in, samples out."""

import gzip
from pathlib import Path

import numpy as np
import pytest
import torch

from deep_oversampling import InputError
from deep_oversampling.data.official.idx import load_fashion_mnist, load_mnist, read_idx


def idx(array: np.ndarray) -> bytes:
    sizes = b"".join(size.to_bytes(4) for size in array.shape)
    return bytes([0, 0, 8, array.ndim]) + sizes + array.tobytes()


IMAGES = np.arange(3 * 28 * 28).reshape(3, 28, 28).astype(np.uint8)


@pytest.mark.parametrize("array", [IMAGES, IMAGES[0, 0], IMAGES[:0]], ids=["images", "row", "none"])
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_idx_files_are_read_back(tmp_path: Path, array: np.ndarray, suffix: str) -> None:
    path = tmp_path / f"file{suffix}"
    path.write_bytes(gzip.compress(idx(array)) if suffix else idx(array))
    found = read_idx(path)
    assert np.array_equal(found, array)
    assert found.dtype == np.uint8
    assert found.flags.writeable


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (idx(IMAGES)[:-1], r"must hold 2368 bytes by its header, found 2367; the file is cut off"),
        (idx(IMAGES) + b"\0", "must hold 2368 bytes by its header, found 2369"),
        (idx(IMAGES)[:7], "by its header, found 7"),
        (b"\0\0\x0d" + idx(IMAGES)[3:], "must start with the idx magic number of unsigned bytes"),
        (b"not an idx file", "must start with the idx magic number"),
        (b"", "must start with the idx magic number"),
    ],
    ids=["short", "long", "short header", "floats", "text", "empty"],
)
def test_damaged_idx_files_are_refused(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        read_idx(path)
    assert str(path) in str(caught.value)


def damaged(content: bytes) -> bytes:
    return content[:14] + bytes(255 - byte for byte in content[14:17]) + content[17:]


@pytest.mark.parametrize(
    "content",
    [
        b"not gzipped",
        gzip.compress(idx(IMAGES))[:40],
        gzip.compress(idx(IMAGES))[:-8] + bytes(8),
        damaged(gzip.compress(bytes([0, 0, 8, 1, 0, 0, 1, 0]) + 128 * b"ab")),
    ],
    ids=["not gzip", "cut off", "checksum", "stream"],
)
def test_damaged_gzip_files_are_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "file.gz"
    path.write_bytes(content)
    with pytest.raises(InputError, match="must be a readable idx file"):
        read_idx(path)


def test_gzip_files_may_have_several_members(tmp_path: Path) -> None:
    content = idx(IMAGES)
    (tmp_path / "file.gz").write_bytes(gzip.compress(content[:99]) + gzip.compress(content[99:]))
    assert np.array_equal(read_idx(tmp_path / "file.gz"), IMAGES)


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"nowhere\.gz must be a readable idx file: .*No such file"
    ):
        read_idx(tmp_path / "nowhere.gz")


HELD = 10_000  # validate
PIXELS = np.arange(4 * (HELD + 3)).reshape(-1, 2, 2).astype(np.uint8)
LABELS = (np.arange(HELD + 3) % 10).astype(np.uint8)
LOADERS = {"mnist": load_mnist, "fashion-mnist": load_fashion_mnist}


def write_mnist(folder: Path, name: str = "mnist", suffix: str = "", **changed: np.ndarray) -> Path:
    """The four files: three images to train beside those that validate, two to test."""
    arrays = {
        "train_images_idx3": PIXELS,
        "train_labels_idx1": LABELS,
        "t10k_images_idx3": PIXELS[:2],
        "t10k_labels_idx1": LABELS[:2],
    } | changed
    (folder / name).mkdir(exist_ok=True)
    for kind, array in arrays.items():
        content = gzip.compress(idx(array), 1) if suffix else idx(array)
        (folder / name / f"{kind.replace('_', '-')}-ubyte{suffix}").write_bytes(content)
    return folder


@pytest.mark.parametrize("name", LOADERS)
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_the_last_10_000_of_the_training_file_validate(
    tmp_path: Path, name: str, suffix: str
) -> None:
    splits = LOADERS[name](write_mnist(tmp_path, name, suffix))
    for part, rows in (
        (splits.train, slice(3)),
        (splits.validation, slice(3, None)),
        (splits.test, slice(2)),
    ):
        assert part is not None
        assert part.x.dtype == torch.uint8
        assert np.array_equal(part.x, PIXELS[rows, None])
        assert part.y.tolist() == LABELS[rows].tolist()
        assert part.n == 10


@pytest.mark.parametrize("name", LOADERS)
def test_all_of_the_training_file_may_train(tmp_path: Path, name: str) -> None:
    splits = LOADERS[name](write_mnist(tmp_path, name), full=True)
    assert len(splits.train) == HELD + 3
    assert splits.validation is None


def test_sets_and_classes_are_named(tmp_path: Path) -> None:
    digits = load_mnist(write_mnist(tmp_path), full=True)
    garments = load_fashion_mnist(write_mnist(tmp_path, "fashion-mnist"), full=True)
    assert digits.name == "MNIST"
    assert digits.train.classes == tuple("0123456789")
    assert garments.name == "Fashion-MNIST"
    assert garments.train.classes[0] == "T-shirt/top"
    assert garments.train.classes[9] == "Ankle boot"


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"train_images_idx3": PIXELS[:-1]},
            "train-images-idx3-ubyte and .*train-labels-idx1-ubyte must hold one label per image, "
            "found 10002 images and 10003 labels; take both from the same release",
        ),
        (
            {"t10k_labels_idx1": np.array([3, 10], np.uint8)},
            "t10k-labels-idx1-ubyte must hold labels 0 … 9, found 10 at row 1; the file is damaged",
        ),
        (
            {"t10k_images_idx3": LABELS[:2]},
            "t10k-images-idx3-ubyte must have 3 axes, found 1; images and labels may have changed",
        ),
        (
            {"train_images_idx3": PIXELS[:HELD], "train_labels_idx1": LABELS[:HELD]},
            "train-images-idx3-ubyte must hold more than the 10,000 images that validate, found "
            r"10000; take the official file, or all of it to train \(full=True\)",
        ),
    ],
    ids=["counts", "labels", "axes", "few"],
)
def test_mnist_files_that_do_not_fit_are_refused(
    tmp_path: Path, changed: dict[str, np.ndarray], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        load_mnist(write_mnist(tmp_path, **changed))


def test_a_missing_mnist_file_is_named(tmp_path: Path) -> None:
    expected = (
        r"must have the file .*mnist.train-images-idx3-ubyte\.gz or .*train-images-idx3-ubyte, "
        "found none; 'dos data fetch' brings it, or name the folder that has it"
    )
    with pytest.raises(InputError, match=expected):
        load_mnist(tmp_path)
