"""MNIST-back-rotation from the authors' files, and its front door."""

import gzip
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch

from deep_oversampling import InputError
from deep_oversampling.data.official import back_rotation
from deep_oversampling.data.official.back_rotation import load_back_rotation
from test_data import idx

PUBLISHED = "mnist_all_background_images_rotation_normalized_"
TRAIN, TEST = f"{PUBLISHED}train_valid.amat", f"{PUBLISHED}test.amat"
IMAGES = np.random.default_rng(0).integers(0, 257, (3, 28, 28)) / 256


def amat(images: np.ndarray = IMAGES, labels: tuple[float, ...] = (7, 0, 9)) -> str:
    """Rows of text: an image column by column, then its label."""
    rows = images.transpose(0, 2, 1).reshape(len(images), -1)
    return "".join(
        "   " + "   ".join(f"{value:.7e}" for value in (*row, label)) + "\n"
        for row, label in zip(rows, labels, strict=True)
    )


def archive(folder: Path, train: str, test: str = amat(IMAGES[:1], (4,))) -> Path:
    with zipfile.ZipFile(
        folder / "mnist_rotation_back_image_new.zip", "w", zipfile.ZIP_DEFLATED
    ) as file:
        file.writestr(TRAIN, train)
        file.writestr(TEST, test)
    return folder


def texts(folder: Path, train: str, test: str = amat(IMAGES[:1], (4,))) -> Path:
    (folder / "mnist-back-rotation").mkdir()
    (folder / "mnist-back-rotation" / TRAIN).write_text(train)
    (folder / "mnist-back-rotation" / TEST).write_text(test)
    return folder


both = pytest.mark.parametrize("write", [archive, texts])


@both
def test_published_images_come_as_they_are(tmp_path: Path, write) -> None:
    splits = load_back_rotation(write(tmp_path, amat()), tmp_path / "cache")
    assert (splits.name, splits.validation) == ("MNIST-back-rotation", None)
    assert splits.train.x.dtype == torch.float32
    assert np.array_equal(splits.train.x, IMAGES[:, None])
    assert splits.train.y.tolist() == [7, 0, 9]
    assert splits.test is not None
    assert np.array_equal(splits.test.x, IMAGES[:1, None])
    assert splits.test.y.tolist() == [4]
    assert splits.train.classes == splits.test.classes == tuple("0123456789")


