"""Any map-style dataset: duck-typed, read once, larger than memory or not."""

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import ConcatDataset, Subset, TensorDataset, random_split

from deep_oversampling import InputError
from deep_oversampling.data import from_dataset
from deep_oversampling.views import View
from picture_files import pixels


class Pictures:
    """Like torchvision's: pictures with numbers, and the names of the classes."""

    classes = ("cat", "dog")

    def __init__(self, shape: tuple[int, ...] = (6, 5, 3), count: int = 4) -> None:
        self.shape, self.count, self.reads = shape, count, 0

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        self.reads += 1
        return Image.fromarray(pixels(10 * index, self.shape)), index % 2


class ClassLabel:
    names = ("no", "yes")


class Rows:
    """Like Hugging Face's: a mapping per item, and features that name the classes."""

    features: ClassVar[dict[str, Any]] = {"image": object(), "label": ClassLabel()}

    def __len__(self) -> int:
        return 3

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {"id": "n", "image": Image.fromarray(pixels(index, (4, 4))), "label": index % 2}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DOS_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_pictures_with_labels(cache: Path) -> None:
    samples = from_dataset(Pictures())
    assert samples.classes == ("cat", "dog")
    assert samples.y.tolist() == [0, 1, 0, 1]
    assert samples.x.dtype == torch.uint8
    assert isinstance(samples.x, View)
    assert np.array_equal(samples.x[3], pixels(30).transpose(2, 0, 1))
    assert list(cache.iterdir()) == []  # nothing is left over


def test_mappings(cache: Path) -> None:
    samples = from_dataset(Rows())
    assert samples.classes == ("no", "yes")
    assert samples.x.shape == (3, 1, 4, 4)


def test_subset_and_random_split() -> None:
    data = TensorDataset(torch.rand(10, 3, 4, 4), torch.arange(10) % 3)
    part = Subset(data, [9, 2, 4])
    samples = from_dataset(part)
    assert samples.y.tolist() == [0, 2, 1]
    assert torch.equal(samples.x[:], data.tensors[0][[9, 2, 4]])
    for split in random_split(Pictures(count=10), [0.5, 0.5]):  # type: ignore[arg-type]
        assert from_dataset(split).classes == ("cat", "dog")
    nested = Subset(Subset(Pictures(count=10), [5, 6, 7]), [2])  # type: ignore[arg-type]
    assert from_dataset(nested).classes == ("cat", "dog")
    assert from_dataset(nested).y.tolist() == [1]


def test_text_labels_and_vectors() -> None:
    pairs = [(np.ones(4, np.float32), "b"), (np.zeros(4, np.float32), "a")]
    samples = from_dataset(pairs)
    assert samples.classes == ("a", "b")
    assert samples.y.tolist() == [1, 0]
    assert samples.x.shape == (2, 4)


def test_kept_under_a_name_it_is_read_once_and_for_all(cache: Path) -> None:
    data = Pictures()
    first = from_dataset(data, keep_as="pets 1")
    assert data.reads == 4
    second = from_dataset(data, keep_as="pets 1")
    assert data.reads == 4
    assert torch.equal(first.x[:], second.x[:])
    from_dataset(data, keep_as="pets 2")
    from_dataset(data, keep_as="pets 1", size=3)
    assert data.reads == 12
    assert len(list(cache.iterdir())) == 3


def test_workers_give_the_same() -> None:
    alone, shared = from_dataset(Pictures()), from_dataset(Pictures(), workers=2)
    assert torch.equal(alone.x[:], shared.x[:])
    assert torch.equal(alone.y, shared.y)


def test_sizes_and_names_as_told() -> None:
    samples = from_dataset(Pictures(), size=(3, 4), classes=["A", "B", "C"])
    assert samples.x.shape == (4, 3, 3, 4)
    assert samples.classes == ("A", "B", "C")


def test_size_is_for_pictures() -> None:
    with pytest.raises(InputError, match="size is for pictures of Pillow's, found at 0: Tensor"):
        from_dataset([(torch.zeros(3, 8, 8), 0)], size=4)


def test_progress() -> None:
    calls: list[tuple[int, int]] = []
    from_dataset(Pictures(), on_progress=lambda done, total: calls.append((done, total)))
    assert calls == [(1, 4), (2, 4), (3, 4), (4, 4)]


