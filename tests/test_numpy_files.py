"""Arrays on disk: pairs and splits, any axis order, nothing pickled, nothing copied."""

import pickle
from pathlib import Path

import numpy as np
import pytest
import torch

from deep_oversampling import InputError
from deep_oversampling.data.numpy_files import load_numpy
from deep_oversampling.views import View

X = np.arange(5 * 2 * 3 * 3, dtype=np.uint8).reshape(5, 2, 3, 3)  # (m, h, w, c)
Y = np.array([3, 1, 3, 1, 1])


def test_an_npz_pair(tmp_path: Path) -> None:
    np.savez(tmp_path / "set.npz", X=X, y=Y)
    splits = load_numpy(tmp_path / "set.npz")
    assert splits.name == "set"
    assert splits.train.classes == ("1", "3")
    assert splits.train.y.tolist() == [1, 0, 1, 0, 0]
    assert splits.train.x.shape == (5, 3, 2, 3)
    assert np.array_equal(splits.train.x[:], X.transpose(0, 3, 1, 2))


def test_an_npz_with_splits(tmp_path: Path) -> None:
    parts = {"x_train": X, "y_train": Y, "x_test": X[:2], "y_test": Y[:2]}
    np.savez_compressed(tmp_path / "set.npz", **parts, x_valid=X[1:], y_valid=Y[1:])
    splits = load_numpy(tmp_path / "set.npz")
    assert splits.validation is not None
    assert splits.test is not None
    assert (len(splits.train), len(splits.validation), len(splits.test)) == (5, 4, 2)


@pytest.mark.parametrize("given", ["x.npy", "y.npy", "."])
def test_npy_files_stay_on_disk(tmp_path: Path, given: str) -> None:
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "y.npy", np.array(["b", "a", "b", "a", "a"]))
    train = load_numpy(tmp_path / given).train
    assert isinstance(train.x, View)
    assert train.labels.tolist() == ["b", "a", "b", "a", "a"]
    with (tmp_path / "x.npy").open("r+b") as file:  # what changes on disk changes here
        file.seek(-1, 2)
        file.write(b"\xff")
    assert int(train.x[-1][2, 1, 2]) == 255
    assert np.array_equal(train.x[:4], X[:4].transpose(0, 3, 1, 2))


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((4, 7), (4, 7)),
        ((4, 5, 5), (4, 1, 5, 5)),
        ((4, 5, 6, 3), (4, 3, 5, 6)),
        ((4, 3, 5, 6), (4, 3, 5, 6)),
        ((4, 1, 5, 3), (4, 1, 5, 3)),
    ],
)
def test_axes(tmp_path: Path, shape: tuple[int, ...], expected: tuple[int, ...]) -> None:
    np.savez(tmp_path / "set.npz", x=np.zeros(shape, np.float32), y=[0, 1, 0, 1])
    x = load_numpy(tmp_path / "set.npz").train.x
    assert x.shape == expected
    assert x.dtype == torch.float32


def test_labels_in_bytes_are_text(tmp_path: Path) -> None:
    np.savez(tmp_path / "set.npz", x=X, y=np.array([b"cat", b"dog", b"cat", b"dog", b"dog"]))
    assert load_numpy(tmp_path / "set.npz").train.classes == ("cat", "dog")


def test_other_arrays_are_named_and_not_used(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    np.savez(tmp_path / "set.npz", x=X, y=Y, names=np.array(["a", "b"]))
    load_numpy(tmp_path / "set.npz")
    assert "the array names is not used" in caplog.text


def test_bad_archives(tmp_path: Path) -> None:
    np.savez(tmp_path / "set.npz", x=X, y=Y)
    content = (tmp_path / "set.npz").read_bytes()
    np.save(tmp_path / "x.npy", X)
    array = (tmp_path / "x.npy").read_bytes()
    for name, bad in [
        ("cut.npz", content[:200]),
        ("text.npz", b"no archive"),
        ("empty.npz", b""),
        ("array.npz", array),
    ]:
        (tmp_path / name).write_bytes(bad)
        with pytest.raises(InputError, match=rf"{name} must be a readable .npz file"):
            load_numpy(tmp_path / name)
    with pytest.raises(InputError, match=r"missing\.npz must be a readable"):
        load_numpy(tmp_path / "missing.npz")


class Evil:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return (pytest.fail, ("a pickle was loaded",))


def test_pickles_are_not_loaded(tmp_path: Path) -> None:
    np.savez(tmp_path / "set.npz", x=X, y=np.array([Evil()] * 5, object))
    with pytest.raises(InputError, match="plain arrays: Object arrays cannot be loaded"):
        load_numpy(tmp_path / "set.npz")
    (tmp_path / "x.npy").write_bytes(pickle.dumps(Evil()))
    with pytest.raises(InputError, match=r"x\.npy must be a readable \.npy file"):
        load_numpy(tmp_path / "x.npy")


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"a": X, "b": Y}, "must hold the arrays x and y, .* found 'a', 'b'"),
        ({"x": X, "y": Y, "x_test": X}, "and so on in pairs, found 'x', 'y', 'x_test'"),
        ({"x": X, "y": Y, "x_train": X, "y_train": Y}, "must have one x to train on, found two"),
        ({"x": X, "X": X, "y": Y}, "must have one x to train on, found two"),
        ({"x": X, "y": Y.astype(float)}, "one label per sample, numbers or text, .* float64"),
        ({"x": X, "y": Y[:, None]}, r"one label per sample, .* found shape \(5, 1\)"),
        ({"x": X, "y": Y[:3]}, "found 5 samples and 3 labels"),
        (
            {"x_train": X, "y_train": Y, "x_test": X[:1], "y_test": [8]},
            r"found none of \[8\], which test has",
        ),
    ],
)
def test_bad_arrays(tmp_path: Path, arrays: dict[str, object], message: str) -> None:
    np.savez(tmp_path / "set.npz", **arrays)
    with pytest.raises(InputError, match=message):
        load_numpy(tmp_path / "set.npz")
