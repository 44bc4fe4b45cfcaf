"""The nearest of a class: exact for whatever points, provably, and in the memory it is given."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode

from deep_oversampling import nearest as search
from deep_oversampling.errors import InputError
from deep_oversampling.nearest import Classes, scale_of
from deep_oversampling.overloading import in_class_neighbors
from hard_points import all_distances, hard_points
from toy import generator

K = 10
M = 320  # points of `hard_points`, more than are looked at at once
ROUNDING = 1e-12  # of a sum of squares in double precision, at most 2000 of them


def neighbors(v: Tensor, k: int = K, **options: Any) -> Tensor:  # (m, k)
    y = torch.zeros(len(v), dtype=torch.long)
    return in_class_neighbors(v, y, torch.tensor([k]), **options).index[:, 1:]


def assert_nearest(v: Tensor, found: Tensor) -> None:
    """Nearest first, and as near as those of an exhaustive search; of equals any will do."""
    distances = all_distances(v)
    best = distances.topk(found.shape[1], largest=False).values
    torch.testing.assert_close(distances.gather(1, found), best, rtol=ROUNDING, atol=0)
    assert all(len(set(row)) == len(row) for row in found.tolist())


@pytest.fixture(params=hard_points())
def v(request: pytest.FixtureRequest) -> Tensor:
    return hard_points()[request.param]


def test_search_is_exact_and_repeats(v: Tensor) -> None:
    found = neighbors(v)
    assert_nearest(v, found)
    assert torch.equal(neighbors(v), found)


def test_blocks_may_have_any_size(v: Tensor, monkeypatch: pytest.MonkeyPatch) -> None:
    def sevens(n: int, *_: int) -> Iterator[slice]:
        return (slice(start, min(start + 7, n)) for start in range(0, n, 7))

    monkeypatch.setattr(search, "_parts", sevens)
    assert_nearest(v, neighbors(v))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_bounds_are_below_the_distances(v: Tensor, dtype: torch.dtype) -> None:
    m, distances = len(v), all_distances(v)
    everyone = torch.arange(m)
    classes = Classes(
        v, scale_of(v), everyone.unsqueeze(0), torch.tensor([m]), torch.tensor([K]), K
    )
    unit = scale_of(v) * 2.0 ** int(torch.frexp(v.double().abs().max()).exponent)
    for width in (2, K, m // 2):
        bounds = search._Bounds(classes, dtype, 2**12)  # the points come in several parts
        index, last, doubtful = bounds.shortlist(everyone, width, 2**20)
        outside = distances.scatter(1, index[0], torch.inf).amin(1) * unit**2
        assert (last[0] <= outside).all()
        certain = distances.gather(1, index[0][:, :K])[~doubtful[0]]
        assert (certain.diff(dim=1) >= 0).all()


@pytest.fixture
def lists(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[int, int]]]:
    """How many shortlists had to be put in order by distances, and how long they were."""
    seen: list[tuple[int, int]] = []
    original = search._by_distance

    def noted(classes: Classes, j: Tensor, i: Tensor, index: Tensor, *rest: Any) -> Any:
        seen.append(tuple(index.shape))
        return original(classes, j, i, index, *rest)

    monkeypatch.setattr(search, "_by_distance", noted)
    return seen


def test_most_points_need_no_distances(lists: list[tuple[int, int]]) -> None:
    v = torch.randn(M, 120, generator=generator())
    for offset in (0, 1e4):
        neighbors(v + offset)
        assert len(lists) == 1
        assert lists.pop()[0] < M / 5


def test_points_that_the_bounds_cannot_tell_apart_are_searched_again(
    lists: list[tuple[int, int]],
) -> None:
    v = hard_points()["clusters far apart"]
    assert_nearest(v, neighbors(v))
    (_, first), (again, second) = lists
    assert (first, second) == (14, 56)
    assert again > M / 2


def test_lists_grow_until_everyone_is_on_them(lists: list[tuple[int, int]]) -> None:
    v = hard_points()["all equally far apart"]
    assert_nearest(v, neighbors(v))
    assert sorted({width for _, width in lists}) == [14, 56, 224, M]


def test_copies_need_no_longer_lists(lists: list[tuple[int, int]]) -> None:
    neighbors(hard_points()["copies"])
    assert len(lists) == 1  # nobody is nearer than at distance 0


@given(
    st.lists(st.integers(-5, 5), min_size=1, max_size=2000), st.integers(1, 40), st.integers(8, 99)
)
def test_grouped_search_finds_the_smallest(values: list[int], k: int, few: int) -> None:
    rows = torch.tensor([values, values[::-1]]).float()
    k = min(k, rows.shape[1])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "_FEW", few)
        smallest, columns = search._smallest(rows, k)
    assert torch.equal(smallest, rows.sort(1).values[:, :k])
    assert torch.equal(rows.gather(1, columns), smallest)
    assert all(len(set(row)) == k for row in columns.tolist())


@pytest.mark.parametrize("sizes", [(1, 4, 6, 7, 40, 60, 300, 900, 1200), (50,) * 40])
def test_classes_are_searched_together_as_they_are_alone(sizes: tuple[int, ...]) -> None:
    draw = generator()
    y = torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))
    y = y[torch.randperm(len(y), generator=draw)]
    v = torch.randint(0, 2, (len(y), 6), generator=draw) + 1000.0 * y.unsqueeze(1)
    k = torch.tensor([min(j % 12 + 1, size - 1) for j, size in enumerate(sizes)])
    found = in_class_neighbors(v, y, k)
    for j, k_j in enumerate(k.tolist()):
        rows = (y == j).nonzero().flatten()
        assert torch.equal(found.index[rows, 0], rows)
        assert torch.equal(found.mask[rows].sum(1), torch.full_like(rows, k_j + 1))
        if k_j:
            ours = torch.searchsorted(rows, found.index[rows, 1 : k_j + 1].contiguous())
            assert_nearest(v[rows], ours)


def test_few_products_for_many_small_classes() -> None:
    class Count(TorchDispatchMode):
        products = 0

        def __torch_dispatch__(self, call: Any, _: Any, args: Any = (), kwargs: Any = None) -> Any:
            self.products += call is torch.ops.aten.bmm.out
            return call(*args, **(kwargs or {}))

    y = torch.arange(10).repeat_interleave(60)
    with Count() as count:
        in_class_neighbors(torch.randn(600, 4, generator=generator()), y, torch.full((10,), 5))
    assert count.products == 1


class Memory(TorchDispatchMode):
    """The most bytes that tensors made under it have held together."""

    def __init__(self) -> None:
        super().__init__()
        self.peak, self._held = 0, {}

    def __torch_dispatch__(self, call: Any, _: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = call(*args, **(kwargs or {}))
        for one in result if isinstance(result, tuple | list) else [result]:
            if isinstance(one, Tensor):
                storage = one.untyped_storage()
                self._held[storage._cdata] = StorageWeakRef(storage), storage.nbytes()
        self._held = {key: held for key, held in self._held.items() if not held[0].expired()}
        self.peak = max(self.peak, sum(size for _, size in self._held.values()))
        return result


@pytest.mark.parametrize("name", ["nothing", "clusters far apart", "all equally far apart"])
def test_memory_is_bounded(name: str) -> None:
    v = hard_points(2000)[name][:, :50].contiguous()
    peaks = {}
    for mib in (1, 2, 8):
        with Memory() as memory:
            neighbors(v, memory=mib)
        copies = 3 * 8 * len(v) * (v.shape[1] + 4)
        results = 6 * 8 * len(v) * (K + 4)
        peaks[mib] = memory.peak
        assert memory.peak <= mib * 2**20 + copies + results
    assert peaks[8] > peaks[1] + 4 * 2**20  # and used


@pytest.mark.parametrize("precision", ["high", "medium"])
def test_products_have_full_precision_whatever_is_allowed(precision: str) -> None:
    class Watch(TorchDispatchMode):
        seen: set[str]

        def __torch_dispatch__(self, call: Any, _: Any, args: Any = (), kwargs: Any = None) -> Any:
            if call is torch.ops.aten.bmm.out:
                self.seen = {torch.backends.mkldnn.matmul.fp32_precision, str(args[0].dtype)}
            return call(*args, **(kwargs or {}))

    v = torch.randn(M, 20, generator=generator())
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(precision)
    try:
        with torch.autocast("cpu", dtype=torch.bfloat16), Watch() as watch:
            found = neighbors(v)
        assert torch.get_float32_matmul_precision() == precision
    finally:
        torch.set_float32_matmul_precision(before)
    assert watch.seen == {"ieee", "torch.float32"}
    assert_nearest(v, found)


def test_gradients_are_not_asked_for() -> None:
    v = torch.randn(20, 3, generator=generator(), requires_grad=True)
    assert torch.equal(neighbors(v), neighbors(v.detach()))


def test_a_class_of_one_sample_has_no_neighbours() -> None:
    found = in_class_neighbors(torch.ones(1, 3), torch.tensor([0]), torch.tensor([0]))
    assert found.index.tolist() == [[0]]
    assert found.mask.tolist() == [[True]]


def test_a_class_may_have_no_samples() -> None:
    found = in_class_neighbors(torch.eye(3), torch.tensor([0, 0, 2]), torch.tensor([1, 0, 0]))
    assert found.index.tolist() == [[0, 1], [1, 0], [2, 2]]


def test_more_neighbours_than_there_are_is_an_error() -> None:
    with pytest.raises(InputError, match=r"at most m_j - 1, found k=2 for class 1 with 2 sample"):
        in_class_neighbors(torch.eye(3), torch.tensor([0, 1, 1]), torch.tensor([0, 2]))


def test_no_memory_is_an_error() -> None:
    with pytest.raises(InputError, match="memory must be at least 1 MiB, found 0"):
        neighbors(torch.eye(12), memory=0)
