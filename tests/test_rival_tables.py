"""What the rivals present: who is drawn, how often, and with whom."""

import math
from collections import Counter
from collections.abc import Sequence

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from deep_oversampling import Samples, View
from deep_oversampling.rivals.tables import Grouped, Joined, Mixed, Redrawn, class_balanced
from deep_oversampling.rivals.triplet import Triplets
from toy import blobs, generator

groups = st.lists(st.integers(0, 4), min_size=1, max_size=30)


def within_chance(found: int, draws: int, share: float) -> bool:
    """Five standard deviations of the binomial."""
    return abs(found - draws * share) <= 5 * math.sqrt(draws * share * (1 - share))


def stored(samples: Samples, how: str) -> Samples:
    x = View.of(samples.x) if how == "view" else samples.x
    return Samples(x, samples.y, samples.classes)


storages = pytest.mark.parametrize("how", ["tensor", "view"])


# Redrawn


@storages
def test_redrawn_rows_are_the_samples_of_the_index(how: str) -> None:
    samples = blobs()
    index = torch.tensor([3, 3, 0, 37, 3])
    table = Redrawn(stored(samples, how), index)
    batch = table[torch.tensor([4, 2, 3])]
    assert len(table) == 5
    for i, row in enumerate([3, 0, 37]):
        assert torch.equal(batch.x[i], samples.x[row])
        assert batch.y[i] == samples.y[row]
    assert batch.n == samples.n


# Joined


def joined(how: str, m: int = 7, made: int = 4) -> tuple[Joined, Samples]:
    """Pictures of bytes, some of them made; and all of them in one piece."""
    x = torch.arange(3 * 2 * 2 * (m + made)).view(-1, 3, 2, 2).to(torch.uint8)
    whole = Samples(x, torch.arange(m + made) % 3, "abc")
    first, rest = (whole[rows] for rows in (torch.arange(m), torch.arange(m, m + made)))
    if how == "changed view":
        u = torch.arange(m)[:, None].to(torch.uint8)
        x = View(first.x - u.view(-1, 1, 1, 1), torch.arange(m), plus, u)
        return Joined(first.with_x(x), rest), whole
    return Joined(stored(first, how), rest), whole


def plus(x: Tensor, u: Tensor) -> Tensor:  # (b, c, h, w), (b, 1)
    return x + u.view(-1, 1, 1, 1)


every_storage = pytest.mark.parametrize("how", ["tensor", "view", "changed view"])


@every_storage
@pytest.mark.parametrize("shape", [(), (2,), (2, 3)], ids=str)
def test_joined_is_one_set_whatever_the_shape_of_the_rows(how: str, shape: tuple[int, ...]) -> None:
    table, whole = joined(how)
    rows = torch.randint(len(whole), (*shape, 30), generator=generator())
    batch = table[rows]
    assert len(table) == len(whole) == 11
    assert batch.x.dtype == torch.uint8
    assert batch.x.shape == (*shape, 30, 3, 2, 2)
    assert torch.equal(batch.x, whole.x[rows])
    assert torch.equal(batch.y, whole.y[rows])
    assert batch.classes == whole.classes


@storages
@pytest.mark.parametrize("rows", [[0, 6], [7, 10], [6, 7]], ids=["stored", "made", "both"])
def test_joined_begins_and_ends_where_it_should(how: str, rows: list[int]) -> None:
    table, whole = joined(how)
    assert torch.equal(table[torch.tensor(rows)].x, whole.x[rows])


@storages
def test_joined_reads_nothing_back_from_the_device(how: str) -> None:
    """On the meta device there is nothing to be read: shapes alone must do."""
    table, _ = joined(how)
    there = Joined(table.samples.to("meta"), table.made.to("meta"))
    batch = there[torch.zeros(2, 5, dtype=torch.long, device="meta")]
    assert batch.x.device.type == batch.y.device.type == "meta"
    assert batch.x.shape == (2, 5, 3, 2, 2)
    assert batch.y.shape == (2, 5)


# Grouped and class_balanced


@given(groups, st.integers(0, 100))
def test_one_of_gives_a_sample_of_each_wanted_group(group: list[int], seed: int) -> None:
    wanted = [group[i % len(group)] for i in range(0, 40, 3)]
    rows = Grouped(torch.tensor(group)).one_of(torch.tensor(wanted), generator(seed))
    assert [group[row] for row in rows.tolist()] == wanted


@given(groups, st.integers(0, 100))
def test_one_of_never_gives_the_excepted_one_if_there_is_another(
    group: list[int], seed: int
) -> None:
    but = torch.arange(len(group)).repeat(5)
    wanted = torch.tensor(group)[but]
    rows = Grouped(torch.tensor(group)).one_of(wanted, generator(seed), but=but)
    for row, excepted in zip(rows.tolist(), but.tolist(), strict=True):
        assert group[row] == group[excepted]
        alone = group.count(group[row]) == 1
        assert (row == excepted) == alone


