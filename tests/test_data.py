"""Files in, samples out; and the paper's way to make data imbalanced."""

import gzip
from pathlib import Path

import numpy as np
import pytest
import torch

from deep_oversampling import InputError, Samples
from deep_oversampling.data.idx import load_mnist, read_idx
from deep_oversampling.data.imbalance import drop_from_classes
from toy import blobs, generator


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


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"nowhere\.gz must be a readable idx file: .*No such file"
    ):
        read_idx(tmp_path / "nowhere.gz")


@pytest.fixture
def mnist(tmp_path: Path) -> Path:
    for prefix, m in (("train", 3), ("t10k", 2)):
        for kind, array in (("images-idx3", IMAGES[:m]), ("labels-idx1", np.arange(m) + 5)):
            content = gzip.compress(idx(array.astype(np.uint8)))
            (tmp_path / f"{prefix}-{kind}-ubyte.gz").write_bytes(content)
    return tmp_path


@pytest.mark.parametrize(("split", "m"), [("train", 3), ("test", 2)])
def test_mnist_is_bytes_in_one_channel_of_ten_classes(mnist: Path, split: str, m: int) -> None:
    samples = load_mnist(mnist, split)
    assert samples.x.shape == (m, 1, 28, 28)
    assert samples.x.dtype == torch.uint8
    assert np.array_equal(samples.x[:, 0], IMAGES[:m])
    assert samples.y.tolist() == list(range(5, 5 + m))
    assert samples.classes == tuple("0123456789")


def test_unknown_split_is_refused(mnist: Path) -> None:
    with pytest.raises(InputError, match=r"train.*test.*found 'valid'"):
        load_mnist(mnist, "valid")


COUNTS = [50, 40, 30, 20, 10]


@pytest.mark.parametrize("p", [0.0, 0.5, 0.9, 0.999])
@pytest.mark.parametrize("classes", [1, 4])
def test_the_share_p_of_some_classes_is_dropped(p: float, classes: int) -> None:
    samples = blobs(COUNTS)
    kept, reduced = drop_from_classes(samples, p, generator=generator(), classes=classes)
    assert len(set(reduced)) == classes
    assert kept.tolist() == sorted(set(kept.tolist()))
    for j, (before, after) in enumerate(
        zip(COUNTS, samples[kept].class_counts.tolist(), strict=True)
    ):
        if j in reduced:
            assert after >= 1  # no class disappears
            assert abs(after - max(1, before * (1 - p))) <= 0.5
        else:
            assert after == before


def test_what_is_dropped_depends_on_the_generator_alone() -> None:
    samples = blobs(COUNTS)
    first, again, other = (
        drop_from_classes(samples, 0.5, generator=generator(seed), classes=2) for seed in (0, 0, 1)
    )
    assert torch.equal(first[0], again[0])
    assert first[1] == again[1]
    assert not torch.equal(first[0], other[0])


@pytest.mark.parametrize(
    ("p", "classes"), [(1.0, 2), (-0.1, 2), (float("nan"), 2), (0.5, 0), (0.5, 5)]
)
def test_shares_and_numbers_out_of_range_are_refused(p: float, classes: int) -> None:
    expected = rf"p must lie in \[0, 1\) and classes in 1 … 4, found p={p}, classes={classes}"
    with pytest.raises(InputError, match=expected):
        drop_from_classes(blobs(COUNTS), p, generator=generator(), classes=classes)


def test_samples_without_images_are_dropped_alike() -> None:
    """Only labels decide: the storage of x plays no part."""
    y = blobs(COUNTS).y
    bytes_ = Samples(torch.zeros(len(y), 1, 2, 2, dtype=torch.uint8), y)
    first, second = (
        drop_from_classes(s, 0.9, generator=generator())[0] for s in (bytes_, blobs(COUNTS))
    )
    assert torch.equal(first, second)
