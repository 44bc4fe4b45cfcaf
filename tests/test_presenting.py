"""A round's batches: every row once, for every member, with neighbours only where there are any."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from deep_oversampling import Samples, View, embed
from deep_oversampling import presenting as room
from deep_oversampling.objectives import multi_task
from deep_oversampling.oversampling import Overloaded
from deep_oversampling.presenting import Chunk, Presentation
from deep_oversampling.trees import leaves
from toy import blobs, generator, overloaded, small

CPU = torch.device("cpu")
close = torch.testing.assert_close


def numbered(m: int) -> Samples:
    """Sample i is the number i."""
    return Samples(torch.arange(float(m)).view(m, 1), torch.arange(m) % 2, ["a", "b"])


def chunks(tables: list, batch_size: int, **options) -> list[Chunk]:
    draws = [generator(seed) for seed in range(len(tables))]
    options = {"batch_size": batch_size, "generators": draws, "device": CPU, **options}
    return list(Presentation(tables, **options))


@given(st.lists(st.integers(1, 30), min_size=1, max_size=4), st.integers(1, 12))
def test_every_row_of_every_member_counts_once(sizes: list[int], batch_size: int) -> None:
    seen: list[list[float]] = [[] for _ in sizes]
    for chunk in chunks([numbered(size) for size in sizes], batch_size):
        for step in range(len(chunk)):
            for e in range(len(sizes)):
                there = chunk.share[step, e] > 0
                seen[e] += chunk.batch.x[step, e, there, 0].tolist()
                awake = chunk.awake is None or bool(chunk.awake[e])
                assert float(chunk.share[step, e].sum()) == pytest.approx(float(awake))
    assert [sorted(rows) for rows in seen] == [list(map(float, range(size))) for size in sizes]


def test_a_member_that_is_done_sleeps() -> None:
    found = chunks([numbered(20), numbered(5), numbered(11)], 5)
    awake = [None if chunk.awake is None else chunk.awake.tolist() for chunk in found]
    assert awake == [None, [True, False, True], [True, False, False]]
    assert [len(chunk) for chunk in found] == [1, 2, 1]


def test_a_member_without_a_table_sleeps_from_the_start() -> None:
    (chunk,) = chunks([numbered(6), None], 3)
    assert chunk.awake.tolist() == [True, False]
    assert float(chunk.share[:, 1].sum()) == 0


@pytest.mark.parametrize("size", [1, 3, 7])
def test_chunks_are_no_larger_than_they_may_be(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(room, "_STEPS", size)
    found = chunks([numbered(100)], 10)
    assert [len(chunk) for chunk in found] == [size] * (10 // size) + [10 % size] * (10 % size > 0)
    whole = torch.cat([chunk.batch.x for chunk in found])
    monkeypatch.undo()
    assert torch.equal(whole, torch.cat([chunk.batch.x for chunk in chunks([numbered(100)], 10)]))


def test_large_samples_make_small_chunks() -> None:
    large = Samples(torch.zeros(40, 500_000), torch.arange(40) % 2)
    sizes = [len(chunk) for chunk in chunks([large], 4)]  # 8 MB a step
    assert sizes == [4, 4, 2]


def test_a_view_is_presented_as_what_it_shows() -> None:
    stored = torch.arange(24.0).view(12, 2)
    view = View(stored, torch.tensor([3, 3, 0, 7, 11]))
    y = torch.tensor([0, 1, 0, 1, 1])
    (one,), (other,) = chunks([Samples(view, y)], 2), chunks([Samples(view[:], y)], 2)
    assert torch.equal(one.batch.x, other.batch.x)


# neighbours


def many() -> Overloaded:
    samples = blobs((300, 40, 10))
    return overloaded(samples, samples.x, [0, 2, 3], [1, 1, 4])


def test_rows_with_neighbours_come_first_and_no_others_have_room() -> None:
    z = many()
    has = z.has_neighbours
    assert int(has.sum()) == 40 + 40
    for chunk in chunks([z], 30):
        clusters = chunk.batch
        head = clusters.mask.shape[2]
        assert head < 30  # of which about six are expected
        first = clusters.y[:, 0] > 0  # the classes with neighbours
        assert not first[:, head:].any()
        for step in range(len(chunk)):
            order = first[step].long()
            assert torch.equal(order, order.sort(descending=True).values)
            close(clusters.mask[step, 0, :, 0].long(), order[:head])


def test_the_shape_is_the_same_in_every_round() -> None:
    shapes = set()
    for seed in range(20):
        (first, *_) = chunks([many()], 30, generators=[generator(seed)], steady=True)
        shapes.add(tuple(first.batch.v.shape[2:]))
    assert len(shapes) == 1


def test_no_neighbours_at_all_need_no_room() -> None:
    samples = blobs()
    (chunk,) = chunks([overloaded(samples, samples.x, [0, 0, 0], [1, 1, 2])], 8)
    assert chunk.batch.v.shape[2] == 0


def test_losses_are_those_of_the_rows_whatever_their_order() -> None:
    network, samples = small(), blobs((300, 40, 10))
    z = overloaded(samples, embed(network, samples.x), [0, 2, 3], [1, 1, 4])
    objective = multi_task(10.0, 0.3)
    ell_g, ell_f = (ell.detach().mean() for ell in objective(network, z[torch.arange(len(z))]))
    sums = torch.zeros(2)
    for chunk in chunks([z], 30):
        for step in range(len(chunk)):
            batch = room.changed(chunk.batch, lambda t, s=step: t[s, 0])
            there = chunk.share[step, 0] > 0
            sums += torch.stack([ell.detach()[there].sum() for ell in objective(network, batch)])
    close(sums / len(z), torch.stack([ell_g, ell_f]))


def test_members_with_other_k_are_padded_under_their_masks() -> None:
    z = many()
    narrow = overloaded(z.samples, z.samples.x, [0, 1, 1], [1, 1, 4])
    for chunk in chunks([z, narrow], 30):
        assert chunk.batch.mask.shape[3] == 3
        assert not chunk.batch.mask[:, 1, :, 1:].any()
        assert (chunk.batch.w[:, 1, :, 1:] == 0).all()
        assert (chunk.batch.v[:, 1, :, 1:] == 0).all()


def test_tensors_of_a_batch_begin_with_steps_and_members() -> None:
    (chunk,) = chunks([overloaded(blobs(), blobs().x, [0, 1, 2], [1, 1, 2])] * 3, 8)
    assert {tuple(leaf.shape[:2]) for leaf in leaves(chunk.batch)} == {(len(chunk), 3)}


def test_heads_are_what_is_cut() -> None:
    z = overloaded(blobs(), blobs().x, [0, 1, 2], [1, 1, 2])
    rows = torch.arange(8)
    whole, cut = z[rows], replace(z, heads=3)[rows]
    assert cut.v.shape[0] == cut.w.shape[0] == cut.mask.shape[0] == 3
    assert torch.equal(cut.v, whole.v[:3])
    assert torch.equal(cut.x, whole.x)
