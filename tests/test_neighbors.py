"""𝒩(x; k): the exact in-class neighbours, whatever the order and the ties."""

import numpy as np
import pytest
import torch
from hypothesis import given
from sklearn.neighbors import NearestNeighbors
from torch import Tensor

import paper_loops as paper
from deep_oversampling import InputError, Samples
from deep_oversampling.nearest import padded
from deep_oversampling.overloading import Neighborhoods, _batches, _Span, in_class_neighbors
from peers_in_threads import shared
from strategies import Problem, problems
from toy import blobs, generator


def search(v: Tensor, y: Tensor, k: list[int]) -> Neighborhoods:
    return in_class_neighbors(v, y, torch.tensor(k))


def _of(samples: Samples) -> tuple[Tensor, Tensor]:
    return samples.x, samples.y


def distances(v: Tensor, found: Neighborhoods) -> Tensor:  # (m, K)
    """To each neighbour, in the order they are given; NaN where padded."""
    v = v.double()
    all_of_them = (v.unsqueeze(1) - v[found.index]).norm(dim=2)
    return all_of_them.masked_fill(~found.mask, torch.nan)[:, 1:]


def extent(v: Tensor) -> float:
    """How far the points lie from their mean: the scale of what is compared."""
    return float((v - v.mean(0)).abs().max())


def by_sklearn(v: Tensor, y: Tensor, k: list[int]) -> np.ndarray:  # (m, K)
    result = np.full((len(v), max(k)), np.nan)
    for j, k_j in enumerate(k):
        rows = np.flatnonzero(y.numpy() == j)
        if k_j:
            points = (v.double() - v.double().mean(0))[rows].numpy()  # its formula needs it too
            search = NearestNeighbors(n_neighbors=k_j, algorithm="brute").fit(points)
            result[rows, :k_j] = search.kneighbors()[0]  # without the point itself
    return result


def grids() -> dict[str, Tensor]:
    """30 points in three classes' worth of shapes: generic, tied, copied, far from the origin."""
    draw = generator()
    normal = torch.randn(30, 6, generator=draw)
    return {
        "generic": normal,
        "ties": torch.randint(0, 3, (30, 2), generator=draw).float(),
        "duplicates": normal[torch.randint(0, 6, (30,), generator=draw)],
        "all alike": torch.ones(30, 6),
        "far from the origin": normal + 1e4,
        "large": 1e4 * normal,
        "small": 1e-4 * normal,
        "one dimension": normal[:, :1],
        "double": normal.double(),
        "double, very far from the origin": normal.double() + 1e8,
    }


@pytest.fixture(params=grids())
def v(request: pytest.FixtureRequest) -> Tensor:
    return grids()[request.param]


Y = torch.arange(30) % 3
K = [0, 3, 6]


def test_distances_are_those_of_scikit_learn(v: Tensor) -> None:
    ours = distances(v, search(v, Y, K)).numpy()
    np.testing.assert_allclose(ours, by_sklearn(v, Y, K), rtol=1e-4, atol=1e-6 * extent(v))


def test_members_are_in_the_class_distinct_and_nearest_first(v: Tensor) -> None:
    found = search(v, Y, K)
    for i in range(len(v)):
        members = found.index[i][found.mask[i]].tolist()
        assert members[0] == i
        assert len(set(members)) == len(members) == K[Y[i]] + 1
        assert (Y[members] == Y[i]).all()
    gaps = distances(v, found).diff(dim=1)
    assert (gaps[~gaps.isnan()] >= -1e-6 * extent(v)).all()


def test_padding_repeats_the_sample_itself(v: Tensor) -> None:
    found = search(v, Y, K)
    own = torch.arange(len(v)).unsqueeze(1).expand_as(found.index)
    assert torch.equal(found.index[~found.mask], own[~found.mask])
    assert found.mask.sum(1).tolist() == [K[j] + 1 for j in Y]


def test_a_copy_of_a_sample_is_a_neighbour_of_it() -> None:
    v = torch.tensor([[0.0, 0.0], [0.0, 0.0], [1.0, 0.0]])
    found = search(v, torch.zeros(3, dtype=torch.long), [1])
    assert found.index.tolist()[:2] == [[0, 1], [1, 0]]


def test_two_tight_groups_far_apart_are_searched_exactly() -> None:
    """‖a‖² − 2ab + ‖b‖² in float32 loses the small distances within the groups."""
    v = 0.1 * torch.randn(60, 16, generator=generator())
    v[:30] += 1000
    y = torch.zeros(60, dtype=torch.long)
    ours = distances(v, search(v, y, [3])).numpy()
    np.testing.assert_allclose(ours, by_sklearn(v, y, [3]), rtol=1e-3)


