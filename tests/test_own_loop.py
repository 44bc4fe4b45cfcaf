"""A training loop of one's own: tables in a DataLoader, batches that move, the loss of a batch."""

import copy
from dataclasses import fields

import pytest
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Subset

from deep_oversampling import InputError, MicroClusters, Plan, dos_loss, embed, fit, oversample
from deep_oversampling.objectives import multi_task
from deep_oversampling.oversampling import Overloaded
from deep_oversampling.seeding import streams
from toy import blobs, generator, small

PLAN = Plan(k=[0, 0, 3], r=[1, 1, 4])
ROWS = 20 + 12 + 4 * 6


def table(plan: Plan = PLAN) -> Overloaded:
    samples = blobs()
    return oversample(samples, embed(small(), samples.x), plan, generator=generator())


def rows_of(batch: MicroClusters) -> list[list[float]]:
    """What a batch presents, row by row, in an order that does not depend on the batch."""
    v = torch.zeros(len(batch.x), *batch.v.shape[1:])
    w = torch.zeros(len(batch.x), *batch.w.shape[1:])
    v[: len(batch.v)], w[: len(batch.w)] = batch.v, batch.w
    v[w == 0] = 0  # nobody's neighbours
    return sorted(torch.cat([batch.x, batch.y[:, None], v.flatten(1), w], 1).tolist())


def tensors(batch: MicroClusters) -> list[Tensor]:
    return [getattr(batch, field.name) for field in fields(batch)]


@pytest.mark.parametrize("batch_size", [1, 7, ROWS])
def test_a_loader_presents_every_row_of_the_table_once(batch_size: int) -> None:
    z = table()
    loader = DataLoader(
        z,
        batch_size=batch_size,
        shuffle=True,
        collate_fn=MicroClusters.joined,
        generator=generator(),
    )
    found = sorted(row for batch in loader for row in rows_of(batch))
    assert found == rows_of(z[torch.arange(len(z))])
    assert len(found) == ROWS


def test_only_rows_with_neighbours_carry_them_and_they_come_first() -> None:
    (batch,) = table().__getitems__(list(range(ROWS)))
    assert len(batch.v) == len(batch.w) == len(batch.mask) == 4 * 6
    assert batch.y[: 4 * 6].tolist() == [2] * 24
    assert 2 not in batch.y[4 * 6 :]


def test_single_rows_join_to_the_batch_that_is_asked_for_at_once() -> None:
    z, rows = table(), [3, ROWS - 1, 0, 17]
    one_by_one = MicroClusters.joined([z[row] for row in rows])
    assert rows_of(one_by_one) == rows_of(*z.__getitems__(rows))


def test_batches_of_different_shares_of_neighbours_join() -> None:
    z = table()
    parts = [part for start in (0, 20, 40) for part in z.__getitems__(list(range(start, ROWS)))]
    joined = MicroClusters.joined(parts)
    assert rows_of(joined) == sorted(row for part in parts for row in rows_of(part))
    assert joined.y[: len(joined.v)].tolist() == [2] * len(joined.v)


def test_a_row_out_of_the_table_ends_iteration_over_it() -> None:
    assert len(list(iter(table()))) == ROWS
    with pytest.raises(IndexError):
        table()[ROWS]
    z = table()
    assert rows_of(z[-1]) == rows_of(z[ROWS - 1])


def test_a_subset_of_a_table_is_a_dataset_too() -> None:
    z = table()
    loader = DataLoader(Subset(z, [1, 2, 3]), batch_size=3, collate_fn=MicroClusters.joined)
    assert [len(batch.x) for batch in loader] == [3]


def test_workers_can_make_the_batches() -> None:
    loader = DataLoader(
        table(),
        batch_size=20,
        num_workers=1,
        collate_fn=MicroClusters.joined,
    )
    assert sum(len(batch.x) for batch in loader) == ROWS


def test_a_batch_moves_as_a_whole() -> None:
    (batch,) = table().__getitems__([0, ROWS - 1])
    moved = batch.to("meta", non_blocking=True)
    assert {one.device.type for one in tensors(moved)} == {"meta"}
    assert [one.shape for one in tensors(moved)] == [one.shape for one in tensors(batch)]


def test_the_loss_is_the_mean_of_the_objective_with_the_defaults_of_fit() -> None:
    network, (batch,) = small(), table().__getitems__(list(range(ROWS)))
    ell_g, ell_f = multi_task(10.0, 0.3)(network, batch)
    assert torch.equal(dos_loss(network, batch), (ell_g + ell_f).mean())
    assert dos_loss(network, batch, pull=20.0) > dos_loss(network, batch)


def test_without_over_sampling_it_is_the_cross_entropy() -> None:
    network, (batch,) = small(), table(Plan.plain(3)).__getitems__(list(range(38)))
    expected = torch.nn.functional.cross_entropy(network(batch.x), batch.y)
    torch.testing.assert_close(dos_loss(network, batch), expected)


@pytest.mark.parametrize(
    ("rows", "plan", "device", "message"),
    [
        (37, PLAN, "cpu", "found 37 embeddings of 38 samples"),
        (38, Plan.uniform(2), "cpu", "a plan for 2 of 3 classes"),
        (38, PLAN, "meta", "must be on one device, found cpu and meta; move the samples"),
    ],
)
def test_what_does_not_go_together_is_told(
    rows: int, plan: Plan, device: str, message: str
) -> None:
    v = torch.rand(rows, 5, device=device)
    with pytest.raises(InputError, match=message):
        oversample(blobs(), v, plan, generator=generator())


def test_a_loop_of_ones_own_ends_where_fit_ends() -> None:
    samples, ours = blobs(), small()
    theirs = copy.deepcopy(ours)
    fit(ours, samples, PLAN, rounds=3, initial_rounds=0, batch_size=len(samples), device="cpu")

    optimizer = torch.optim.SGD(theirs.parameters(), lr=0.01, momentum=0.9)
    for t in range(3):
        rng = streams(0)
        z = oversample(samples, embed(theirs, samples.x), PLAN, generator=rng("weights", t))
        order = torch.randperm(len(z), generator=rng("training", t))
        rows = [part.tolist() for part in order.tensor_split(-(-len(z) // len(samples)))]
        for batch in DataLoader(z, batch_sampler=rows, collate_fn=MicroClusters.joined):
            optimizer.zero_grad()
            dos_loss(theirs, batch).backward()
            optimizer.step()
    for mine, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(mine, other)
