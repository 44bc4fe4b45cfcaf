"""A training as stages: one after the other, on one optimiser, and put back where it fails."""

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor
from torch.optim import SGD
from torch.optim.lr_scheduler import ExponentialLR

from contests import pictures, small_lenet
from deep_oversampling import Network, Samples, TrainingError
from deep_oversampling.objectives import single_task
from deep_oversampling.rivals.triplet import Triplets, triplet_objective
from deep_oversampling.seeding import streams
from deep_oversampling.stages import Stage, sgd, train_stages
from deep_oversampling.training import Trainer
from toy import blobs, generator, small, weights


def passes(samples: Samples, number: int) -> Iterator[Stage]:
    for _ in range(number):
        yield Stage("single", samples, single_task)


def test_stages_are_rounds_of_one_optimiser() -> None:
    """Momentum goes on from stage to stage; every stage has a stream of its own."""
    samples, ours, by_hand = blobs(), small(), small()
    train_stages(ours, passes(samples, 3), batch_size=8, rng=streams(4))
    trainer = Trainer([by_hand], sgd)
    for t in range(3):
        trainer.train_round(
            [samples], [single_task], batch_size=8, generators=[streams(4)("training", t)]
        )
    assert torch.equal(weights(ours), weights(by_hand))


def test_a_method_goes_on_when_its_stage_has_been_trained() -> None:
    samples, network, seen = blobs(), small(), []

    def stages() -> Iterator[Stage]:
        for _ in range(3):
            seen.append(weights(network))
            yield Stage("single", samples, single_task)

    train_stages(network, stages(), batch_size=8, rng=streams(0))
    assert torch.equal(seen[0], weights(small()))
    assert not torch.equal(seen[0], seen[1])
    assert not torch.equal(seen[1], seen[2])


@pytest.mark.parametrize(("batch_size", "rows"), [(12, 4), (10, 3), (3, 1), (2, 1)])
def test_steps_see_as_many_images_whatever_a_row_holds(batch_size: int, rows: int) -> None:
    table, sizes = Triplets.drawn(blobs(), 20, generator()), []

    def watched(network: Network, batch) -> tuple[Tensor, Tensor]:
        sizes.append(len(batch.x))
        return triplet_objective(network, batch)

    stage = Stage("triplet", table, watched, images_per_row=3)
    history = train_stages(small(), iter([stage]), batch_size=batch_size, rng=streams(0))
    assert set(sizes) == {3 * rows}
    assert len(sizes) == -(-20 // rows)
    assert history.rounds[0].presented == 60


class Noise:
    """Adds its draw, so that every image that is presented is another one."""

    draws = 1

    def __init__(self) -> None:
        self.drawn: list[Tensor] = []

    def __call__(self, x: Tensor, u: Tensor) -> Tensor:
        self.drawn.append(u)
        return x + u.view(-1, *[1] * (x.ndim - 1))


def test_every_image_of_a_group_is_changed_by_a_draw_of_its_own() -> None:
    images = pictures()
    samples = Samples(images.x.float(), images.y)
    table, noise = Triplets.drawn(samples, 10, generator()), Noise()
    stage = Stage("triplet", table, triplet_objective, images_per_row=3)
    plain, changed = small_lenet(), small_lenet()
    train_stages(plain, iter([stage]), batch_size=12, rng=streams(0))
    train_stages(changed, iter([stage]), batch_size=12, rng=streams(0), augment=noise)
    assert noise.drawn[-1].shape == (36, 1)  # three steps of four triplets, at once
    assert len(noise.drawn[-1].unique()) == 36
    assert not torch.equal(weights(plain), weights(changed))


def test_where_a_stage_goes_wrong_the_weights_from_before_it_are_put_back() -> None:
    samples, network, kept = blobs(), small(), []

    def broken(network: Network, batch: Samples) -> tuple[Tensor, Tensor]:
        ell, nothing = single_task(network, batch)
        return torch.nan * ell, nothing

    def stages() -> Iterator[Stage]:
        yield from passes(samples, 2)
        kept.append(weights(network))
        yield Stage("triplet", samples, broken)

    with pytest.raises(
        TrainingError, match=r"^round 3 \(triplet-task\): the loss must stay finite"
    ):
        train_stages(network, stages(), batch_size=8, rng=streams(0))
    assert torch.equal(weights(network), kept[0])


def test_schedule_judge_and_on_round_follow_every_stage() -> None:
    rounds, made = [], []

    def optimizer(parameters) -> SGD:
        made.append(SGD(parameters, lr=0.1))
        return made[0]

    history = train_stages(
        small(),
        passes(blobs(), 3),
        batch_size=8,
        rng=streams(0),
        optimizer=optimizer,
        schedule=lambda stepper: ExponentialLR(stepper, 0.5),
        judge=lambda network: {"all": {"rate": made[0].param_groups[0]["lr"]}},
        on_round=rounds.append,
    )
    rates = [one.validation["all"]["rate"] for one in history.rounds]
    assert rates == pytest.approx([0.05, 0.025, 0.0125])
    assert rounds == history.rounds
    assert len(made) == 1


def test_no_stages_change_nothing() -> None:
    network = small()
    history = train_stages(network, iter(()), batch_size=8, rng=streams(0))
    assert history.rounds == []
    assert torch.equal(weights(network), weights(small()))
