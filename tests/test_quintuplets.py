"""LMLE's clusters, its quintuplets and who becomes an anchor."""

import math
from collections import Counter

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

import rival_loops as loops
from deep_oversampling import Samples, View
from deep_oversampling.rivals.quintuplets import (
    Quintuplets,
    clusters,
    draw_anchors,
    quintuplets,
)
from toy import generator

# clusters


@pytest.mark.parametrize("scale", [1.0, 1e4], ids=["typical", "scaled"])
def test_every_class_has_clusters_of_its_own_and_none_is_empty(scale: float) -> None:
    counts = torch.tensor([400, 45, 19, 5, 1])
    y = torch.arange(5).repeat_interleave(counts)[torch.randperm(470, generator=generator())]
    v = scale * torch.randn(470, 3, generator=generator())
    found = clusters(v, y, seed=0)
    assert sorted(set(found.tolist())) == list(range(int(found.max()) + 1))
    owners = {c: set(y[found == c].tolist()) for c in found.unique().tolist()}
    assert all(len(classes) == 1 for classes in owners.values())
    number = Counter(j for (j,) in owners.values())
    assert number == {0: 10, 1: 2, 2: 1, 3: 1, 4: 1}  # one for 20 samples, at most 10


def test_clusters_are_those_that_there_are() -> None:
    """Two far groups of one class, 20 samples each."""
    v = torch.randn(40, 2, generator=generator()) + 100 * (torch.arange(40) % 2).unsqueeze(1)
    found = clusters(v, torch.zeros(40, dtype=torch.long), seed=0)
    assert len(found.unique()) == 2
    assert len(found[::2].unique()) == len(found[1::2].unique()) == 1


def test_means_are_found_among_some_and_all_go_to_the_nearest() -> None:
    """Ten far groups of one class, more than are looked at: everyone is among its own."""
    group = torch.arange(5000) % 10
    v = torch.randn(5000, 2, generator=generator()) + 100 * group.unsqueeze(1)
    found = clusters(v, torch.zeros(5000, dtype=torch.long), seed=0)
    centres = torch.stack([v[found == c].mean(0) for c in range(int(found.max()) + 1)])
    assert torch.equal(torch.cdist(v, centres).argmin(1), found)
    assert all(len(found[group == g].unique()) == 1 for g in range(10))


@pytest.mark.filterwarnings("ignore:Number of distinct clusters")
def test_samples_that_are_all_alike_are_one_cluster() -> None:
    found = clusters(torch.ones(60, 2), torch.zeros(60, dtype=torch.long), seed=0)
    assert found.tolist() == [0] * 60


def test_clusters_are_repeatable_and_depend_on_the_seed() -> None:
    v, y = torch.randn(300, 3, generator=generator()), torch.arange(300) % 2
    first, second, other = (clusters(v, y, seed=s) for s in (0, 0, 1))
    assert torch.equal(first, second)
    assert not torch.equal(first, other)


# quintuplets

ON_A_LINE = {  # place, class, cluster
    "two clusters": (
        [0.0, 1.0, 2.0, 5.0, 9.0, -4.0, 20.0],
        [0, 0, 0, 0, 0, 1, 1],
        [0, 0, 0, 1, 1, 2, 2],
    ),
    "one cluster": ([0.0, 1.0, 3.0, -2.0, 8.0], [0, 0, 0, 1, 1], [0, 0, 0, 1, 1]),
    "one sample": ([0.0, 4.0, -3.0, 8.0], [0, 1, 1, 1], [0, 1, 1, 1]),
    "one sample in each of two clusters": ([0.0, 2.0, 5.0], [0, 0, 1], [0, 1, 2]),
}
BY_HAND = {  # of the first sample: p+, p−, p−−, n and which margins count
    "two clusters": ([0, 2, 3, 4, 5], [True, True, True]),
    "one cluster": ([0, 2, 2, 2, 3], [False, False, True]),
    "one sample": ([0, 0, 0, 0, 2], [False, False, True]),
    "one sample in each of two clusters": ([0, 0, 1, 1, 2], [True, False, True]),
}


@pytest.mark.parametrize("case", ON_A_LINE)
def test_quintuplets_by_hand(case: str) -> None:
    place, y, cluster = map(torch.tensor, ON_A_LINE[case])
    index, counts = quintuplets(place.unsqueeze(1), y, cluster, torch.tensor([0]))
    assert (index[0].tolist(), counts[0].tolist()) == BY_HAND[case]


@given(st.integers(0, 10_000), st.integers(2, 4), st.integers(4, 40))
def test_quintuplets_are_those_of_the_loop(seed: int, n: int, m: int) -> None:
    draw = generator(seed)
    v = torch.randn(m, 3, generator=draw, dtype=torch.float64)
    y = torch.cat([torch.arange(n), torch.randint(n, (m,), generator=draw)])[:m]
    cluster = 3 * y + torch.randint(3, (m,), generator=draw)  # none knows another's class
    index, counts = quintuplets(v, y, cluster, torch.arange(m))
    for a in range(m):
        expected = loops.companions(v.tolist(), y.tolist(), cluster.tolist(), a)
        assert (index[a].tolist(), counts[a].tolist()) == expected


