"""The official files, where DOS_DATA names a folder that has them: published counts and shapes."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from deep_oversampling.data.official.back_rotation import FINGERPRINT, load_back_rotation
from deep_oversampling.data.official.binary import load_cifar10, load_cifar100, load_stl10
from deep_oversampling.data.official.idx import load_fashion_mnist, load_mnist
from deep_oversampling.data.official.recreation import digest_of
from deep_oversampling.data.official.svhn import load_svhn
from deep_oversampling.data.splits import Splits


@dataclass(frozen=True)
class Published:
    load: Callable[[Path, Path], Splits]  # data folder, cache
    file: str  # one that is there when the set is
    shape: tuple[int, int, int]
    train: list[int]  # samples of each class
    test: list[int]


PUBLISHED = {
    "MNIST": Published(
        lambda folder, _: load_mnist(folder, full=True),
        "mnist/train-images-idx3-ubyte.gz",
        (1, 28, 28),
        [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949],
        [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009],
    ),
    "Fashion-MNIST": Published(
        lambda folder, _: load_fashion_mnist(folder, full=True),
        "fashion-mnist/train-images-idx3-ubyte.gz",
        (1, 28, 28),
        10 * [6000],
        10 * [1000],
    ),
    "SVHN": Published(
        load_svhn,
        "svhn/train_32x32.mat",
        (3, 32, 32),
        [4948, 13861, 10585, 8497, 7458, 6882, 5727, 5595, 5045, 4659],  # 73,257
        [1744, 5099, 4149, 2882, 2523, 2384, 1977, 2019, 1660, 1595],  # 26,032
    ),
    "CIFAR-10": Published(
        lambda folder, _: load_cifar10(folder),
        "cifar-10-batches-bin/test_batch.bin",
        (3, 32, 32),
        10 * [5000],
        10 * [1000],
    ),
    "CIFAR-100": Published(
        lambda folder, _: load_cifar100(folder),
        "cifar-100-binary/test.bin",
        (3, 32, 32),
        100 * [500],
        100 * [100],
    ),
    "STL-10": Published(
        lambda folder, _: load_stl10(folder),
        "stl10_binary/train_X.bin",
        (3, 96, 96),
        10 * [500],
        10 * [800],
    ),
}


def official(file: str) -> Path:
    folder = os.environ.get("DOS_DATA")
    if not folder:
        pytest.skip("DOS_DATA names no folder with official files")
    if not (Path(folder) / file).exists():
        pytest.skip(f"{file} is not in the folder that DOS_DATA names")
    return Path(folder)


@pytest.mark.parametrize("name", PUBLISHED)
def test_sets_have_their_published_counts(name: str, tmp_path: Path) -> None:
    published = PUBLISHED[name]
    splits = published.load(official(published.file), tmp_path)
    assert splits.name == name
    assert splits.validation is None
    for samples, counts in ((splits.train, published.train), (splits.test, published.test)):
        assert samples is not None
        assert samples.x.shape == (sum(counts), *published.shape)
        assert samples.class_counts.tolist() == counts


def test_the_paper_trains_on_the_first_50_000_of_mnist() -> None:
    splits = load_mnist(official(PUBLISHED["MNIST"].file))
    assert splits.validation is not None
    assert (len(splits.train), len(splits.validation)) == (50_000, 10_000)
    assert splits.train.y[:5].tolist() == [5, 0, 4, 1, 9]


def test_published_back_rotation_has_its_counts(tmp_path: Path) -> None:
    splits = load_back_rotation(official("mnist_rotation_back_image_new.zip"), tmp_path)
    assert splits.test is not None
    assert splits.train.x.shape == (12_000, 1, 28, 28)
    assert splits.test.x.shape == (50_000, 1, 28, 28)


def test_the_recreation_is_the_same_bytes_as_ever(tmp_path: Path) -> None:
    """Made from the MNIST files alone, in a folder where the authors' archive is not."""
    (tmp_path / "mnist").symlink_to(official(PUBLISHED["MNIST"].file).absolute() / "mnist")
    splits = load_back_rotation(tmp_path, tmp_path / "cache")
    parts = [part for part in (splits.train, splits.validation, splits.test) if part is not None]
    assert splits.name == "MNIST-back-rotation (re-created)"
    assert [len(part) for part in parts] == [12_000, 8_000, 50_000]
    images = np.concatenate([np.asarray(part.x) for part in parts])
    labels = np.concatenate([np.asarray(part.y, np.uint8) for part in parts])
    assert digest_of(images, labels) == FINGERPRINT
