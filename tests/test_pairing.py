"""Forms of DOS for a modern network: pairs mixed inside f, and an ℓ_f that compares."""

from dataclasses import replace

import pytest
import torch
from torch.nn.functional import normalize

from comparing import Comparing, comparing
from contests import pictures, small_lenet
from deep_oversampling import embed
from deep_oversampling.losses import entropy
from deep_oversampling.seeding import streams
from pairing import PairTable, mixing_inside
from remembering import RecallTable, neighbours

close = torch.testing.assert_close
SAMPLES = pictures((20, 12, 6))
ALL = torch.ones(3)


def pairs(k: int = 3, mixed: torch.Tensor = ALL) -> PairTable:
    hoods = neighbours(embed(small_lenet(), SAMPLES.x), SAMPLES.y, 3, k) if k else None
    return PairTable.drawn(SAMPLES, hoods, streams(0), mixed=mixed)


@pytest.mark.parametrize("k", [0, 3])
def test_pairs_are_two_samples_of_a_class(k: int) -> None:
    table = pairs(k)
    one, other = table.index.T
    assert len(table) == len(SAMPLES) // 2
    assert len(one.unique()) == len(one)
    assert (one != other).all()
    assert (SAMPLES.y[one] == SAMPLES.y[other]).all()
    if k:
        near = neighbours(embed(small_lenet(), SAMPLES.x), SAMPLES.y, 3, k).index[one, 1:]
        assert (near == other.unsqueeze(1)).any(1).all()


def test_a_sample_alone_is_paired_with_itself() -> None:
    alone = pictures((1, 1, 1, 1))
    hoods = neighbours(alone.x.flatten(1).float(), alone.y, 4, 3)
    for some in (hoods, None):
        index = PairTable.drawn(alone, some, streams(0), mixed=torch.ones(4)).index
        assert len(index) == 2
        assert (index[:, 0] == index[:, 1]).all()


def test_classes_that_are_not_mixed_keep_their_images() -> None:
    table = pairs(mixed=torch.tensor([0.0, 0.0, 1.0]))
    rare = SAMPLES.y[table.index[:, 0]] == 2
    assert (table.share[~rare] == 1).all()
    assert (table.share[rare] < 1).all()


@pytest.mark.parametrize("layer", [0, 3, 99])
def test_mixing_inside_is_by_hand(layer: int) -> None:
    network, table = small_lenet(), pairs()
    z = table[torch.arange(4)]
    ell, _ = mixing_inside(network, z, layer=layer, loss=entropy, weights=None)
    for i in range(4):
        a, b = network.embedder[:layer](network.normalize(SAMPLES.x[table.index[i]])).unbind()
        w = table.share[i]
        both = torch.stack([w * a + (1 - w) * b, w * b + (1 - w) * a])
        logits = network.classifier(network.embedder[layer:](both))
        close(ell[i], entropy(logits, z.y[i].repeat(2)).mean())


def test_unmixed_pairs_are_samples_as_they_are() -> None:
    network, table = small_lenet(), pairs(mixed=torch.zeros(3))
    z = table[torch.arange(5)]
    ell, none = mixing_inside(network, z, layer=3, loss=entropy, weights=ALL)
    logits = network(SAMPLES.x[table.index[:5].flatten()])
    close(ell, entropy(logits, z.y.repeat_interleave(2)).view(5, 2).mean(1))
    assert not none.any()


def comparison(network: Comparing, rows: int = 9):
    everyone = torch.ones(3, dtype=torch.bool)
    options = {"k": 3, "pulled": everyone, "balanced": False, "borrow": 0.0}
    z = RecallTable.drawn(SAMPLES, network.memory, streams(0), **options)[torch.arange(rows)]
    asked = {"loss": entropy, "weights": None, "n": 3, "pull": 1.0, "temperature": 0.5}
    return z, asked


def test_the_comparison_is_a_softmax_over_classes() -> None:
    network = Comparing(small_lenet(), SAMPLES)
    z, asked = comparison(network)
    before = network.memory.clone()
    own, ell_f = comparing(network, z, **asked)
    close(own, entropy(network(z.x), z.y))
    seen = lambda v: normalize(network.projection(v), dim=-1)  # noqa: E731
    image, others = seen(network.embed(z.x)), seen(z.points.among(before))
    for i in range(len(z.y)):
        hull = (z.w[i].unsqueeze(1) * before[z.near[i]]).sum(0) / z.w[i].sum()
        each = [(image[i] @ seen(hull) / 0.5).exp()]
        for c in set(range(3)) - {int(z.y[i])}:
            each.append((others[z.points.label == c] @ image[i] / 0.5).exp().mean())
        close(ell_f[i], -(each[0] / sum(each)).log())
    close(network.memory[z.i], network.embed(z.x).detach())


def test_a_class_without_neighbours_is_not_compared() -> None:
    network = Comparing(small_lenet(), SAMPLES)
    z, asked = comparison(network)
    nobody = replace(z, w=torch.zeros_like(z.w), mask=torch.zeros_like(z.mask))
    _, ell_f = comparing(network, nobody, **asked)
    assert not ell_f.any()
