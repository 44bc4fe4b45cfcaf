"""𝒳 at the door: what is taken, in which type it is kept, and what is refused in words."""

import numpy as np
import pytest
import torch

from deep_oversampling import DOSError, InputError, Samples

X = torch.arange(12.0).view(4, 3)
Y = [0, 1, 1, 2]


@pytest.mark.parametrize(
    "convert", [torch.as_tensor, np.asarray, lambda v: torch.as_tensor(v).tolist()]
)
def test_tensors_arrays_and_lists_are_taken(convert) -> None:
    samples = Samples(convert(X), convert(Y))
    assert torch.equal(samples.x.float(), X)
    assert samples.y.tolist() == Y
    assert samples.y.dtype == torch.long


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.float16, np.float32, np.float64])
def test_storage_type_is_kept(dtype: type) -> None:
    array = np.zeros((4, 3), dtype)
    assert Samples(array, Y).x.numpy().dtype == dtype


@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.uint16, np.int64])
def test_labels_may_be_any_integers(dtype: type) -> None:
    assert Samples(X, np.array(Y, dtype)).y.tolist() == Y


def test_array_in_memory_is_not_copied() -> None:
    array = np.zeros((4, 3), np.float32)
    assert Samples(array, Y).x.data_ptr() == array.ctypes.data


def test_read_only_arrays_are_taken_without_a_warning() -> None:
    """As pandas and memory-mapped files give them."""
    array = np.zeros((4, 3), np.float32)
    array.flags.writeable = False
    assert Samples(array, Y).x.shape == (4, 3)


def test_gradients_are_cut() -> None:
    assert not Samples(X.clone().requires_grad_(), Y).x.requires_grad


def test_counts_and_classes() -> None:
    samples = Samples(X, Y)
    assert (len(samples), samples.n, samples.classes) == (4, 3, ("0", "1", "2"))
    assert samples.class_counts.tolist() == [1, 2, 1]


def test_classes_may_be_named_and_have_no_sample() -> None:
    samples = Samples(X, Y, ["cat", "dog", "cow", "owl"])
    assert samples.classes == ("cat", "dog", "cow", "owl")
    assert samples.class_counts.tolist() == [1, 2, 1, 0]


@pytest.mark.parametrize(
    "rows", [torch.tensor([3, 0]), torch.tensor([True, False, False, True])], ids=["rows", "mask"]
)
def test_part_keeps_the_classes(rows: torch.Tensor) -> None:
    part = Samples(X, Y, "abc")[rows]
    assert sorted(part.y.tolist()) == [0, 2]
    assert part.classes == ("a", "b", "c")
    assert sorted(part.x[:, 0].tolist()) == [0.0, 9.0]
    assert part.to("cpu").classes == part.classes


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("row", [0, 4095, 4096, 5000])
def test_row_that_is_not_finite_is_named(bad: float, row: int) -> None:
    x = torch.zeros(5001, 2, 2)
    x[row, 1, 0] = bad
    with pytest.raises(InputError, match=f"found NaN or infinity in sample {row}; impute"):
        Samples(x, torch.zeros(5001, dtype=torch.long))


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "one class index per sample, found None"),
        ([0, 1], "one label per sample, found 4 samples and 2 labels"),
        ([0, 1, 1, 2, 2], "found 4 samples and 5 labels"),
        ([0.0, 1.0, 1.0, 2.0], r"integer class indices 0, 1, …, found torch.float64; convert"),
        (torch.tensor([0.0, 1.0, 1.0, 2.0]), r"found torch.float32; convert"),
        ([True, False, True, True], "found torch.bool"),
        (torch.zeros(4, dtype=torch.complex64), "found torch.complex64"),
        (["cat", "dog", "dog", "cow"], "found text or objects; encode them .* DOSClassifier"),
        ([b"a", b"b", b"b", b"c"], "found text or objects"),
        (np.array([0, None, 1, 2], object), "found text or objects"),
        ([0, 1, -1, 2], "labels must be 0 or more, found -1 at row 2"),
        ([[1, 0], [0, 1], [0, 1], [1, 0]], r"shape \(m,\), found \(4, 2\); turn one-hot rows"),
        ([[0], [1], [1], [2]], r"found \(4, 1\)"),
    ],
)
def test_labels_are_checked(y, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Samples(X, y)


@pytest.mark.parametrize(
    ("x", "message"),
    [
        ([1.0, 2.0, 3.0, 4.0], r"at least two axes, found shape \(4,\); reshape"),
        (np.array([["a"], ["b"], ["c"], ["d"]]), "x must hold numbers, found an array of <U1"),
        (None, "x must hold numbers, found an array of object"),
    ],
)
def test_samples_are_checked(x, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Samples(x, Y)


def test_no_sample_at_all_is_refused() -> None:
    with pytest.raises(InputError, match="at least one sample, found none"):
        Samples(torch.zeros(0, 3), torch.zeros(0, dtype=torch.long))


def test_label_above_the_named_classes_is_refused() -> None:
    with pytest.raises(InputError, match="found label 2 with 2 classes"):
        Samples(X, Y, ["a", "b"])


def test_input_errors_are_value_errors() -> None:
    """So that code which knows nothing of this package can catch them."""
    assert issubclass(InputError, ValueError)
    assert issubclass(InputError, DOSError)


def test_big_endian_arrays_are_read() -> None:
    x = np.arange(6, dtype=">f4").reshape(3, 2)
    assert Samples(x, np.array([0, 1, 1], dtype=">i8")).x.tolist() == x.tolist()


def test_a_device_without_room_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error is still one of memory: who trains several takes fewer at once then."""

    def full(*_: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    samples = Samples(X, Y)
    monkeypatch.setattr(torch.Tensor, "to", full)
    with pytest.raises(torch.OutOfMemoryError, match=r"\(cuda\) must have room for the 4 samples"):
        samples.to("cuda")
