"""Approximate neighbours: asked for by size, nearly right, and never a sample of its own."""

import sys
from typing import Any

import pytest
import torch
from torch import Tensor

from deep_oversampling import overloading, oversampling
from deep_oversampling.errors import InputError
from deep_oversampling.overloading import in_class_neighbors
from peers_in_threads import shared
from toy import blobs, generator, small, train

K = 10


@pytest.fixture
def _faiss() -> None:
    pytest.importorskip("faiss")


with_faiss = pytest.mark.usefixtures("_faiss")


def relu_blobs(m: int, d: int = 24) -> Tensor:
    """Twenty clusters as a ReLU layer might give them."""
    draw = generator()
    means = 2 * torch.randn(20, d, generator=draw)
    return torch.relu(means[torch.arange(m) % 20] + torch.randn(m, d, generator=draw))


def search(v: Tensor, above: int | None) -> Tensor:  # (m, K)
    y = torch.zeros(len(v), dtype=torch.long)
    found = in_class_neighbors(v, y, torch.tensor([K]), approximate_above=above)
    assert found.mask.all()
    return found.index[:, 1:]


@with_faiss
def test_most_neighbours_are_found() -> None:
    v = relu_blobs(2000)
    exact, almost = search(v, None), search(v, 1000)
    recall = (exact.unsqueeze(2) == almost.unsqueeze(1)).any(2).float().mean()
    assert 0.95 < recall < 1


@with_faiss
def test_neighbours_are_distinct_and_not_the_sample_itself() -> None:
    generic, few = relu_blobs(500), relu_blobs(12)
    for v in (generic, few, generic[torch.arange(500) % 20], torch.ones(500, 3)):
        rows = search(v, 1).tolist()
        assert all(len({i, *row}) == K + 1 for i, row in enumerate(rows))


@with_faiss
@pytest.mark.parametrize("scale", [2.0**-40, 2.0**60])
def test_scale_means_nothing(scale: float) -> None:
    """Half precision, in which FAISS keeps the points, knows nothing above 65,504."""
    v = relu_blobs(500)
    assert torch.equal(search(scale * v, 1), search(v, 1))


@with_faiss
def test_search_repeats() -> None:
    v = relu_blobs(2000)
    assert torch.equal(search(v, 1), search(v, 1))


@with_faiss
def test_only_larger_classes_are_approximate() -> None:
    y = torch.tensor([0, 1]).repeat_interleave(torch.tensor([2000, 1000]))
    v, k = relu_blobs(3000), torch.tensor([K, K])
    exact, almost = (in_class_neighbors(v, y, k, approximate_above=a) for a in (None, 1000))
    assert torch.equal(exact.index[y == 1], almost.index[y == 1])
    assert not torch.equal(exact.index[y == 0], almost.index[y == 0])


def test_nothing_is_approximate_where_no_class_is_that_large() -> None:
    v = relu_blobs(500)
    assert torch.equal(search(v, 500), search(v, None))


def test_missing_faiss_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(InputError, match=r"approximate_above needs FAISS, .*oversampling\[faiss\]"):
        search(relu_blobs(50), 49)


def test_fit_says_above_which_size(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    search = oversampling.in_class_neighbors
    monkeypatch.setattr(
        oversampling, "in_class_neighbors", lambda *a, **o: seen.append(o) or search(*a, **o)
    )
    train(small(), blobs(), rounds=2, approximate_above=1000)
    assert [options["approximate_above"] for options in seen] == [1000] * 2


@with_faiss
@pytest.mark.parametrize("many", [2, 3, 40])
def test_one_large_class_is_shared_by_those_who_ask(
    many: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each finds the neighbours of some; and more who ask than the second class has samples."""
    answered: list[int] = []
    search = overloading.approximately_nearest

    def counted(*some: Any) -> Tensor:
        found = search(*some)
        answered.append(len(found))
        return found

    y = torch.tensor([0, 1]).repeat_interleave(torch.tensor([600, 30]))
    v, k = relu_blobs(630), torch.tensor([K, 3])
    alone = in_class_neighbors(v, y, k, approximate_above=20)
    monkeypatch.setattr(overloading, "approximately_nearest", counted)
    for one in shared(
        many, lambda one: in_class_neighbors(v, y, k, approximate_above=20, peers=one)
    ):
        assert torch.equal(one.index, alone.index)
    assert sum(answered) == 630
    assert max(answered) == -(-600 // many)
