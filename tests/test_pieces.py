"""Pictures that are made as their targets are: with a piece of an in-class neighbour."""

import copy
from functools import partial

import pytest
import torch
from torch.optim import SGD
from torch.utils.data import DataLoader

from contests import pictures, small_lenet
from deep_oversampling import (
    CropAndFlip,
    DOSClassifier,
    Engine,
    InputError,
    MicroClusters,
    Network,
    Plan,
    Samples,
    View,
    dos_loss,
    embed,
    fit,
    fit_many,
    oversample,
    resnet32,
    training,
    with_pieces,
)
from deep_oversampling.algorithm import deep_over_sampling
from deep_oversampling.losses import adjusted, entropy
from deep_oversampling.pieces import Pieced
from deep_oversampling.rivals import logit_adjusted
from deep_oversampling.seeding import streams
from test_replaying import Again
from toy import generator, weights

close = torch.testing.assert_close
COUNTS = (6, 4, 1)


def numbered(counts: tuple[int, ...] = COUNTS) -> Samples:
    """Every picture is of one grey, its number."""
    y = torch.repeat_interleave(torch.arange(len(counts)), torch.tensor(counts))
    x = torch.arange(len(y)).view(-1, 1, 1, 1).expand(-1, 2, 8, 6)
    return Samples(x.to(torch.uint8).contiguous(), y)


def greys(samples: Samples) -> torch.Tensor:
    """An embedding for which a picture of parts lies where its parts' mean does."""
    return samples.x[:].float().mean((1, 2, 3)).unsqueeze(1)


def pieced(share: float = 1.0, plan: Plan | None = None, samples: Samples | None = None) -> Pieced:
    samples = samples or numbered()
    plan = plan or Plan([2, 2, 0], [20, 20, 20])
    z = oversample(samples, greys(samples), plan, generator=generator())
    return with_pieces(z, share, generator=generator())


def everything(table: Pieced) -> MicroClusters:
    return table[torch.arange(len(table))]


# the pictures


def test_a_picture_shows_a_rectangle_of_one_of_its_nearest_in_class_neighbours() -> None:
    table = pieced()
    batch, anchor, seen = everything(table), table.table.anchor, 0
    assert torch.equal(batch.y, table.samples.y[anchor])
    nearest = {0: {1, 2}, 1: {0, 2}, 2: {1, 3}, 3: {2, 4}, 4: {3, 5}, 5: {3, 4}}
    nearest |= {6: {7, 8}, 7: {6, 8}, 8: {7, 9}, 9: {7, 8}, 10: set()}
    for x, i in zip(batch.x, anchor.tolist(), strict=True):
        others = set(x.unique().tolist()) - {i}
        assert others <= nearest[i]
        if others:
            (other,) = others
            inside = (x == other).all(0)
            rows, columns = inside.any(1), inside.any(0)
            assert torch.equal(inside, rows.unsqueeze(1) & columns)
            seen += 1
    assert seen > 0.7 * len(table) * 10 / 11


def test_all_neighbours_and_all_places_are_drawn() -> None:
    table = pieced()
    assert table.member[table.table.hood == 0].unique().tolist() == [1, 2]
    inside = everything(table).x[:, 0] != table.samples.x[table.table.anchor, 0]
    assert bool(inside.any(0).all())
    assert not bool(inside.all(0).any())


def test_some_pictures_stay_as_they_are() -> None:
    own = numbered().x.repeat_interleave(20, 0)
    assert torch.equal(everything(pieced(0.0)).x, own)
    changed = [(everything(pieced(o)).x != own).flatten(1).any(1)[:200] for o in (0.5, 1.0)]
    half, all_of_them = (float(one.float().mean()) for one in changed)
    assert 0.3 < half < 0.6 < 0.8 < all_of_them


def test_areas_are_uniform_but_for_what_the_border_cuts_off() -> None:
    whole = pieced(samples=numbered((40, 1)), plan=Plan([5, 0], [100, 1]))
    a = everything(whole).w[:4000, 1] * whole.table.variance
    assert 0.2 < float(a.mean()) < 0.5
    assert float(a.min()) < 0.02
    assert float(a.max()) > 0.8


def test_a_piece_is_what_its_bounds_say() -> None:
    table = pieced()
    top, bottom, left, right = table.piece.unbind(1)
    assert bool(((top >= 0) & (top <= bottom) & (bottom <= 8)).all())
    assert bool(((left >= 0) & (left <= right) & (right <= 6)).all())
    assert (int(bottom.max()), int(right.max())) == (8, 6)
    own = table.table.anchor[table.table.crowded]
    for row, x in enumerate(table[table.table.crowded].x):
        expected = torch.zeros(8, 6, dtype=torch.bool)
        expected[top[row] : bottom[row], left[row] : right[row]] = True
        assert torch.equal((x != own[row]).all(0), expected)