@pytest.mark.parametrize("but", [None, 2], ids=["all", "all but one"])
def test_one_of_draws_all_of_a_group_alike(but: int | None) -> None:
    group = torch.tensor([7, 1, 1, 0, 1, 7, 1])  # 1 stands at four rows, one of them excepted
    draws = 4000
    excepted = None if but is None else torch.full((draws,), but)
    rows = Grouped(group).one_of(torch.ones(draws, dtype=torch.long), generator(), but=excepted)
    expected = {1, 2, 4, 6} - {but}
    found = Counter(rows.tolist())
    assert set(found) == expected
    assert all(within_chance(n, draws, 1 / len(expected)) for n in found.values())


@pytest.mark.parametrize("counts", [(300, 30, 3), (5, 5, 5), (90, 1, 9), (0, 8, 2)], ids=str)
def test_class_balanced_draws_classes_alike_and_samples_within_them(counts: Sequence[int]) -> None:
    y = torch.arange(3).repeat_interleave(torch.tensor(counts))
    draws, present = 6000, [m for m in counts if m]
    rows = Counter(class_balanced(y, draws, generator()).tolist())
    of_class = Counter(y.tolist()[row] for row in rows.elements())
    assert all(
        within_chance(of_class[j], draws, 1 / len(present)) for j, m in enumerate(counts) if m
    )
    for row, m in enumerate(counts[j] for j in y.tolist()):
        assert within_chance(rows[row], draws, 1 / (m * len(present)))


def test_draws_are_repeatable_and_differ_between_generators() -> None:
    y = blobs().y
    first, second, other = (class_balanced(y, 50, generator(seed)) for seed in (0, 0, 1))
    assert torch.equal(first, second)
    assert not torch.equal(first, other)


# Mixed


def many(m: int) -> Samples:
    return Samples(torch.arange(2.0 * m).view(m, 2), torch.arange(m) % 3)


def test_shares_are_uniform() -> None:
    share = Mixed.drawn(many(10_000), generator()).share  # Beta(1, 1)
    assert ((share >= 0) & (share <= 1)).all()
    for tenth in range(10):
        inside = int(((share >= tenth / 10) & (share < (tenth + 1) / 10)).sum())
        assert within_chance(inside, 10_000, 0.1)


@storages
def test_a_batch_of_mixed_holds_the_samples_and_their_shares(how: str) -> None:
    samples = many(9)
    table = Mixed.drawn(stored(samples, how), generator())
    rows = torch.tensor([8, 0, 3])
    batch = table[rows]
    assert len(table) == 9
    assert torch.equal(batch.x, samples.x[rows])
    assert torch.equal(batch.y, samples.y[rows])
    assert torch.equal(batch.share, table.share[rows])
    changed = batch.with_x(batch.x + 1)
    assert torch.equal(changed.x, batch.x + 1)
    assert torch.equal(changed.share, batch.share)


def test_shares_are_repeatable_and_differ_between_generators() -> None:
    first, second, other = (Mixed.drawn(many(50), generator(s)).share for s in (0, 0, 1))
    assert torch.equal(first, second)
    assert not torch.equal(first, other)


# Triplets


FAMILIES = {
    "imbalanced": (300, 30, 3),
    "two classes": (40, 4),
    "a class with one sample": (20, 9, 1),
    "only such": (1, 1, 1),
    "one without samples": (8, 0, 5),
}


@pytest.fixture(params=FAMILIES)
def y(request: pytest.FixtureRequest) -> Tensor:
    counts = torch.tensor(FAMILIES[request.param])
    y = torch.arange(len(counts)).repeat_interleave(counts)
    return y[torch.randperm(len(y), generator=generator())]


def test_triplets_are_of_one_class_and_another(y: Tensor) -> None:
    draws = 3000
    table = Triplets.drawn(Samples(torch.zeros(len(y), 2), y), draws, generator())
    counts, present = torch.bincount(y).tolist(), len(y.unique())
    assert table.index.shape == (draws, 3)
    for anchor, positive, negative in table.index.tolist():
        assert y[anchor] == y[positive] != y[negative]
        assert (anchor == positive) == (counts[int(y[anchor])] == 1)
    for column in (0, 2):  # anchors, and negatives too, are drawn alike over the classes
        found = Counter(y[table.index[:, column]].tolist())
        assert all(within_chance(found[j], draws, 1 / present) for j in y.unique().tolist())


@storages
def test_a_batch_of_triplets_stands_group_after_group(how: str) -> None:
    samples = blobs()
    table = Triplets.drawn(stored(samples, how), 10, generator())
    batch = table[torch.tensor([7, 2])]
    assert len(table) == 10
    assert batch.size == 3
    expected = [*table.index[7].tolist(), *table.index[2].tolist()]
    assert torch.equal(batch.x, samples.x[expected])
    assert torch.equal(batch.with_x(batch.x + 1).x, samples.x[expected] + 1)


def test_triplets_are_repeatable_and_differ_between_generators() -> None:
    first, second, other = (Triplets.drawn(blobs(), 30, generator(s)).index for s in (0, 0, 1))
    assert torch.equal(first, second)
    assert not torch.equal(first, other)