@both
def test_published_text_is_parsed_once(
    tmp_path: Path, write, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = load_back_rotation(write(tmp_path, amat()), tmp_path / "cache")
    monkeypatch.setattr("numpy.loadtxt", None)
    again = load_back_rotation(tmp_path, tmp_path / "cache")
    assert torch.equal(first.train.x, again.train.x)


def changed(row: int, column: int, value: float) -> str:
    images = IMAGES.copy()
    images[row, 0, column] = value
    return amat(images)


@both
@pytest.mark.parametrize(
    ("train", "message"),
    [
        (amat()[:-20], r"found: the number of columns changed from 785 to 784 at row 3; download"),
        (amat(IMAGES[:, :27]), "found: 3 rows of 757; download it again"),
        ("", "must hold rows of 784 values and a label, found: 0 rows of"),
        (amat().replace("e", "x", 1), "found: could not convert string '.*' to float32 at row 0"),
        (amat() + "ä", "must hold rows of 784 values and a label, found: 'ascii' codec can't"),
        (changed(1, 5, 1.5), r"found: values outside of 0 … 1 in row 1"),
        (changed(2, 5, -0.1), r"found: values outside of 0 … 1 in row 2"),
        (changed(0, 5, float("nan")), r"found: values outside of 0 … 1 in row 0"),
        (amat(labels=(7, 10, 9)), r"must hold labels 0 … 9, found 10\.0 at row 1"),
        (amat(labels=(7, 0, 0.5)), r"must hold labels 0 … 9, found 0\.5 at row 2"),
        (amat(labels=(float("nan"), 0, 1)), r"must hold labels 0 … 9, found nan at row 0"),
    ],
    ids=["cut", "narrow", "empty", "text", "code", "high", "low", "nan", "10", "half", "no label"],
)
def test_rows_that_do_not_fit_are_refused(tmp_path: Path, write, train: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        load_back_rotation(write(tmp_path, train), tmp_path / "cache")
    assert TRAIN in str(caught.value)
    assert not list((tmp_path / "cache").iterdir())


@pytest.mark.parametrize("keep", [0, 100, -10], ids=["empty", "start", "most"])
def test_a_truncated_archive_is_refused(tmp_path: Path, keep: int) -> None:
    file = archive(tmp_path, amat()) / "mnist_rotation_back_image_new.zip"
    file.write_bytes(file.read_bytes()[:keep])
    expected = rf"new\.zip.{TRAIN} must hold rows .* found: File is not a zip file; download it"
    with pytest.raises(InputError, match=expected):
        load_back_rotation(tmp_path, tmp_path / "cache")


def test_a_damaged_archive_is_refused(tmp_path: Path) -> None:
    file = archive(tmp_path, amat()) / "mnist_rotation_back_image_new.zip"
    content = bytearray(file.read_bytes())
    content[1000:1100] = bytes(100)
    file.write_bytes(content)
    with pytest.raises(InputError, match=rf"new\.zip.{TRAIN} must hold rows of 784 values"):
        load_back_rotation(tmp_path, tmp_path / "cache")


def test_an_archive_without_its_members_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "mnist_rotation_back_image_new.zip", "w") as file:
        file.writestr(TRAIN, amat())
        file.writestr("notes.txt", "")
    expected = rf"new\.zip must hold {TEST}, found {TRAIN}, notes\.txt; download it again"
    with pytest.raises(InputError, match=expected):
        load_back_rotation(tmp_path, tmp_path / "cache")


def test_one_text_without_the_other_is_refused(tmp_path: Path) -> None:
    (texts(tmp_path, amat()) / "mnist-back-rotation" / TEST).unlink()
    with pytest.raises(InputError, match=rf"must have the file .*{TEST}, found none"):
        load_back_rotation(tmp_path, tmp_path / "cache")


@pytest.fixture
def mnist(tmp_path: Path) -> Path:
    """Nine digits to train and six to test."""
    draw = np.random.default_rng(1)
    (tmp_path / "mnist").mkdir()
    for part, m in (("train", 9), ("t10k", 6)):
        images = draw.integers(0, 256, (m, 28, 28), np.uint8)
        labels = draw.integers(0, 10, m, np.uint8)
        for kind, array in (("images-idx3", images), ("labels-idx1", labels)):
            path = tmp_path / "mnist" / f"{part}-{kind}-ubyte.gz"
            path.write_bytes(gzip.compress(idx(array)))
    return tmp_path


def test_without_them_the_set_is_made_anew(mnist: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(back_rotation, "_SIZES", {"train": 7, "validation": 3, "test": 5})
    cache = mnist / "cache"
    splits, other = (load_back_rotation(mnist, cache, seed) for seed in (2007, 1))
    assert splits.name == "MNIST-back-rotation (re-created)"
    for part, size in ((splits.train, 7), (splits.validation, 3), (splits.test, 5)):
        assert part is not None
        assert part.x.shape == (size, 1, 28, 28)
        assert part.x.dtype == torch.uint8
        assert part.n == 10
    assert not torch.equal(splits.train.x, other.train.x)
    monkeypatch.setattr(back_rotation, "recreated", None)  # once is enough
    assert torch.equal(load_back_rotation(mnist, cache).train.x, splits.train.x)


def test_it_takes_all_of_mnist(mnist: Path) -> None:
    expected = (
        r"MNIST must have 70,000 images of 28 × 28 to make the set anew, found shape "
        r"\(15, 1, 28, 28\) in .*mnist; take the official files"
    )
    with pytest.raises(InputError, match=expected):
        load_back_rotation(mnist, mnist / "cache")


def test_neither_of_the_two_sources(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"must have the file .*train-images-idx3-ubyte\.gz"):
        load_back_rotation(tmp_path, tmp_path / "cache")
