"""Every method trains on pictures, and what is for pictures alone does what it says."""

from dataclasses import replace

import pytest
import torch

from contests import BATCH, ROUNDS, contest, pictures, small_lenet, trained
from deep_oversampling import InputError, Plan, Samples, View, fit
from deep_oversampling.rivals import METHODS, Method
from toy import small, weights

TRAININGS = {method.training.name: method.name for method in reversed(METHODS.values())}.values()
OF_PICTURES = ("dos-pieces", "mixup-pieces")
IMAGES = pictures()


@pytest.mark.parametrize("name", TRAININGS)
@pytest.mark.parametrize("how", ["bytes", "a view"])
def test_images_are_trained_on_wherever_they_are(name: str, how: str) -> None:
    x = View.of(IMAGES.x) if how == "a view" else IMAGES.x
    method: Method = METHODS[name]
    found = trained(method, contest(Samples(x, IMAGES.y)), small_lenet())
    assert found.weights.isfinite().all()
    if how == "a view":
        assert torch.equal(found.weights, trained(method, contest(IMAGES), small_lenet()).weights)


def test_dos_with_pieces_is_fit() -> None:
    """With as many neighbours for large classes, too, where rare ones have fewer."""
    given, network = replace(contest(IMAGES), k=6), small_lenet()
    plan = Plan([6, 6, 3], Plan.in_part(IMAGES.class_counts).r)
    options = {"rounds": ROUNDS, "batch_size": BATCH, "device": "cpu", "seed": 0}
    history = fit(network, IMAGES, plan, pieces=0.5, tau=1.0, **options)
    found = trained(METHODS["dos-pieces"], given, small_lenet())
    assert torch.equal(weights(network), found.weights)
    assert [r.presented for r in history.rounds] == [r.presented for r in found.history.rounds]


def test_pieces_after_mixup_are_those_of_dos() -> None:
    found, without = (
        trained(METHODS[name], contest(IMAGES), small_lenet()).history.rounds
        for name in ("mixup-pieces", "dos-pieces")
    )
    assert [one.task for one in found] == ["mixed"] * ROUNDS + ["multi"] * ROUNDS
    assert [one.presented for one in found] == [one.presented for one in without]


@pytest.mark.parametrize("name", OF_PICTURES)
def test_pieces_need_neighbours(name: str) -> None:
    with pytest.raises(InputError, match="pieces must be of neighbours, found k = 0"):
        METHODS[name].training.stages(small_lenet(), replace(contest(IMAGES), k=0))


@pytest.mark.parametrize("name", OF_PICTURES)
def test_vectors_have_no_pieces(name: str) -> None:
    with pytest.raises(InputError, match="pieces must be of pictures"):
        METHODS[name].training.stages(small(), contest())
