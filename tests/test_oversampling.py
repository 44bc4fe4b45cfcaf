"""𝒵′: its rows, its weights on the simplex, and that it is a table of indices."""

from collections import Counter

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import paper_loops as paper
from deep_oversampling import Plan, TrainingError, embed, oversample
from deep_oversampling.moments import total_variance
from deep_oversampling.oversampling import MicroClusters, sample_simplex
from deep_oversampling.presenting import batches
from strategies import Problem, problems
from toy import blobs, generator, members_of, overloaded, small


@given(problems())
def test_rows_are_the_papers(problem: Problem) -> None:
    """Σ r_j m_j rows, every sample r_j times, with the neighbourhood that the loops select."""
    z = overloaded(problem.samples, problem.v, problem.k, problem.r)
    rows = paper.overload(problem.v.double(), problem.y, problem.k, problem.r)
    assert len(z) == len(rows) == sum(r * m for r, m in zip(problem.r, problem.counts, strict=True))
    presented = Counter(z.anchor.tolist())
    assert presented == Counter(i for i, _ in rows)
    assert all(presented[i] == problem.r[int(j)] for i, j in enumerate(problem.y))
    members = [members_of(z, row)[0] for row in range(len(z))]
    assert [own for own, *_ in members] == z.anchor.tolist()
    sizes = map(len, members)
    expected = Counter((i, len(members)) for i, members in rows)
    assert Counter(zip(z.anchor.tolist(), sizes, strict=True)) == expected


@given(problems())
def test_batches_carry_what_the_table_points_to(problem: Problem) -> None:
    z = overloaded(problem.samples, problem.v, problem.k, problem.r)
    rows = torch.randperm(len(z), generator=generator())[:5]
    batch = z[rows]
    for b, row in enumerate(rows.tolist()):
        i = int(z.anchor[row])
        assert torch.equal(batch.x[b], problem.v[i])
        assert batch.y[b] == problem.y[i]
        (_, *others), (_, *w) = members_of(z, row)
        if len(batch.v):  # where any class has neighbours
            assert int(batch.mask[b].sum()) == len(others)
            assert torch.equal(batch.v[b][batch.mask[b]], problem.v[others])
            assert torch.equal(batch.w[b][batch.mask[b]], torch.tensor(w) / z.variance)
            assert (batch.w[b][~batch.mask[b]] == 0).all()


def test_no_sample_is_copied() -> None:
    samples = blobs()
    z = overloaded(samples, samples.x, [0, 0, 3], [1, 1, 50])
    assert len(z) > len(samples)
    assert z.samples.x.data_ptr() == samples.x.data_ptr()
    rare = int(samples.class_counts[2])  # of the others nothing is kept
    assert len(z.v) == len(z.kept) == len(z.neighborhoods.index) == rare
    assert len(z.w) == len(z.crowded) == 50 * rare
    assert torch.equal(z.v, samples.x[samples.y == 2])


def test_embeddings_of_all_classes_are_not_copied() -> None:
    samples = blobs()
    z = overloaded(samples, samples.x, [1, 1, 3], [1, 1, 50])
    assert z.v.data_ptr() == samples.x.data_ptr()


@given(st.lists(st.lists(st.booleans(), min_size=4, max_size=4), min_size=1, max_size=20))
def test_weights_lie_on_the_simplex_of_the_members(rows: list[list[bool]]) -> None:
    mask = torch.tensor(rows)
    mask[:, 0] = True  # x itself is always a member
    w = sample_simplex(mask, generator())
    assert (w >= 0).all()
    assert (w[~mask] == 0).all()
    torch.testing.assert_close(w.sum(1), torch.ones(len(mask)))


@pytest.mark.parametrize("members", [1, 2, 4, 11])
def test_weights_have_the_moments_of_the_uniform_dirichlet(members: int) -> None:
    """Mean 1/K, variance (K−1)/(K²(K+1)), covariance −1/(K²(K+1)) (R6)."""
    draws = 40_000
    mask = torch.ones(draws, members + 1, dtype=torch.bool)
    mask[:, -1] = False
    w = sample_simplex(mask, generator())[:, :-1].double()
    few = 5 / draws**0.5 / members  # five standard errors, generously
    torch.testing.assert_close(w.mean(0), torch.full_like(w[0], 1 / members), atol=few, rtol=0)
    uniform = (torch.eye(members) * members - 1) / (members**2 * (members + 1))
    covariance = torch.cov(w.T, correction=0).view(members, members)
    torch.testing.assert_close(covariance, uniform.double(), atol=few, rtol=0)


def test_rows_of_one_sample_get_different_weights() -> None:
    samples = blobs()
    z = overloaded(samples, samples.x, [2, 2, 2], [3, 3, 3])
    assert len(torch.unique(z.w, dim=0)) == len(z)


