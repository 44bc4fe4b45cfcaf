"""What the rivals ask of the network: distances between images, or of the head alone."""

import copy

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

import rival_loops as loops
from deep_oversampling import Network, Plan, Samples, embed
from deep_oversampling.objectives import Objective, single_task
from deep_oversampling.rivals.lmle import MARGINS, by_local_margin, local_margins, triple_header
from deep_oversampling.rivals.method import Contest, Trained
from deep_oversampling.rivals.retraining import head_only, start_head_anew
from deep_oversampling.rivals.tables import Redrawn
from deep_oversampling.rivals.triplet import MARGIN, Group, triplet_objective
from deep_oversampling.seeding import streams
from deep_oversampling.stages import Stage, train_stages
from toy import blobs, generator, small, weights

close = torch.testing.assert_close
SCALES = {"typical": 1.0, "large": 1e3, "small": 1e-3}


def group(size: int, scale: float = 1.0, b: int = 8) -> Group:
    x = scale * torch.randn(b * size, 4, generator=generator())
    return Group(x, size, torch.rand(b, size - 2, generator=generator()) < 0.6)


def unit_vectors(network: Network, batch: Group) -> list[list[list[float]]]:
    rows = iter(normalize(network.embed(batch.x), dim=1).tolist())
    return [[next(rows) for _ in range(batch.size)] for _ in range(len(batch.x) // batch.size)]


@pytest.mark.parametrize("scale", SCALES.values(), ids=SCALES)
def test_triplet_objective_is_its_formula(scale: float) -> None:
    network, batch = small(), group(3, scale)
    expected = [
        max(0.0, loops.squared_distance(a, p) - loops.squared_distance(a, n) + MARGIN)
        for a, p, n in unit_vectors(network, batch)
    ]
    nothing, ell = triplet_objective(network, batch)
    close(ell, torch.tensor(expected), atol=1e-5, rtol=1e-4)
    assert torch.equal(nothing, torch.zeros_like(ell))
    assert any(expected)


@pytest.mark.parametrize("scale", SCALES.values(), ids=SCALES)
def test_triple_header_is_its_formula(scale: float) -> None:
    network, batch = small(), group(5, scale)
    expected = []
    for (anchor, *others), counts in zip(
        unit_vectors(network, batch), batch.counts.tolist(), strict=True
    ):
        far = [loops.squared_distance(anchor, other) for other in others]
        hinges = [max(0.0, MARGINS[i] + far[i] - far[i + 1]) for i in range(3)]
        expected.append(sum(h for h, count in zip(hinges, counts, strict=True) if count))
    nothing, ell = triple_header(network, batch)
    close(ell, torch.tensor(expected), atol=1e-5, rtol=1e-4)
    assert torch.equal(nothing, torch.zeros_like(ell))
    assert any(expected)


def test_margins_that_do_not_count_give_no_gradient() -> None:
    network, batch = small(), group(5)
    batch = Group(batch.x, 5, torch.zeros(8, 3, dtype=torch.bool))
    _, ell = triple_header(network, batch)
    assert torch.equal(ell, torch.zeros(8))
    gradients = torch.autograd.grad(ell.sum(), list(network.embedder.parameters()))
    assert not any(gradient.any() for gradient in gradients)


class Points(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x


@pytest.mark.parametrize(
    ("objective", "size"), [(triplet_objective, 3), (triple_header, 5)], ids=["3", "5"]
)
def test_groups_in_order_cost_nothing_and_in_reverse_they_do(
    objective: Objective, size: int
) -> None:
    """On the unit circle, each of the others a quarter of π further from the anchor."""
    angle = torch.arange(size) * torch.pi / 4
    circle = torch.stack([angle.cos(), angle.sin()], 1)
    network = Network(Points(), nn.Linear(2, 3))
    counts = torch.ones(1, size - 2, dtype=torch.bool)
    for scale in (1.0, 50.0):  # only directions count
        _, ordered = objective(network, Group(scale * circle, size, counts))
        _, reverse = objective(
            network, Group(scale * circle[[0, *range(size - 1, 0, -1)]], size, counts)
        )
        assert float(ordered) == 0.0
        assert float(reverse) > MARGIN


@pytest.mark.parametrize(
    ("objective", "size"), [(triplet_objective, 3), (triple_header, 5)], ids=["3", "5"]
)
def test_distances_teach_f_and_not_g(objective: Objective, size: int) -> None:
    network = small()
    torch.stack(objective(network, group(size))).sum().backward()
    assert all(p.grad is None for p in network.classifier.parameters())
    assert any(bool(p.grad.any()) for p in network.embedder.parameters())


# the head alone


def head_stage(network: Network, samples: Samples) -> Stage:
    fixed = Samples(embed(network, samples.x), samples.y)
    return Stage("head", Redrawn(fixed, torch.arange(len(samples))), head_only)


def test_head_only_is_single_task_on_embeddings() -> None:
    samples, network = blobs(), small()
    fixed = Samples(embed(network, samples.x), samples.y)
    ell, nothing = head_only(network, fixed)
    expected = [
        loops.entropy(row, label)
        for row, label in zip(network(samples.x).tolist(), samples.y.tolist(), strict=True)
    ]
    close(ell, torch.tensor(expected))
    assert torch.equal(nothing, torch.zeros_like(ell))


def test_head_only_trains_g_alone() -> None:
    """After a stage of plain training, so that the optimiser has momentum for f as well."""
    samples, network = blobs(), small()
    kept = {}

    def stages():
        yield Stage("single", samples, single_task)
        kept["before"] = copy.deepcopy(network)
        yield head_stage(network, samples)

    train_stages(network, stages(), batch_size=8, rng=streams(0))
    before = kept["before"]
    assert torch.equal(weights(network.embedder), weights(before.embedder))
    assert not torch.equal(weights(network.classifier), weights(before.classifier))
    assert not torch.equal(weights(before), weights(small()))


def test_head_starts_anew_and_f_is_kept() -> None:
    network, again, other = small(), small(), small()
    for one, seed in ((network, 0), (again, 0), (other, 1)):
        state = torch.get_rng_state()
        start_head_anew(one, streams(seed))
        assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(weights(network.embedder), weights(small().embedder))
    assert not torch.equal(weights(network.classifier), weights(small().classifier))
    assert torch.equal(weights(network.classifier), weights(again.classifier))
    assert not torch.equal(weights(network.classifier), weights(other.classifier))


def test_contest_counts_the_rows_of_a_round_of_dos() -> None:
    plan = Plan(k=[0, 2, 5], r=[1, 2, 7])
    contest = Contest(blobs((20, 12, 6)), plan, 1, 1, streams(0))
    assert contest.presented == 20 + 24 + 42


# the read-out by local margins


@pytest.mark.parametrize(
    "labels", [(0, 0, 0, 0, 1, 1, 2), (0, 1, 2), (2, 1, 1, 1, 1, 1, 0)], ids=str
)
def test_local_margins_are_their_formula(labels: tuple[int, ...]) -> None:
    distance = torch.rand(20, len(labels), generator=generator(), dtype=torch.float64)
    found = local_margins(distance, torch.tensor(labels), 3)
    for row, margins in zip(distance.tolist(), found.tolist(), strict=True):
        expected = [loops.local_margin(row, labels, j, neighbours=3) for j in range(3)]
        assert margins == pytest.approx(expected)


def test_a_class_without_clusters_is_never_the_nearest() -> None:
    distance = torch.rand(20, 4, generator=generator())
    found = local_margins(distance, torch.tensor([0, 0, 2, 2]), 3)
    assert found.isfinite().all()
    assert not (found.argmax(1) == 1).any()
    assert (found.softmax(1)[:, 1] == 0).all()


def test_the_largest_margin_is_that_of_the_only_class() -> None:
    found = local_margins(torch.rand(5, 2, generator=generator()), torch.tensor([1, 1]), 3)
    assert found.isfinite().all()
    assert (found.argmax(1) == 1).all()


def on_a_circle(counts: tuple[int, ...], seed: int) -> Samples:
    """Classes in directions of their own, with a little noise."""
    y = torch.arange(len(counts)).repeat_interleave(torch.tensor(counts))
    angle = 2 * torch.pi * y / len(counts) + 0.02 * torch.randn(len(y), generator=generator(seed))
    return Samples(torch.stack([angle.cos(), angle.sin()], 1), y)


@pytest.mark.parametrize("counts", [(60, 50, 40), (100, 5, 1), (45, 30)], ids=str)
def test_clusters_far_apart_are_classified_perfectly(counts: tuple[int, ...]) -> None:
    network = Network(Points(), nn.Linear(2, len(counts)))
    train, test = on_a_circle(counts, 0), on_a_circle((10,) * len(counts), 1)
    (report,) = by_local_margin([Trained(network, train, test)])
    for measured in report.mean().values():
        assert measured == pytest.approx(1.0)


def test_swapped_labels_are_classified_wrongly() -> None:
    network = Network(Points(), nn.Linear(2, 2))
    train, test = on_a_circle((40, 40), 0), on_a_circle((10, 10), 1)
    (report,) = by_local_margin([Trained(network, train, Samples(test.x, 1 - test.y))])
    assert report.mean()["f1"] == 0.0