def test_neighbour_area_and_place_are_drawn_each_by_itself() -> None:
    table = pieced(0.5, samples=numbered((40, 1)), plan=Plan([2, 0], [200, 1]))
    top, bottom, left, right = table.piece.double().unbind(1)
    area, shown = (bottom - top) * (right - left), bottom > top
    assert float(area.max()) > 0.8 * 8 * 6  # of those that are shown, as large as they may be
    small = shown & (area < 6)
    assert int(small.sum()) > 200
    draws = [table.member.double(), area, (top + bottom) / 2, (left + right) / 2]
    found = torch.corrcoef(torch.stack(draws)[:, small])
    assert float((found - torch.eye(4)).abs().max()) < 0.2
    assert draws[2][small].mean() == pytest.approx(4, abs=0.5)
    assert draws[3][small].mean() == pytest.approx(3, abs=0.4)


# the targets


def test_targets_are_made_of_the_same_parts_as_pictures() -> None:
    """Where an embedding is the mean grey of a picture, it lies at the target already."""
    table = pieced()
    z = everything(table)
    w = z.w * table.table.variance
    close(w.sum(1), torch.cat([torch.ones(200), torch.zeros(20)]))  # one is alone in its class
    close((w.unsqueeze(-1) * z.v).sum(1)[:200], greys(Samples(z.x, z.y))[:200])


def test_g_learns_from_the_picture_alone() -> None:
    images, network = pictures((12, 8, 4)), small_lenet()
    z = oversample(images, embed(network, images.x), Plan([2] * 3, [1] * 3), generator=generator())
    batch = everything(with_pieces(z, 1.0, generator=generator()))
    close(dos_loss(network, batch, pull=0.0), entropy(network(batch.x), batch.y).mean())
    assert dos_loss(network, batch) > dos_loss(network, batch, pull=0.0)


def test_g_does_not_see_the_targets() -> None:
    """A batch norm in g would: what it is given is part of its mean."""
    images, f = pictures((12, 8, 4)), small_lenet().embedder
    network = Network(f, torch.nn.Sequential(torch.nn.BatchNorm1d(16), torch.nn.Linear(16, 3)))
    z = oversample(images, embed(network, images.x), Plan([2] * 3, [1] * 3), generator=generator())
    batch = everything(with_pieces(z, 1.0, generator=generator()))
    network.train()
    close(dos_loss(network, batch, pull=0.0), entropy(network(batch.x), batch.y).mean())


def test_rows_of_several_batches_are_those_of_each() -> None:
    table, rows = pieced(), torch.randperm(210, generator=generator()).view(3, 70)
    together = table[rows]
    for e in range(3):
        alone = table[rows[e]]
        for name in ("x", "y", "v", "w", "mask"):
            assert torch.equal(getattr(together, name)[e], getattr(alone, name))


def test_pictures_may_stay_where_they_are_stored() -> None:
    samples = numbered()
    stored = Samples(View(samples.x, torch.arange(len(samples))), samples.y)
    assert torch.equal(everything(pieced(samples=stored)).x, everything(pieced()).x)


def test_a_loader_presents_every_row_once() -> None:
    table = pieced()
    options = {"shuffle": True, "collate_fn": MicroClusters.joined, "generator": generator()}
    loader = DataLoader(table, batch_size=32, **options)
    found = torch.cat([batch.x.flatten(1) for batch in loader]).tolist()
    assert sorted(found) == sorted(everything(table).x.flatten(1).tolist())
    assert torch.equal(table[-1].x, everything(table).x[-1:])


# the margin


def test_a_margin_is_logit_adjustment_of_any_loss() -> None:
    counts, logits = torch.tensor([60, 30, 6]), torch.randn(12, 3, generator=generator())
    labels = torch.arange(12) % 3
    for tau in (0.5, 1.0):
        found = adjusted(entropy, counts, tau)(logits, labels)
        close(found, logit_adjusted(counts, tau)(logits, labels))
        close(found, entropy(logits + tau * (counts / counts.sum()).log(), labels))
    twice = adjusted(lambda logits, labels: 2 * entropy(logits, labels), counts, 1.0)
    close(twice(logits, labels), 2 * found)


# the algorithm


def stages_of(**options: object):
    images, network = pictures((12, 8, 4)), small_lenet()
    plan = Plan.in_part(images.class_counts, 2)
    given = {"rounds": 2, "initial_rounds": 1, "rng": streams(0), **options}
    return images, network, deep_over_sampling(network, images, plan, **given)


def test_initial_rounds_have_neither_pieces_nor_a_margin() -> None:
    images, network, stages = stages_of(pieces=0.5, tau=1.0)
    first, second, third = stages
    assert first.table is images
    close(first.objective(network, images)[0], entropy(network(images.x), images.y))
    assert isinstance(second.table, Pieced)
    assert not torch.equal(second.table.piece, third.table.piece)  # drawn anew
    batch = everything(second.table)
    expected = logit_adjusted(images.class_counts)(network(batch.x), batch.y)
    close(second.objective(network, batch)[0], expected)