def test_order_of_the_samples_does_not_matter() -> None:
    samples = blobs((9, 7, 5))
    found = search(samples.x, samples.y, [2, 0, 4])
    order = torch.randperm(len(samples), generator=generator(1))
    shuffled = search(samples.x[order], samples.y[order], [2, 0, 4])
    assert torch.equal(order[shuffled.index], found.index[order])


@given(problems())
def test_neighbourhoods_are_the_papers(problem: Problem) -> None:
    v, y, k = problem.v, problem.y, problem.k
    found = search(v, y, k)
    assert found.index.shape == (len(v), max(k) + 1)
    for i in range(len(v)):
        theirs = paper.neighborhood(v.double(), y, i, k[int(y[i])])
        ours = found.index[i][found.mask[i]].tolist()
        assert len(ours) == len(theirs)
        far = [[float((v[i] - v[j]).norm()) for j in one] for one in (ours, theirs)]
        assert far[0] == pytest.approx(far[1], abs=1e-5)  # ties: any of the tied will do


@given(problems())
def test_distances_are_those_of_scikit_learn_with_ties(problem: Problem) -> None:
    v, y, k = problem.v, problem.y, problem.k
    ours = distances(v, search(v, y, k)).numpy()
    np.testing.assert_allclose(ours, by_sklearn(v, y, k), atol=1e-5)


@pytest.mark.parametrize(
    ("k", "j", "m"), [([20, 0, 0], 0, 20), ([0, 0, 6], 2, 6), ([19, 12, 0], 1, 12)]
)
def test_more_neighbours_than_a_class_has_are_refused(k: list[int], j: int, m: int) -> None:
    samples = blobs()  # 20, 12 and 6
    with pytest.raises(InputError, match=f"found k={k[j]} for class {j} with {m} sample"):
        search(samples.x, samples.y, k)
    search(samples.x, samples.y, [19, 11, 5])  # all there are
    with pytest.raises(InputError, match=r"k=1 for class 1 with 1 sample"):
        search(*_of(blobs((5, 1))), [0, 1])


def test_memory_is_a_megabyte_at_least() -> None:
    samples = blobs()
    with pytest.raises(InputError, match="at least 1 MiB, found 0"):
        in_class_neighbors(samples.x, samples.y, torch.tensor([1, 1, 1]), memory=0)
    in_class_neighbors(samples.x, samples.y, torch.tensor([1, 1, 1]), memory=1)


def test_a_class_as_large_as_the_limit_is_searched_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    samples, searched = blobs(), []

    def found(v: Tensor, rows: Tensor, k: int, asked: slice) -> Tensor:
        searched.append(len(rows))
        return torch.zeros(len(rows), k, dtype=torch.long)

    monkeypatch.setattr("deep_oversampling.overloading.approximately_nearest", found)
    for limit in (20, 19, 12, 11):
        in_class_neighbors(samples.x, samples.y, torch.tensor([2, 3, 3]), approximate_above=limit)
    assert searched == [20, 20, 20, 12]


@pytest.mark.parametrize("limit", [1, 5_000, 20_000, 10**9])
def test_classes_are_searched_together_as_far_as_they_fit(limit: int) -> None:
    sizes = [40, 3, 17, 20, 33, 9, 10, 80, 5, 6]
    found = list(_batches([_Span(i, size, 1) for i, size in enumerate(sizes)], limit))
    assert sorted(one.size for batch in found for one in batch) == sorted(sizes)
    for batch, after in zip(found, [*found[1:], []], strict=True):
        most = padded(batch[0].size)
        assert batch[0].size == max(one.size for one in batch)
        assert all(2 * one.size >= most for one in batch)  # similar in size
        assert len(batch) == 1 or 4 * len(batch) * most**2 <= limit
        if after:  # the next one would have been too many, or too small
            full = 4 * (len(batch) + 1) * most**2 > limit
            assert full or 2 * after[0].size < most


@pytest.mark.parametrize("many", [2, 3, 40])
@pytest.mark.parametrize("k", [[0, 2, 3], [5, 0, 0], [3, 3, 3], [1, 0, 1]])
def test_a_search_that_is_shared_finds_the_same(many: int, k: list[int]) -> None:
    """More who ask than a class has samples as well."""
    v, y = _of(blobs())
    alone = search(v, y, k)
    found = shared(many, lambda one: in_class_neighbors(v, y, torch.tensor(k), peers=one))
    for one in found:
        assert torch.equal(one.index, alone.index)
        assert torch.equal(one.mask, alone.mask)
