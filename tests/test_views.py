"""A view gives what indexing gives, and reads nothing else."""

import pickle

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from deep_oversampling import Network, Normalize, Samples, embed, predict
from deep_oversampling.views import View

STORED = torch.arange(24, dtype=torch.uint8).view(6, 4)


@given(st.lists(st.integers(0, 5), min_size=1), st.data())
def test_view_is_indexing(rows: list[int], data: st.DataObject) -> None:
    key = data.draw(st.lists(st.integers(0, len(rows) - 1)))
    view, expected = View(STORED, torch.tensor(rows)), STORED[rows]
    picked = torch.tensor(key, dtype=torch.long)
    assert torch.equal(view[picked], expected[picked])
    assert torch.equal(view.select(picked)[:], expected[picked])
    assert torch.equal(view[np.array(key, int)], expected[picked])
    assert view.shape == expected.shape
    assert len(view) == len(expected)


def test_view_takes_masks_slices_and_numbers() -> None:
    view = View(STORED, torch.tensor([5, 0, 3]))
    assert torch.equal(view[torch.tensor([True, False, True])], STORED[[5, 3]])
    assert torch.equal(view[1:], STORED[[0, 3]])
    for last in (-1, np.int64(-1), torch.tensor(-1), np.array(-1)):
        assert torch.equal(view[last], STORED[3])
    assert view.ndim == 2
    assert view.dtype == torch.uint8
    assert not view.is_floating_point()


def test_view_is_an_array_for_others() -> None:
    array = np.asarray(View(STORED, torch.tensor([1, 1])))
    assert array.dtype == np.uint8
    assert array.tolist() == [[4, 5, 6, 7], [4, 5, 6, 7]]


def test_change_depends_on_the_sample_and_its_numbers() -> None:
    u = torch.tensor([[1.0], [2.0], [3.0]])
    view = View(STORED.float(), torch.tensor([0, 0, 1]), lambda x, u: x * u, u)
    assert view[1:].tolist() == [[0, 2, 4, 6], [12, 15, 18, 21]]
    again = view.select(torch.tensor([2, 0]))
    assert again[:].tolist() == [[12, 15, 18, 21], [0, 1, 2, 3]]


def test_on_another_device_only_the_rows_in_use_are_held() -> None:
    view = View(STORED, torch.tensor([4, 1, 4]), lambda x, u: x, torch.zeros(3, 1)).to("meta")
    assert view.device.type == "meta"
    assert view.stored.shape == (2, 4)
    assert view.rows.device == view.stored.device
    assert view.shape == (3, 4)


def test_to_its_own_device_is_itself() -> None:
    view = View.of(STORED)
    assert view.to("cpu") is view


class CountingTensor(torch.Tensor):
    """Counts the rows that are read."""

    read = 0

    def __getitem__(self, key: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
        CountingTensor.read += len(key)
        return super().__getitem__(key)  # type: ignore[return-value]


def test_samples_of_a_view_read_only_what_is_asked_for() -> None:
    CountingTensor.read = 0
    view = View(STORED.as_subclass(CountingTensor), torch.arange(6))
    samples = Samples(view, [0, 1, 0, 1, 0, 1])
    part = samples.subset(torch.tensor([0, 1, 5]))
    assert CountingTensor.read == 0
    assert part.class_counts.tolist() == [1, 2]
    assert isinstance(part.x, View)
    batch = part[torch.tensor([2])]
    assert CountingTensor.read == 1
    assert isinstance(batch.x, torch.Tensor)
    assert batch.x.tolist() == [[20, 21, 22, 23]]


def test_subset_of_a_tensor_is_a_tensor() -> None:
    part = Samples(STORED, [0, 1, 0, 1, 0, 1], ["a", "b"]).subset(torch.tensor([1, 2]))
    assert isinstance(part.x, torch.Tensor)
    assert part.labels.tolist() == ["b", "a"]


def test_a_view_with_infinity_is_refused() -> None:
    x = torch.zeros(6000, 2)
    x[5000] = torch.inf
    with pytest.raises(ValueError, match="found NaN or infinity in sample 5000"):
        Samples(View.of(x), [0, 1] * 3000)


def test_a_pickled_view_holds_the_rows_in_use() -> None:
    stored = torch.zeros(5000, 100)
    stored[7] = 3
    view = View(stored, torch.tensor([7, 7]), lambda_free, torch.ones(2, 1))
    content = pickle.dumps(view)
    assert len(content) < 5000
    assert torch.equal(pickle.loads(content)[:], view[:])


def lambda_free(x: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    return x + u


def test_networks_take_views() -> None:
    x = torch.rand(700, 3)
    view = View(x, torch.arange(700).flip(0))
    network = Network(torch.nn.Linear(3, 2), torch.nn.Linear(2, 2), Normalize.of(view))
    assert torch.equal(embed(network, view), embed(network, x.flip(0)))
    assert torch.equal(predict(network, view), predict(network, x.flip(0)))
