"""Mixup and remix: the loss of mixed images, and whose label they have."""

import math

import pytest
import torch
from torch import Tensor, nn

import rival_loops as loops
from deep_oversampling import Network, Normalize, Samples
from deep_oversampling.objectives import Objective, single_task
from deep_oversampling.rivals.mixup import mixup, remix
from deep_oversampling.rivals.tables import MixedBatch
from toy import generator

close = torch.testing.assert_close
N = 3
COUNTS = torch.tensor([90, 30, 6])


def batch(
    b: int = 9, shares: str = "drawn", x: str = "vectors", labels: str = "different"
) -> MixedBatch:
    draw = generator()
    share = {
        "drawn": torch.rand(b, generator=draw),
        "all": torch.ones(b),
        "nothing": torch.zeros(b),
        "half": torch.full((b,), 0.5),
    }[shares]
    images = {
        "vectors": torch.randn(b, 4, generator=draw),
        "pixels": torch.randint(256, (b, 1, 2, 2), generator=draw).to(torch.uint8),
    }[x]
    y = torch.randint(N, (b,), generator=draw) if labels == "different" else torch.zeros(b).long()
    return MixedBatch(images, y, share)


def network() -> Network:
    normalize = Normalize(0.3, 0.5)  # mixed are the images as the network sees them
    return Network(
        nn.Sequential(nn.Flatten(), nn.Linear(4, 5), nn.Tanh()), nn.Linear(5, N), normalize
    )


def in_loop(net: Network, mixed: MixedBatch, label_share) -> Tensor:
    ell, b = [], len(mixed.y)
    for i in range(b):
        j = b - 1 - i
        share, mine, theirs = float(mixed.share[i]), int(mixed.y[i]), int(mixed.y[j])
        seen_i, seen_j = (net.normalize(mixed.x[row]) for row in (i, j))
        x = share * seen_i + (1 - share) * seen_j
        row = net.classifier(net.embedder(x.unsqueeze(0)))[0].tolist()
        part = label_share(share, mine, theirs)
        ell.append(part * loops.entropy(row, mine) + (1 - part) * loops.entropy(row, theirs))
    return torch.tensor(ell)


BATCHES = {
    "vectors": batch(),
    "pixels": batch(x="pixels"),
    "one image": batch(1),
    "an even number": batch(8),
    "half and half": batch(shares="half"),
    "one class": batch(labels="alike"),
}


@pytest.fixture(params=BATCHES)
def mixed(request: pytest.FixtureRequest) -> MixedBatch:
    return BATCHES[request.param]


def test_mixup_is_its_formula(mixed: MixedBatch) -> None:
    net = network()
    ell, nothing = mixup()(net, mixed)
    close(ell, in_loop(net, mixed, lambda share, mine, theirs: share))
    assert torch.equal(nothing, torch.zeros_like(ell))


@pytest.mark.parametrize("kappa", [1.0, 3.0, 10.0])
@pytest.mark.parametrize("tau", [0.2, 0.5, 0.9])
def test_remix_is_its_formula(mixed: MixedBatch, kappa: float, tau: float) -> None:
    net, counts = network(), COUNTS.tolist()

    def label_share(share: float, mine: int, theirs: int) -> float:
        return loops.label_share(share, counts[mine], counts[theirs], kappa, tau)

    ell, nothing = remix(COUNTS, kappa, tau)(net, mixed)
    close(ell, in_loop(net, mixed, label_share))
    assert torch.equal(nothing, torch.zeros_like(ell))


@pytest.mark.parametrize("never", [{"kappa": math.inf}, {"tau": 0.0}], ids=str)
def test_remix_that_never_decides_is_mixup(mixed: MixedBatch, never: dict[str, float]) -> None:
    net = network()
    assert torch.equal(remix(COUNTS, **never)(net, mixed)[0], mixup()(net, mixed)[0])


@pytest.mark.parametrize("shares", ["drawn", "half"])
def test_remix_of_balanced_classes_is_mixup(shares: str) -> None:
    net, mixed = network(), batch(shares=shares)
    balanced = torch.full((N,), 20)
    assert torch.equal(remix(balanced)(net, mixed)[0], mixup()(net, mixed)[0])


@pytest.mark.parametrize("objective", [mixup(), remix(COUNTS)], ids=["mixup", "remix"])
def test_unmixed_images_are_single_task(objective: Objective) -> None:
    net, alone = network(), batch(shares="all")
    plain, _ = single_task(net, Samples(alone.x, alone.y))
    close(objective(net, alone)[0], plain)
    swapped = batch(shares="nothing")  # then every image is its partner
    close(objective(net, swapped)[0], plain.flip(0))


def test_images_of_one_class_keep_their_label() -> None:
    net, mixed = network(), batch(labels="alike")
    close(remix(COUNTS)(net, mixed)[0], mixup()(net, mixed)[0])


def test_remix_gives_the_rare_class_more_than_mixup() -> None:
    """Labels (0, 2) of 90 and 6 samples: below τ the rare label is all there is."""
    net = network()
    mixed = MixedBatch(torch.randn(2, 4), torch.tensor([0, 2]), torch.tensor([0.4, 0.6]))
    row = net.classifier(net.embedder(net.normalize(0.4 * mixed.x[:1] + 0.6 * mixed.x[1:])))[0]
    rare = loops.entropy(row.tolist(), 2)
    close(remix(COUNTS)(net, mixed)[0], torch.tensor([rare, rare]))
    assert not torch.allclose(mixup()(net, mixed)[0], torch.tensor([rare, rare]))


def test_a_class_with_one_sample_has_finite_gradients() -> None:
    net, mixed = network(), batch()
    ell, _ = remix(torch.tensor([1000, 1, 1]))(net, mixed)
    gradients = torch.autograd.grad(ell.sum(), list(net.parameters()))
    assert all(gradient.isfinite().all() for gradient in gradients)
