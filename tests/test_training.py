"""One loop for both tasks: what it presents, and what it reduces to."""

from functools import partial
from itertools import count

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import cross_entropy
from torch.optim import SGD

from deep_oversampling import Network, Plan, Samples, TrainingError, embed
from deep_oversampling.objectives import multi_task, single_task
from deep_oversampling.presenting import Table, batches
from deep_oversampling.seeding import streams
from deep_oversampling.training import LastGood
from toy import COUNTS, blobs, generator, overloaded, small, train, train_round, weights

close = torch.testing.assert_close


@given(st.integers(1, 50), st.integers(1, 60))
def test_batches_present_every_row_once(size: int, batch_size: int) -> None:
    rows, present = batches(size, batch_size, generator())
    assert rows.shape == present.shape == (-(-size // batch_size), batch_size)
    assert sorted(rows[present].tolist()) == list(range(size))
    assert 0 <= rows.min() <= rows.max() < size  # padding can be gathered


@given(st.integers(1, 50), st.integers(1, 60))
def test_batches_have_as_many_rows_but_for_one(size: int, batch_size: int) -> None:
    counts = batches(size, batch_size, generator())[1].sum(1)
    assert counts.max() - counts.min() <= 1


def test_batches_are_shuffled_by_their_generator() -> None:
    first, second, other = (batches(40, 8, generator(seed))[0] for seed in (0, 0, 1))
    assert torch.equal(first, second)
    assert not torch.equal(first, other)
    assert first.flatten().tolist() != list(range(40))


def plain_loop(network: Network, samples: Samples, *, rounds: int, batch_size: int) -> None:
    """Ordinary PyTorch: shuffled batches of as many rows, cross-entropy, SGD."""
    optimizer = SGD(network.parameters(), lr=0.01, momentum=0.9)
    for t in range(rounds):
        rows, present = batches(len(samples), batch_size, streams(3)("training", t))
        for chosen, real in zip(rows, present, strict=True):
            batch = chosen[real]
            optimizer.zero_grad()
            cross_entropy(network(samples.x[batch]), samples.y[batch]).backward()
            optimizer.step()


@pytest.mark.parametrize("limit", [None, 0.3])
@pytest.mark.parametrize("batch_size", [8, 19, 38])  # 38 samples: padded, even, one batch
def test_without_over_sampling_it_is_plain_training(batch_size: int, limit: float | None) -> None:
    samples, ours, plain = blobs(), small(), small()
    train(ours, samples, Plan.plain(3), rounds=3, seed=3, batch_size=batch_size, pull_limit=limit)
    plain_loop(plain, samples, rounds=6, batch_size=batch_size)
    assert not torch.equal(weights(plain), weights(small()))
    close(weights(ours), weights(plain), rtol=1e-5, atol=1e-6)


def test_without_neighbours_it_is_random_over_sampling() -> None:
    """k = 0, r = 4: plain training on data in which the samples stand r_j times."""
    samples, ours, plain = blobs(), small(), small()
    r = torch.tensor([1, 2, 4])
    train(ours, samples, Plan(k=[0, 0, 0], r=r), initial_rounds=0, rounds=2, seed=3, batch_size=8)
    repeated = samples[torch.arange(len(samples)).repeat_interleave(r[samples.y])]
    plain_loop(plain, repeated, rounds=2, batch_size=8)
    close(weights(ours), weights(plain), rtol=1e-5, atol=1e-6)


def one_step(network: Network, table: Table, batch_size: int, objective=single_task) -> None:
    train_round(network, table, objective, partial(SGD, lr=0.5), batch_size=batch_size)


@pytest.mark.parametrize("limit", [None, 0.3])
def test_padding_of_the_batch_changes_nothing(limit: float | None) -> None:
    """A multi-task step on 7 rows in a batch of 20 is the step on a batch of 7."""
    samples = blobs((4, 3))
    z = overloaded(samples, embed(small(2), samples.x), [1, 2], [1, 1])
    padded, short = small(2), small(2)
    one_step(padded, z, 20, multi_task(10.0, limit))
    one_step(short, z, 7, multi_task(10.0, limit))
    assert not torch.equal(weights(padded), weights(small(2)))
    close(weights(padded), weights(short), rtol=1e-5, atol=1e-6)


def test_returned_losses_are_means_over_the_rows() -> None:
    """Also where batches differ: every row counts the same."""
    samples, network = blobs(), small()
    z = overloaded(samples, embed(network, samples.x), [0, 2, 3], [1, 1, 2])
    still = partial(SGD, lr=0.0)
    objective = multi_task(10.0, 0.3)
    found = train_round(network, z, objective, still, batch_size=8)
    expected = [float(ell.detach().mean()) for ell in objective(network, z[torch.arange(len(z))])]
    assert found == pytest.approx(expected, rel=1e-5)


def test_single_task_has_no_embedding_loss() -> None:
    samples, network = blobs(), small()
    ell, nothing = single_task(network, samples)
    close(ell, cross_entropy(network(samples.x), samples.y, reduction="none"))
    assert torch.equal(nothing, torch.zeros(len(samples)))


def test_network_is_left_in_evaluation_mode() -> None:
    network = small().train()
    one_step(network, blobs(), 8)
    assert not any(module.training for module in network.modules())


def breaking(after: int):
    """Single-task losses that turn NaN at one step."""
    steps = count(1)

    def objective(network: Network, batch: Samples):
        ell, nothing = single_task(network, batch)
        return (ell * torch.nan if next(steps) == after else ell), nothing

    return objective


@pytest.mark.parametrize("after", [1, 3, 5])
def test_loss_that_is_not_finite_names_its_step(after: int) -> None:
    with pytest.raises(TrainingError, match=f"NaN or infinity at step {after} of 5"):
        one_step(small(), blobs(), 8, breaking(after))


def test_weights_that_are_not_finite_after_the_last_step_are_found_too() -> None:
    network, samples = small(), blobs()
    large = Samples(100 * samples.x, samples.y)
    with pytest.raises(TrainingError, match="at step 1 of 1;"):
        train_round(network, large, single_task, partial(SGD, lr=3e38), batch_size=len(large))


def test_last_good_weights_are_put_back_and_the_place_is_named() -> None:
    network = small()
    good = LastGood(network)
    good.keep("round 7")
    next(network.parameters()).data.fill_(torch.nan)
    error = good.put_back(TrainingError("lost"))
    assert str(error).startswith("round 7: lost (the network has its weights from before that")
    assert torch.equal(weights(network), weights(small()))


def test_networks_in_double_precision_are_trained() -> None:
    network, samples = small().double(), blobs()
    history = train(network, Samples(samples.x.double(), samples.y))
    assert weights(network).dtype == torch.float64
    assert history.rounds[-1].presented > sum(COUNTS)
