"""A stack of networks trained at once: each member ends where it would end alone."""

import copy
import logging
from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import Tensor, nn
from torch.optim import SGD, Adam

from deep_oversampling import (
    Network,
    Plan,
    Samples,
    TrainingError,
    fit,
    fit_many,
    lenet,
)
from deep_oversampling.network import Normalize
from deep_oversampling.objectives import single_task
from deep_oversampling.seeding import isolated
from deep_oversampling.stacking import Stack
from toy import blobs, generator, small, weights

close = torch.testing.assert_close
E = 3
MOMENTUM = partial(SGD, lr=0.01, momentum=0.9)


class Flips(nn.Module):
    """Its output depends on its data in a way that no stack can follow."""

    def forward(self, x: Tensor) -> Tensor:
        return x if float(x.detach().sum()) > 0 else -x


def made_of(*layers: Callable[[], nn.Module]) -> Callable[[int], Network]:
    def make(seed: int) -> Network:
        with isolated(generator(seed)):
            embedder = nn.Sequential(nn.Linear(4, 8), *(layer() for layer in layers), nn.ReLU())
            return Network(embedder, nn.Sequential(nn.Linear(8, 5), nn.ReLU(), nn.Linear(5, 3)))

    return make


def tied(seed: int) -> Network:
    with isolated(generator(seed)):
        layer = nn.Linear(4, 4)
        return Network(nn.Sequential(layer, nn.ReLU(), layer), nn.Linear(4, 3))


def frozen(seed: int) -> Network:
    network = small(seed=seed)
    next(network.parameters()).requires_grad_(False)
    return network


class Tempered(nn.Linear):
    """With a scalar parameter."""

    def __init__(self, *sizes: int) -> None:
        super().__init__(*sizes)
        self.temperature = nn.Parameter(torch.tensor(1.5))

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) / self.temperature


NETWORKS = {
    "a scalar": made_of(lambda: Tempered(8, 8)),
    "mlp": lambda seed: small(seed=seed),
    "batch norm": made_of(lambda: nn.BatchNorm1d(8)),
    "layer norm": made_of(lambda: nn.LayerNorm(8)),
    "tied weights": tied,
    "frozen weights": frozen,
    "data-dependent": made_of(Flips),
    "normalisation of its own": lambda seed: Network(
        nn.Linear(4, 5), nn.Linear(5, 3), Normalize(float(seed), 2.0 + seed)
    ),
}


def trained(make: Callable[[int], Network], at_once: int, **options) -> list[Network]:
    """E networks with other subsets, plans, λ and seeds, so with other numbers of steps too."""
    with isolated(generator()):
        networks = [make(seed) for seed in range(E)]
    samples = [blobs((20, 12 - e, 6), seed=e) for e in range(E)]
    plans = [Plan(k=[0, e, 2 + e], r=[1, 1, 2 + e]) for e in range(E)]
    options = {"rounds": 2, "batch_size": 8, "device": "cpu", "optimizer": MOMENTUM, **options}
    pulls = [5.0, 10.0, 20.0]
    fit_many(networks, samples, plans, pull=pulls, seeds=[4, 5, 6], at_once=at_once, **options)
    return networks


@pytest.mark.parametrize("make", NETWORKS.values(), ids=NETWORKS)
def test_members_end_where_they_end_alone(make: Callable[[int], Network]) -> None:
    alone, together = trained(make, 1), trained(make, E)
    for one, other in zip(alone, together, strict=True):
        for (name, a), b in zip(one.state_dict().items(), other.state_dict().values(), strict=True):
            close(b, a, rtol=1e-4, atol=1e-6, msg=name)
    assert not torch.equal(weights(alone[0]), weights(alone[1]))


OPTIMIZERS = {
    "nesterov, decay": partial(SGD, lr=0.01, momentum=0.9, nesterov=True, weight_decay=1e-2),
    "no momentum": partial(SGD, lr=0.05),
    "no decay of vectors": lambda parameters: SGD(
        [{"params": [p], "weight_decay": 0.1 * (p.ndim > 1), "lr": 0.02} for p in parameters],
        momentum=0.9,
    ),
    "adam": partial(Adam, lr=1e-3),  # counts steps: these members are trained one by one
}


@pytest.mark.parametrize("optimizer", OPTIMIZERS.values(), ids=OPTIMIZERS)
def test_with_any_optimiser(optimizer) -> None:
    options = {"optimizer": optimizer, "rounds": 1}
    for one, other in zip(
        trained(NETWORKS["mlp"], 1, **options), trained(NETWORKS["mlp"], E, **options), strict=True
    ):
        close(weights(other), weights(one), rtol=1e-4, atol=1e-6)


def test_adam_is_stacked_where_all_take_as_many_steps() -> None:
    samples, plan = blobs(), Plan(k=[0, 0, 2], r=[1, 1, 3])
    found = []
    for at_once in (1, 2):
        networks = [small(seed=seed) for seed in range(2)]
        options = {
            "rounds": 2,
            "batch_size": 8,
            "device": "cpu",
            "optimizer": partial(Adam, lr=0.01),
        }
        fit_many(networks, samples, [plan, plan], at_once=at_once, **options)
        found.append(torch.stack([weights(network) for network in networks]))
    close(*found, rtol=1e-4, atol=1e-6)


