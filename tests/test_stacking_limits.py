"""What cannot be stacked, and what goes wrong: said, refused or trained in turn, and undone."""

import copy
import logging
from functools import partial

import pytest
import torch
from torch import Tensor, nn
from torch.optim import Adam

from deep_oversampling import InputError, Network, TrainingError, fit, fit_many
from deep_oversampling.losses import entropy
from deep_oversampling.stacking import Stack
from test_stacking import MOMENTUM, NETWORKS, E, frozen, trained
from toy import blobs, small, weights

close = torch.testing.assert_close


class Scaled(nn.Linear):
    def __init__(self, scale: float) -> None:
        super().__init__(4, 3)
        self.scale = scale

    def forward(self, x: Tensor) -> Tensor:
        return self.scale * super().forward(x)


@pytest.mark.parametrize(
    "networks",
    [
        (small(), small(d=4, n=4)),
        (small(), frozen(1)),
        (small(), small().double()),
        (Network(nn.Identity(), Scaled(1.0)), Network(nn.Identity(), Scaled(2.0))),
    ],
    ids=["shapes", "frozen", "types", "attributes"],
)
def test_networks_that_are_not_alike_are_refused(networks) -> None:
    with pytest.raises(InputError, match="networks must be of one shape"):
        Stack(networks)


def test_networks_that_share_weights_are_refused() -> None:
    network = small()
    other = Network(network.embedder, copy.deepcopy(network.classifier))
    with pytest.raises(InputError, match="shared by network 0 and 1; use copy"):
        fit_many([network, other], blobs(), device="cpu")


def own_storage(network: Network) -> bool:
    tensors = [*network.parameters(), *network.buffers()]
    return all(t.untyped_storage().nbytes() == t.numel() * t.element_size() for t in tensors)


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_networks_part_whatever_happens(error: type[BaseException]) -> None:
    networks = [NETWORKS["batch norm"](seed) for seed in range(2)]

    def interrupt(e: int, one: object) -> None:
        raise error

    with pytest.raises(error):
        fit_many(networks, blobs(), device="cpu", at_once=2, on_round=interrupt)
    assert all(own_storage(network) for network in networks)
    assert not any(network.training for network in networks)


def test_an_error_in_a_step_leaves_evaluation_mode() -> None:
    def broken(logits: Tensor, labels: Tensor) -> Tensor:
        if logits.requires_grad:  # not yet at the door
            raise ValueError
        return entropy(logits, labels)

    network = small()
    with pytest.raises(ValueError):  # noqa: PT011
        fit(network, blobs(), device="cpu", loss=broken)
    assert not network.training


def test_a_lost_member_does_not_stop_others_with_adam() -> None:
    networks = [small(seed=seed) for seed in range(2)]
    with torch.no_grad():
        networks[1].classifier.weight.fill_(3e38)
    options = {"rounds": 2, "batch_size": 8, "device": "cpu", "optimizer": partial(Adam, lr=1e-3)}
    found = fit_many(networks, blobs(), seeds=[0, 0], at_once=2, **options)
    assert isinstance(found[1], TrainingError)
    alone = small(seed=0)
    fit(alone, blobs(), **options)
    close(weights(networks[0]), weights(alone), rtol=1e-4, atol=1e-6)


IN_TURN = {
    "looks at whole tensors": (NETWORKS["mlp"], torch.optim.Adafactor, "tensors as a whole"),
    "counts steps": (NETWORKS["mlp"], partial(Adam, lr=1e-3), "counts steps"),
    "batch norm in g": (
        lambda seed: Network(nn.Linear(4, 5), nn.Sequential(nn.BatchNorm1d(5), nn.Linear(5, 3))),
        MOMENTUM,
        "the classifier has batch norm",
    ),
}


@pytest.mark.parametrize(("make", "optimizer", "reason"), IN_TURN.values(), ids=IN_TURN)
def test_what_would_mix_members_is_trained_in_turn(
    make, optimizer, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        found = trained(make, E, optimizer=optimizer, rounds=1)
    (record,) = caplog.records
    assert reason in record.message
    for one, other in zip(found, trained(make, 1, optimizer=optimizer, rounds=1), strict=True):
        assert torch.equal(weights(one), weights(other))


def test_numbers_of_any_kind_are_strengths() -> None:
    networks = [small(seed=seed) for seed in range(2)]
    options = {"rounds": 1, "batch_size": 8, "device": "cpu", "at_once": 2}
    assert len(fit_many(networks, blobs(), pull=[1, 10], **options)) == 2
    assert len(fit_many(networks, blobs(), pull=torch.tensor([1.0, 10.0]), **options)) == 2


def test_defaults_that_differ_are_refused() -> None:
    with pytest.raises(InputError, match=r"batch_size must be given .* \[18, 60\]"):
        fit_many([small(), small()], [blobs((40, 30, 30)), blobs((8, 6, 4))], device="cpu")


def test_at_once_is_at_least_one() -> None:
    with pytest.raises(InputError, match="at_once must be 1 or more, found 0"):
        fit_many([small()], blobs(), device="cpu", at_once=0)


@pytest.mark.parametrize(
    "wrong",
    [{"seeds": [1]}, {"plans": [None] * 3}, {"pull": [1.0]}, {"samples": [blobs()]}],
    ids=lambda wrong: next(iter(wrong)),
)
def test_lists_of_other_lengths_are_refused(wrong) -> None:
    given = {"samples": blobs(), "plans": None, **wrong}
    with pytest.raises(InputError, match=r"a seed for each network, found .* for 2"):
        fit_many([small(), small()], given.pop("samples"), given.pop("plans"), **given)
