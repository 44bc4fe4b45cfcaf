"""One seed decides everything, and nothing else in the program is touched."""

import random

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from deep_oversampling import Network, lenet, mlp, resnet32
from deep_oversampling.seeding import isolated, streams
from toy import blobs, generator, small, train, weights


def with_dropout() -> Network:
    network = small()
    dropout = nn.Sequential(*network.embedder, nn.Dropout(0.5))
    return Network(dropout, nn.Sequential(nn.Dropout(0.2), network.classifier))


NETWORKS = {"plain": small, "dropout": with_dropout}


def trained(kind: str, *, seed: int = 0, disturb: int | None = None) -> Tensor:
    """Weights after training; ``disturb`` seeds the global generators, before and during it."""
    network = NETWORKS[kind]()

    def seed_globals(*_: object) -> None:
        if disturb is not None:
            torch.manual_seed(disturb)
            np.random.seed(disturb)  # noqa: NPY002
            random.seed(disturb)

    seed_globals()
    train(network, blobs(), rounds=2, seed=seed, on_round=seed_globals)
    return weights(network)


@pytest.mark.parametrize("kind", NETWORKS)
def test_same_seed_same_weights_whatever_the_global_generators_do(kind: str) -> None:
    first = trained(kind)
    torch.rand(100)
    assert torch.equal(trained(kind), first)
    for disturb in (1, 2):
        assert torch.equal(trained(kind, disturb=disturb), first)


@pytest.mark.parametrize("kind", NETWORKS)
def test_another_seed_is_another_training(kind: str) -> None:
    assert not torch.equal(trained(kind, seed=0), trained(kind, seed=1))


@pytest.mark.parametrize("kind", NETWORKS)
def test_global_generators_are_left_as_they_were(kind: str) -> None:
    network = NETWORKS[kind]()
    before = torch.get_rng_state(), np.random.get_state(), random.getstate()  # noqa: NPY002
    train(network, blobs())
    after = torch.get_rng_state(), np.random.get_state(), random.getstate()  # noqa: NPY002
    assert torch.equal(before[0], after[0])
    assert all(np.array_equal(a, b) for a, b in zip(before[1], after[1], strict=True))
    assert before[2] == after[2]


class Drawing(nn.Module):
    """Draws from the global generator in every training step, as dropout does."""

    def __init__(self) -> None:
        super().__init__()
        self.draws: list[tuple[float, ...]] = []

    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            self.draws.append(tuple(torch.rand(3).tolist()))
        return x


def test_every_step_of_every_round_draws_anew() -> None:
    drawing, network = Drawing(), small()
    train(
        Network(nn.Sequential(network.embedder, drawing), network.classifier),
        blobs(),
        rounds=2,
        batch_size=19,
    )
    assert len(drawing.draws) > 4
    assert len(set(drawing.draws)) == len(drawing.draws)


def drawn(seed: int, *name: str | int) -> list[float]:
    return torch.rand(4, generator=streams(seed)(*name)).tolist()


def test_streams_are_independent_of_one_another() -> None:
    names = [(0, "a"), (1, "a"), (0, "b"), (0, "a", 1), (0, "a", "1"), (0, "a", 11), (-1, "a")]
    draws = [drawn(*name) for name in names]
    assert len(set(map(tuple, draws))) == len(names)


def test_stream_does_not_depend_on_what_was_drawn_elsewhere() -> None:
    rng = streams(0)
    torch.rand(50, generator=rng("a"))
    assert torch.rand(4, generator=rng("b")).tolist() == drawn(0, "b")


def test_stream_takes_any_whole_number_as_seed() -> None:
    assert drawn(np.int64(7), "a") == drawn(7, "a")
    assert drawn(2**80, "a") != drawn(0, "a")


MODELS = {
    "lenet": lambda seed: lenet(seed=seed),
    "mlp": lambda seed: mlp(9, 3, seed=seed),
    "resnet32": lambda seed: resnet32(seed=seed),
}


@pytest.mark.parametrize("name", MODELS)
def test_initial_weights_depend_on_the_seed_alone(name: str) -> None:
    first = weights(MODELS[name](0))
    torch.manual_seed(99)
    before = torch.get_rng_state()
    again = weights(MODELS[name](0))
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(first, again)
    assert not torch.equal(first, weights(MODELS[name](1)))


def fail_in_isolation() -> None:
    with isolated(generator()):
        torch.rand(3)
        raise ZeroDivisionError


def test_isolation_is_lifted_after_an_error() -> None:
    before = torch.get_rng_state()
    with pytest.raises(ZeroDivisionError):
        fail_in_isolation()
    assert torch.equal(torch.get_rng_state(), before)


def test_isolation_seeds_from_its_generator() -> None:
    draws = []
    for seed in (0, 0, 1):
        with isolated(generator(seed)):
            draws.append(torch.rand(3).tolist())
    assert draws[0] == draws[1] != draws[2]