@pytest.mark.parametrize("tau", [1.5, 0.0])
def test_margins_do_not_add_up(tau: float) -> None:
    """Another loss trains the initial rounds; after them it would be adjusted twice."""
    counts = pictures((12, 8, 4)).class_counts
    loss = logit_adjusted(counts, 3.0)
    images, network, (first, second, _) = stages_of(pieces=0.5, tau=tau, loss=loss)
    close(first.objective(network, images)[0], loss(network(images.x), images.y))
    batch = everything(second.table)
    expected = logit_adjusted(counts, tau)(network(batch.x), batch.y)
    close(second.objective(network, batch)[0], expected)


def trained(**options: object):
    images, network = pictures((30, 12, 6)), small_lenet()
    given = {"rounds": 2, "batch_size": 8, "augment": CropAndFlip(1), "device": "cpu"}
    history = fit(network, images, **{**given, **options})
    return network, history


def test_fit_levels_classes_in_part_and_has_a_margin_by_default() -> None:
    network, history = trained(pieces=0.5)
    plan = Plan.in_part(torch.tensor([30, 12, 6]))
    assert [one.presented for one in history.rounds] == [48, 48, 62, 62]
    assert plan.rows(torch.tensor([30, 12, 6])).tolist() == [30, 19, 13]
    assert history.rounds[-1].embedding_loss > 0
    said, _ = trained(pieces=0.5, tau=0.5, plan=plan)
    assert torch.equal(weights(network), weights(said))


@pytest.mark.parametrize("other", [{"pieces": 1.0}, {"tau": 1.0}, {"pull": 0.0}])
def test_every_option_changes_something(other: dict[str, float]) -> None:
    network, _ = trained(pieces=0.5)
    changed, _ = trained(**{"pieces": 0.5, **other})
    assert not torch.equal(weights(network), weights(changed))


def test_a_margin_can_be_had_without_pieces() -> None:
    plain, margined = trained()[0], trained(tau=1.0)[0]
    assert not torch.equal(weights(plain), weights(margined))


def test_several_networks_end_where_each_would_alone() -> None:
    images = pictures((30, 12, 6))
    options = {"pieces": 0.5, "rounds": 2, "batch_size": 8, "device": "cpu"}
    networks = [small_lenet(seed) for seed in (0, 1)]
    alone = [copy.deepcopy(one) for one in networks]
    fit_many(networks, images, at_once=2, **options)
    for seed, network in enumerate(alone):
        fit(network, images, seed=seed, **options)
        close(weights(networks[seed]), weights(network), rtol=1e-4, atol=1e-5)


def test_a_training_goes_on_where_it_was(tmp_path) -> None:
    whole, _ = trained(pieces=0.5)

    def stop(_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        trained(pieces=0.5, checkpoint=tmp_path, on_round=stop)
    network, _ = trained(pieces=0.5, checkpoint=tmp_path)
    assert torch.equal(weights(network), weights(whole))
    with pytest.raises(InputError, match=r"tau 0.5 instead of 2.0"):
        trained(pieces=0.5, tau=2.0, checkpoint=tmp_path)


def test_steps_can_be_replayed(monkeypatch: pytest.MonkeyPatch) -> None:
    eager, _ = trained(pieces=0.5)
    recorder, plain = Again(), training.Replay
    monkeypatch.setattr(training, "Replay", lambda step, _: plain(step, recorder))
    replayed, _ = trained(pieces=0.5)
    assert recorder.replayed > 0
    assert torch.equal(weights(eager), weights(replayed))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="CUDA graphs need a GPU")
@pytest.mark.usefixtures("deterministic")
def test_steps_are_recorded_on_a_gpu(caplog: pytest.LogCaptureFixture) -> None:
    found = []
    for engine in (Engine(replay=False), Engine()):
        network = resnet32(1, 3)
        options = {"optimizer": partial(SGD, lr=1e-3), "device": "cuda", "engine": engine}
        images = pictures((60, 40, 20))
        fit(network, images, pieces=0.5, augment=CropAndFlip(1), batch_size=16, **options)
        found.append(torch.cat([t.flatten().float() for t in network.state_dict().values()]))
    assert torch.equal(*found)
    assert caplog.records == []  # nothing refused


# scikit-learn


def test_the_estimator_has_them_too() -> None:
    images = pictures((30, 12, 6))
    made = DOSClassifier(pieces=0.5, rounds=1, augment=CropAndFlip(1), device="cpu", k=2)
    made.fit(images.x.numpy(), images.y.numpy())
    assert repr(made.plan_) == "Plan(k=[2, 2, 2], r=[1.0, 1.58, 2.24])"
    assert made.history_.rounds[-1].presented == 62
    named = DOSClassifier(pieces=0.5, minority=[2], k=2, rounds=1, device="cpu")
    named.fit(images.x.numpy(), images.y.numpy())
    assert repr(named.plan_) == "Plan(k=[0, 0, 2], r=[1, 1, 4])"