def test_weights_depend_on_the_generator_alone() -> None:
    mask = torch.ones(4, 3, dtype=torch.bool)
    assert torch.equal(sample_simplex(mask, generator(1)), sample_simplex(mask, generator(1)))
    assert not torch.equal(sample_simplex(mask, generator(1)), sample_simplex(mask, generator(2)))


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 1.0])
def test_rows_that_are_left_out_change_no_weight(share: float) -> None:
    """Of 150,000 rows some have neighbours; each has the weights it would have among all."""
    count, chosen = 150_000, torch.rand(150_000, generator=generator(1)) < share
    mask = torch.ones(count, 3, dtype=torch.bool)
    mask[::7, 2] = False
    rows = chosen.nonzero().flatten()
    some = sample_simplex(mask[rows], generator(), rows=rows, count=count)
    assert torch.equal(some, sample_simplex(mask, generator())[rows])


def test_some_rows_are_a_table() -> None:
    samples = blobs()
    z = overloaded(samples, samples.x, [0, 1, 3], [1, 2, 4])
    rows = torch.tensor([5, 0, 31, 31, 60, 2])
    part = z.some(rows)
    assert len(part) == 6
    assert [members_of(part, i) for i in range(6)] == [members_of(z, i) for i in rows.tolist()]
    assert torch.equal(part.has_neighbours, z.has_neighbours[rows])
    plain = z.some((~z.has_neighbours).nonzero().flatten())  # nobody has any
    assert plain[torch.arange(4)].v.shape == (0, 3, 4)
    assert plain.some(torch.tensor([1, 1])).anchor.tolist() == plain.anchor[[1, 1]].tolist()


@pytest.mark.slow
def test_more_rows_than_single_precision_can_count() -> None:
    """Beyond 2²⁴: every row is presented once, every sample r times, the weights are their own."""
    samples = blobs((1000, 10))
    r = 2**24 // 1000 + 1
    z = overloaded(samples, samples.x, [0, 2], [r, 1])
    assert len(z) == 1000 * r + 10 > 2**24
    assert torch.equal(torch.bincount(z.anchor), torch.tensor([r, 1])[samples.y])
    assert torch.equal(samples.y[z.anchor[z.crowded]], torch.ones(10, dtype=torch.long))
    rows, present = batches(len(z), 4096, generator())
    seen = torch.zeros(len(z), dtype=torch.uint8)
    seen[rows[present]] += 1
    assert bool((seen == 1).all())
    # whole numbers in single precision would come in pairs up there
    assert set((rows[:, 0] % 2).unique().tolist()) == {0, 1}
    last = z[z.crowded[-1:]]
    assert torch.equal(last.w, z.w[-1:, 1:] / z.variance)


def test_unweighted_members_all_weigh_one() -> None:
    samples = blobs()
    z = overloaded(samples, samples.x, [0, 1, 3], [1, 1, 2], weighted=False)
    assert torch.equal(z.w, z.neighborhoods.mask[z.hood].float())


@given(problems())
def test_total_variance_is_the_mean_squared_distance_from_the_mean(problem: Problem) -> None:
    found = total_variance(problem.v.double())
    torch.testing.assert_close(found, paper.total_variance(problem.v.double()))


@pytest.mark.parametrize("value", [0.0, 0.1, -7.7, 1e5])
@pytest.mark.parametrize("m", [2, 7, 1000])
def test_collapsed_embeddings_are_named(value: float, m: int) -> None:
    with pytest.raises(TrainingError, match=f"must differ between samples, found all {m} alike"):
        total_variance(torch.full((m, 3), value))


@pytest.mark.parametrize("parts", [1, 2, 3])
def test_joined_batches_have_every_row(parts: int) -> None:
    samples = blobs()
    z = overloaded(samples, samples.x, [2, 2, 2], [1, 1, 2])
    rows = torch.arange(4 * parts)
    joined = MicroClusters.joined([z[some] for some in rows.split(4)])
    assert len(joined) == len(rows)
    for name in ("x", "y", "v", "w", "mask"):
        assert torch.equal(getattr(joined, name), getattr(z[rows], name))


def test_rows_with_any_neighbour_come_first() -> None:
    """One is enough, however many the other classes have."""
    samples = blobs()
    z = overloaded(samples, samples.x, [0, 1, 3], [1, 1, 1])
    (batch,) = z.__getitems__(list(range(len(z))))
    k = torch.tensor([0, 1, 3])[batch.y]
    assert len(batch.v) == int((samples.y > 0).sum())
    assert (k[: len(batch.v)] > 0).all()
    assert (k[len(batch.v) :] == 0).all()
    assert torch.equal(batch.mask.sum(1), k[: len(batch.v)])
    assert torch.equal(z.has_neighbours, samples.y[z.anchor] > 0)


def test_a_fraction_of_r_is_drawn_anew_and_the_class_has_its_rows() -> None:
    samples, plan = blobs((20, 12, 6)), Plan(k=[0, 3, 3], r=[1, 1.5, 2.7])
    v, first = embed(small(), samples.x), None
    for seed in range(3):
        table = oversample(samples, v, plan, generator=generator(seed))
        times = table.anchor.bincount(minlength=len(samples))
        for j, (rows, least) in enumerate([(20, 1), (18, 1), (16, 2)]):
            own = times[samples.y == j]
            assert int(own.sum()) == rows
            assert set(own.tolist()) <= {least, least + 1}
        assert torch.equal(table.anchor, table.anchor.sort().values)
        assert not torch.equal(times, first) if seed else True
        first = times