class Relabelled:
    """One class against the rest, around a dataset with names of its own."""

    classes = ("other", "dog")

    def __init__(self) -> None:
        self.dataset = Pictures()

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> tuple[Any, int]:
        return self.dataset[index]


def test_names_are_those_of_the_outermost_that_has_some() -> None:
    assert from_dataset(Relabelled()).classes == ("other", "dog")
    both = ConcatDataset([Pictures(), Pictures()])  # type: ignore[list-item]
    assert from_dataset(both).classes == ("cat", "dog")
    mixed = ConcatDataset([Pictures(), Relabelled()])  # type: ignore[list-item]
    assert from_dataset(mixed).classes == ("0", "1")


def test_channels_come_first() -> None:
    image = pixels(0, (6, 5, 3))
    assert np.array_equal(from_dataset([(image, 0)]).x[0], image.transpose(2, 0, 1))
    assert from_dataset([(np.zeros((3, 6, 5)), 0)]).x.shape == (1, 3, 6, 5)
    assert from_dataset([(torch.zeros(5, 5), 0)]).x.shape == (1, 1, 5, 5)


def test_grey_and_coloured_pictures_take_after_the_first_or_as_told() -> None:
    grey, coloured = (Image.fromarray(pixels(0, s)) for s in ((4, 4), (4, 4, 3)))
    assert from_dataset([(grey, 0), (coloured, 1)]).x.shape == (2, 1, 4, 4)
    assert from_dataset([(grey, 0), (coloured, 1)], grey=False).x.shape == (2, 3, 4, 4)


def test_text_labels_that_are_numbers_are_in_order() -> None:
    items = [(torch.zeros(2), str(label)) for label in (10, 9, 1)]
    assert from_dataset(items).classes == ("1", "9", "10")


def test_what_does_not_fit_is_not_kept(cache: Path) -> None:
    items = [(torch.zeros(2), "u"), (torch.zeros(2), "v")]
    with pytest.raises(InputError, match="labels must be among the classes"):
        from_dataset(items, keep_as="letters", classes=["a", "b"])
    assert list(cache.iterdir()) == []
    assert from_dataset(items, keep_as="letters", classes=["u", "v"]).y.tolist() == [0, 1]
    assert from_dataset(items, keep_as="letters", classes=["v", "u"]).y.tolist() == [1, 0]
    assert len(from_dataset(items[:1], keep_as="letters", classes=["u", "v"])) == 1


class Failing(Pictures):
    def __getitem__(self, index: int) -> tuple[Any, Any]:
        if index == 2:
            raise OSError("cannot identify image file 'cat.jpg'")
        return super().__getitem__(index)


@pytest.mark.parametrize("workers", [0, 1])
def test_an_error_of_the_dataset_is_its_own(cache: Path, workers: int) -> None:
    with pytest.raises(InputError, match=r"readable, found at 2: OSError: .*cat\.jpg"):
        from_dataset(Failing(), workers=workers)
    assert list(cache.iterdir()) == []


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ([], "with a length of one item or more, found list without"),
        (iter([]), "found list_iterator without; collect an iterable one"),
        ([(torch.zeros(2), 0.9)], "a whole number or text, found at 0: tuple its label is 0.9"),
        ([(torch.zeros(2), b"12")], "its label is b'12'"),
        ([(torch.zeros(2), 0), (torch.zeros(3), 1)], r"found \[2\] of <f4 at first, then \[3\]"),
        ([torch.tensor(1.0)], r"must be \(image, label\) or a mapping .* found at 0: Tensor"),
        ([{"photo": 1, "label": 0}], r"found at 0: \['label', 'photo'\]"),
        ([("a.png", 0)], "a tensor or an array, found at 0: str"),
        ([(torch.zeros(2), None)], "found at 0: tuple"),
        ([(torch.zeros(2), -1), (torch.zeros(2), 0)], "labels must be 0 or more"),
    ],
)
def test_bad_datasets(items: Any, message: str, cache: Path) -> None:
    with pytest.raises(InputError, match=message):
        from_dataset(items)
    assert not cache.exists() or list(cache.iterdir()) == []