def test_it_is_fit() -> None:
    """With seeds of their own, fit_many is fit after fit, histories included."""
    samples = blobs()
    networks = [small(seed=seed) for seed in range(2)]
    histories = fit_many(networks, samples, rounds=2, device="cpu", at_once=2)
    for seed, (network, history) in enumerate(zip(networks, histories, strict=True)):
        other = small(seed=seed)
        expected = fit(other, samples, rounds=2, device="cpu", seed=seed)
        close(weights(network), weights(other), rtol=1e-4, atol=1e-6)
        for ours, theirs in zip(history.rounds, expected.rounds, strict=True):
            assert ours.presented == theirs.presented
            assert ours.classifier_loss == pytest.approx(theirs.classifier_loss, rel=1e-4)
        assert len(history.spreads) == len(expected.spreads) == 3


def images(e: int) -> Samples:
    x = torch.randint(0, 256, (40, 3, 28, 28), generator=generator(e), dtype=torch.uint8)
    return Samples(x, torch.arange(40) % 4)


@pytest.mark.parametrize("padding", [0, 2], ids=["no padding", "padding"])
@pytest.mark.parametrize("stride", [1, 2])
def test_convolutions_are_the_same_as_products(padding: int, stride: int) -> None:
    def make(seed: int) -> Network:
        with isolated(generator(seed)):
            conv = nn.Conv2d(3, 5, (5, 3), stride=stride, padding=padding, bias=seed >= 0)
            return Network(
                nn.Sequential(conv, nn.ReLU(), nn.Flatten(), nn.LazyLinear(6)), nn.Linear(6, 4)
            )

    networks = [make(seed) for seed in range(2)]
    for network in networks:
        network(images(0).x[:1])  # the lazy layer
    alone, stack = copy.deepcopy(networks), Stack(networks)
    x = torch.stack([images(e).x for e in range(2)])
    batch = images(0).with_x(x, torch.stack([images(e).y for e in range(2)]))
    ell, _ = stack.losses(single_task, batch)
    ell.sum().backward()
    for e in range(2):
        expected, _ = single_task(alone[e], images(e))
        close(ell[e], expected, rtol=1e-4, atol=1e-5)
        expected.sum().backward()
        for stacked, own in zip(stack.parameters(), alone[e].parameters(), strict=True):
            close(stacked.grad[e], own.grad, rtol=1e-3, atol=1e-4)


def test_a_stack_of_lenets() -> None:
    samples = [Samples(images(e).x[:, :1], images(e).y) for e in range(2)]
    found = []
    for at_once in (1, 2):
        networks = [lenet((1, 28, 28), 4, seed=seed) for seed in range(2)]
        fit_many(networks, samples, rounds=1, batch_size=16, device="cpu", at_once=at_once)
        found.append([weights(network) for network in networks])
    for one, other in zip(*found, strict=True):
        close(one, other, rtol=1e-3, atol=1e-5)


def test_networks_look_at_their_slices_and_part_in_the_end() -> None:
    networks = [small(seed=seed) for seed in range(2)]
    before = [weights(network) for network in networks]
    stack = Stack(networks)
    assert all(torch.equal(weights(n), w) for n, w in zip(networks, before, strict=True))
    with torch.no_grad():
        for parameter in stack.parameters():
            parameter[1] += 1.0
    assert torch.equal(weights(networks[0]), before[0])
    close(weights(networks[1]), before[1] + 1.0)
    stack.part()
    sizes = [p.untyped_storage().nbytes() for p in networks[0].parameters()]
    assert sizes == [4 * p.numel() for p in networks[0].parameters()]


def test_dropout_is_drawn_for_every_member() -> None:
    network = made_of(lambda: nn.Dropout(0.5))
    stack = Stack([copy.deepcopy(network(0)) for _ in range(2)])
    stack.train()
    samples = blobs()
    batch = samples.with_x(torch.stack([samples.x] * 2), torch.stack([samples.y] * 2))
    ell, _ = stack.losses(single_task, batch)
    assert not torch.allclose(ell[0], ell[1])


def test_what_cannot_be_stacked_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        trained(NETWORKS["data-dependent"], E)
    (record,) = caplog.records
    assert "computed one after the other" in record.message


def test_one_that_is_lost_leaves_the_others_alone() -> None:
    networks = [small(seed=seed) for seed in range(3)]
    with torch.no_grad():
        next(networks[1].parameters()).mul_(1e30)
    before = weights(networks[1])
    options = {"rounds": 1, "batch_size": 8, "device": "cpu", "seeds": [0, 0, 0]}
    outcomes = fit_many(networks, blobs(), at_once=3, **options)
    assert isinstance(outcomes[1], TrainingError)
    assert "weights from before that again" in str(outcomes[1])
    assert torch.equal(weights(networks[1]), before)
    for e in (0, 2):
        alone = small(seed=e)
        fit(alone, blobs(), rounds=1, batch_size=8, device="cpu")
        close(weights(networks[e]), weights(alone), rtol=1e-4, atol=1e-6)


def test_out_of_memory_goes_on_with_half(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from deep_oversampling import together

    sizes, train_members = [], together.train_members

    def scarce(members, **options):
        sizes.append(len(members))
        if len(members) > 2:
            train_members(members[:1], **options)  # some had begun
            raise torch.OutOfMemoryError
        train_members(members, **options)

    monkeypatch.setattr(together, "train_members", scarce)
    with caplog.at_level(logging.WARNING):
        found = trained(NETWORKS["mlp"], E)
    assert sizes == [3, 2, 1]
    assert "out of memory with 3 trainings at once; going on with 2" in caplog.text
    monkeypatch.undo()
    for one, other in zip(found, trained(NETWORKS["mlp"], 1), strict=True):
        close(weights(one), weights(other), rtol=1e-4, atol=1e-6)
