"""Embeddings that training reads, and sums over all: what is not kept is not missed."""

from functools import partial

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from deep_oversampling import (
    InputError,
    Network,
    Peers,
    Plan,
    Samples,
    TrainingError,
    View,
    embed,
    oversample,
)
from deep_oversampling import embeddings as room
from deep_oversampling import moments as sums
from deep_oversampling.embeddings import Embeddings, embed_classes
from deep_oversampling.history import spread
from deep_oversampling.moments import Moments, Spread, moments_of, total_variance
from peers_in_threads import shared
from strategies import Problem, problems
from toy import blobs, generator, small

WANTED = torch.tensor([False, True, True])


@pytest.fixture(params=[15, 80, 50_000], ids="blocks of {}".format)
def _blocks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "_BLOCK", request.param)


def in_small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "in_chunks", partial(room.in_chunks, most=5))


@pytest.mark.usefixtures("_blocks")
@pytest.mark.parametrize("wanted", [[0, 1, 1], [0, 0, 0], [1, 1, 1], [0, 0, 1]])
def test_what_is_kept_is_what_embed_gives(
    wanted: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    in_small_chunks(monkeypatch)
    network, samples, classes = small(), blobs(), torch.tensor(wanted).bool()
    found = embed_classes(network, samples, classes)
    v = embed(network, samples.x, batch_size=5)
    assert torch.equal(found.rows, classes[samples.y].nonzero().flatten())
    assert torch.equal(found.v, v[found.rows])
    assert found.v.shape == (len(found.rows), 5)
    torch.testing.assert_close(found.variance, total_variance(v))
    assert found.spread.within == pytest.approx(spread(v, samples.y, 3).within)
    assert found.spread.between == pytest.approx(spread(v, samples.y, 3).between)


def test_blocks_wait_for_no_more_than_they_must(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many chunks there are, the memory of one block and one chunk is enough."""
    monkeypatch.setattr(room, "_BLOCK", 30)
    chunks = torch.arange(55.0).view(11, 5).split(2)  # of ten numbers, the last one of five
    blocks = list(room._blocks(iter(chunks)))
    assert [len(block) for block in blocks] == [6, 5]
    assert torch.equal(torch.cat(blocks), torch.cat(chunks))


def test_blocks_may_be_single_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "in_chunks", partial(room.in_chunks, most=1))
    monkeypatch.setattr(room, "_BLOCK", 1)
    network, samples = small(), blobs()
    v = embed(network, samples.x, batch_size=1)
    found = embed_classes(network, samples, WANTED)
    assert torch.equal(found.v, v[found.rows])
    assert torch.equal(found.moments.origin, v[0].double())
    torch.testing.assert_close(found.variance, total_variance(v))


def test_variance_is_that_of_all_samples_to_the_last_digit() -> None:
    """In single precision, as torch computes it: trainings are as they were."""
    network, samples = small(), blobs((300, 200, 100))
    v = embed(network, samples.x)
    assert torch.equal(
        embed_classes(network, samples, WANTED).variance, v.var(0, correction=0).sum()
    )


def test_views_are_embedded_as_what_they_show() -> None:
    network, samples = small(), blobs()
    view = Samples(View.of(samples.x), samples.y)
    one, other = (embed_classes(network, each, WANTED) for each in (samples, view))
    assert torch.equal(one.v, other.v)


class Moved:
    """Every sample by numbers of its own."""

    draws = 2

    def __call__(self, x: Tensor, u: Tensor) -> Tensor:
        return x + u.sum(1, keepdim=True)


@pytest.mark.parametrize("processes", [1, 3])
def test_changed_copies_are_the_same_for_any_chunks_and_processes(
    processes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    samples, augment = blobs(), Moved()
    networks = [small() for _ in range(processes)]  # here: draws of threads would mingle
    u = torch.rand(len(samples), 2, generator=generator())
    expected = embed(networks[0], augment(samples.x, u))
    in_small_chunks(monkeypatch)

    def one(peers: Peers) -> Embeddings:
        views = {"augment": augment, "generator": generator()}
        return embed_classes(networks[peers.rank], samples, WANTED, **views, peers=peers)

    for found in shared(processes, one) if processes > 1 else [one(Peers())]:
        torch.testing.assert_close(found.v, expected[found.rows])
        torch.testing.assert_close(found.variance, total_variance(expected))


def test_embeddings_at_hand_are_kept_alike() -> None:
    network, samples = small(), blobs()
    one = embed_classes(network, samples, WANTED)
    other = Embeddings.of(embed(network, samples.x), samples, WANTED)
    assert torch.equal(one.rows, other.rows)
    assert torch.equal(one.v, other.v)
    assert one.variance == other.variance
    assert one.spread == other.spread
    assert other.known is None  # nobody has asked g


@pytest.mark.usefixtures("_blocks")
@pytest.mark.parametrize("many", [2, 3])
def test_embeddings_that_are_shared_are_those_of_one(
    many: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_small_chunks(monkeypatch)
    samples, alone = blobs(), embed_classes(small(seed=7), blobs(), WANTED)
    networks = [small(seed=7) for _ in range(many)]  # here: draws of threads would mingle
    assert alone.known == pytest.approx(0.1)  # untrained: a lucky guess

    def work(one: Peers) -> Embeddings:
        return embed_classes(networks[one.rank], samples, WANTED, peers=one)

    for found in shared(many, work):
        torch.testing.assert_close(found.v, alone.v)
        assert torch.equal(found.rows, alone.rows)
        torch.testing.assert_close(found.variance, alone.variance)
        assert found.spread.between == pytest.approx(alone.spread.between)
        assert found.known == alone.known
        assert found.spread.within == pytest.approx(alone.spread.within)


def test_mode_is_as_it_was_and_gradients_are_not_kept() -> None:
    network = small().train()
    assert not embed_classes(network, blobs(), WANTED).v.requires_grad
    assert network.training
    assert torch.is_grad_enabled()


class Broken(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.where(x[:, :1] < 2.0, torch.nan)


@pytest.mark.usefixtures("_blocks")
@pytest.mark.parametrize("row", [0, 2, 37])
def test_embeddings_that_are_no_numbers_are_named(
    row: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of classes that are not kept as well."""
    in_small_chunks(monkeypatch)
    x = torch.zeros(38, 4)
    x[row], x[37] = 3.0, 3.0
    samples = Samples(x, blobs().y)
    with pytest.raises(TrainingError, match=f"found NaN or infinity for sample {row};"):
        embed_classes(Network(Broken(), nn.Linear(4, 3)), samples, WANTED)


@pytest.mark.parametrize("k", [[0, 0, 2], [1, 1, 1], [0, 0, 0]])
def test_embeddings_of_other_classes_than_the_plans_are_refused(k: list[int]) -> None:
    samples = blobs()
    kept = embed_classes(small(), samples, WANTED)
    plan = Plan(k=k, r=[1, 1, 2])
    with pytest.raises(InputError, match=r"kept of the classes with k > 0.* of 18 samples"):
        oversample(samples, kept, plan, generator=generator())


# sums


@given(problems(), st.integers(1, 4), st.floats(-1e3, 1e3))
def test_sums_of_parts_are_those_of_all(problem: Problem, parts: int, far: float) -> None:
    n, v = len(problem.counts), problem.v.double() + far
    whole = moments_of(v, problem.y, n)
    cuts = list(zip(v.tensor_split(parts), problem.y.tensor_split(parts), strict=True))
    sent = [moments_of(some, y, n).flat() for some, y in cuts if len(y)]
    joined = Moments.joined(sent, n)
    torch.testing.assert_close(joined.variance(v.dtype), whole.variance(v.dtype))
    assert joined.count.tolist() == problem.counts
    assert joined.spread().within == pytest.approx(whole.spread().within, abs=1e-9)
    assert joined.spread().between == pytest.approx(whole.spread().between, abs=1e-9)


@pytest.mark.parametrize(("numbers", "rows"), [(10, [2, 2, 1]), (3, [1] * 5), (100, [5])])
def test_sums_take_a_block_at_a_time(
    numbers: int, rows: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A vector at least, however long it is."""
    monkeypatch.setattr(sums, "_BLOCK", numbers)
    add, seen = Moments.add, []

    def remember(self: Moments, v: Tensor, y: Tensor) -> None:
        seen.append(len(v))
        add(self, v, y)

    monkeypatch.setattr(Moments, "add", remember)
    v = torch.randn(5, 5, generator=generator())
    exact = v.double().var(0, correction=0).sum()
    torch.testing.assert_close(total_variance(v).double(), exact)
    assert seen == rows


def test_separation_is_between_over_within() -> None:
    assert Spread(within=0.5, between=2.0).ratio == 4.0
    assert Spread(within=0.0, between=2.0).ratio == float("inf")


@pytest.mark.parametrize("value", [0.1, -7.7, 1e5])
def test_a_collapse_is_seen_whoever_has_which_part(value: float) -> None:
    v, y = torch.full((30, 3), value, dtype=torch.double), torch.arange(30) % 3
    sent = [moments_of(v[part], y[part], 3).flat() for part in (slice(7), slice(7, 30))]
    with pytest.raises(TrainingError, match="found all 30 alike"):
        Moments.joined(sent, 3).variance(v.dtype)


@pytest.mark.parametrize("far", [0.0, 1e3])
def test_variance_is_exact_far_from_the_origin(far: float) -> None:
    v = torch.randn(5000, 4, generator=generator()) + far
    exact = v.double().var(0, correction=0).sum()
    torch.testing.assert_close(total_variance(v).double(), exact, rtol=1e-6, atol=0)