def test_quintuplets_of_many_anchors_are_those_of_each() -> None:
    """More than a block, in their order, some of them twice."""
    v, y = torch.randn(700, 2, generator=generator()), torch.arange(700) % 3
    cluster = clusters(v, y, seed=0)
    anchors = torch.cat([torch.arange(699, -1, -1), torch.tensor([5, 5])])
    index, counts = quintuplets(v, y, cluster, anchors)
    assert torch.equal(index[:, 0], anchors)
    assert counts.shape == (702, 3)
    for row in (0, 511, 512, 701):
        alone = quintuplets(v, y, cluster, anchors[row : row + 1])
        assert torch.equal(index[row], alone[0][0])
        assert torch.equal(counts[row], alone[1][0])


def test_candidates_are_some_of_every_class_and_anew_for_every_block() -> None:
    counts = torch.tensor([900, 90, 9, 1])
    y = torch.arange(4).repeat_interleave(counts)
    v, cluster = torch.randn(1000, 2, generator=generator()), y.clone()
    anchors = torch.arange(1000)
    index, _ = quintuplets(v, y, cluster, anchors, generator())
    again, _ = quintuplets(v, y, cluster, anchors, generator())
    assert torch.equal(index, again)
    assert torch.equal(index[:, 0], anchors)
    same, stranger = y[index[:, :4]], y[index[:, 4]]
    assert (same == y.unsqueeze(1)).all()
    assert (stranger != y).all()
    of_block = [set(index[rows, 1:].flatten().tolist()) - set(range(1000)[rows]) for rows in BLOCKS]
    assert all(len(found) <= 40 for found in of_block)  # ten of a class, on the average
    assert of_block[0] != of_block[1]


def test_candidates_are_searched_as_all_samples_are() -> None:
    """The farthest of a class that stands on a line, among those that were drawn."""
    v = torch.arange(60.0).unsqueeze(1)
    y = torch.arange(60) // 30
    index, _ = quintuplets(v, y, y.clone(), torch.tensor([0, 59]), generator())
    exact, _ = quintuplets(v, y, y.clone(), torch.tensor([0, 59]))
    assert exact[:, [1, 4]].tolist() == [[29, 30], [30, 29]]
    assert 0 < index[0, 1] <= 29 < index[0, 4]
    assert index[1, 4] <= 29 < index[1, 1] < 59
    assert index[0, 4] == index[1, 1]  # both the first of its class among the same candidates


BLOCKS = (slice(0, 512), slice(512, 1000))


@pytest.mark.parametrize("as_view", [False, True], ids=["tensor", "view"])
def test_a_batch_of_quintuplets_stands_group_after_group(as_view: bool) -> None:
    x = torch.randn(8, 2, generator=generator())
    samples = Samples(View.of(x) if as_view else x, torch.arange(8) % 2)
    index = torch.tensor([[0, 2, 4, 6, 1], [1, 3, 5, 7, 0], [2, 2, 2, 2, 3]])
    counts = torch.tensor([[True, True, True], [False, True, True], [False, False, True]])
    batch = Quintuplets(samples, index, counts)[torch.tensor([2, 0])]
    assert len(Quintuplets(samples, index, counts)) == 3
    assert batch.size == 5
    assert torch.equal(batch.x, x[[2, 2, 2, 2, 3, 0, 2, 4, 6, 1]])
    assert torch.equal(batch.counts, counts[[2, 0]])


# anchors


def clustered() -> tuple[Tensor, Tensor]:
    """Class 0 has clusters of 50, 5 and 1; class 1 one of 4; class 2 two of 1."""
    y = torch.tensor([0] * 56 + [1] * 4 + [2] * 2)
    cluster = torch.tensor([0] * 50 + [1] * 5 + [2] + [3] * 4 + [4, 5])
    order = torch.randperm(62, generator=generator())
    return y[order], cluster[order]


def test_anchors_are_drawn_alike_over_classes_and_over_their_clusters() -> None:
    y, cluster = clustered()
    draws, of_class = 6000, {0: 3, 1: 1, 2: 2}  # clusters
    rows = draw_anchors(y, cluster, draws, generator())
    assert rows.shape == (draws,)
    found = Counter(zip(y[rows].tolist(), cluster[rows].tolist(), strict=True))
    assert len(found) == 6
    for (j, _), number in found.items():
        share = 1 / 3 / of_class[j]
        assert abs(number - draws * share) <= 5 * math.sqrt(draws * share * (1 - share))
    assert len(set(rows.tolist())) == 62  # and every sample is one, sooner or later


def test_anchors_are_repeatable_and_differ_between_generators() -> None:
    first, second, other = (draw_anchors(*clustered(), 40, generator(s)) for s in (0, 0, 1))
    assert torch.equal(first, second)
    assert not torch.equal(first, other)
