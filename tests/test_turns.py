"""Trainings that take turns: each ends where it would end alone, whatever goes on beside it."""

from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import Tensor, nn
from torch.optim import SGD
from torch.optim.lr_scheduler import ExponentialLR

from contests import pictures
from deep_oversampling import Engine, Network, Samples, TrainingError, resnet32, together, turns
from deep_oversampling.algorithm import deep_over_sampling
from deep_oversampling.augmentation import CropAndFlip
from deep_oversampling.objectives import single_task
from deep_oversampling.plan import Plan
from deep_oversampling.seeding import Sittings, streams
from deep_oversampling.stages import Member, Stage, train_members
from deep_oversampling.together import train_together
from deep_oversampling.turns import train_in_turns
from toy import blobs, generator, small, weights

OPTIONS = {
    "batch_size": 8,
    "optimizer": partial(SGD, lr=0.1, momentum=0.9),
    "schedule": partial(ExponentialLR, gamma=0.5),
}
SAMPLES = blobs()
on_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="CUDA streams need a GPU")


def plain(seed: int, rounds: int = 2) -> Member:
    """With dropout, which draws from torch's own generators."""
    network = small(seed=seed)
    network.embedder = nn.Sequential(network.embedder, nn.Dropout(0.3))
    stages = (Stage("single", SAMPLES, single_task) for _ in range(rounds))
    return Member(network, stages, streams(seed))


def dos(seed: int) -> Member:
    network, rng = small(seed=seed), streams(seed)
    plan = Plan(k=[0, 2, 3], r=[1, 1, 4])
    made = deep_over_sampling(network, SAMPLES, plan, rounds=2, initial_rounds=1, rng=rng)
    return Member(network, made, rng)


MAKERS: list[Callable[[], Member]] = [
    partial(plain, 0),
    partial(dos, 1),
    partial(plain, 2, rounds=5),
    partial(plain, 3, rounds=0),
]


def alone(make: Callable[[], Member]) -> Member:
    member = make()
    train_members([member], **OPTIONS)
    return member


@pytest.mark.parametrize("steps", [1, 2, 12])  # a round has five
def test_each_ends_where_it_would_end_alone(steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "_STEPS_OF_A_TURN", steps)
    members = [make() for make in MAKERS]
    before = torch.get_rng_state()
    train_in_turns(members, **OPTIONS)
    assert torch.equal(torch.get_rng_state(), before)
    for one, make in zip(members, MAKERS, strict=True):
        other = alone(make)
        assert torch.equal(weights(one.network), weights(other.network))
        told = [(r.task, r.presented, r.classifier_loss) for r in other.history.rounds]
        assert [(r.task, r.presented, r.classifier_loss) for r in one.history.rounds] == told


def test_they_do_take_turns_within_a_round(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "_STEPS_OF_A_TURN", 2)
    order: list[int] = []

    def watched(seed: int) -> Member:
        def objective(network: Network, batch: Samples) -> tuple[Tensor, ...]:
            order.append(seed)
            return single_task(network, batch)

        return Member(small(seed=seed), iter([Stage("x", SAMPLES, objective)]), streams(seed))

    train_in_turns([watched(0), watched(1)], **OPTIONS)
    assert order == [0, 0, 1, 1, 0, 0, 1, 1, 0, 1]


def test_one_that_is_lost_stops_no_other() -> None:
    def broken(network: Network, batch: Samples) -> tuple[Tensor, ...]:
        ell, nothing = single_task(network, batch)
        return torch.nan * ell, nothing

    lost = Member(small(), iter([Stage("single", SAMPLES, broken)]), streams(0))
    members = [lost, plain(2)]
    train_in_turns(members, **OPTIONS)
    assert isinstance(lost.error, TrainingError)
    assert torch.equal(weights(lost.network), weights(small()))
    assert torch.equal(weights(members[1].network), weights(alone(partial(plain, 2)).network))


def test_where_one_fails_the_others_are_left_whole() -> None:
    def failing(network: Network, batch: Samples) -> tuple[Tensor, ...]:
        raise torch.OutOfMemoryError

    members = [plain(0), Member(small(), iter([Stage("x", SAMPLES, failing)]), streams(0))]
    with pytest.raises(torch.OutOfMemoryError):
        train_in_turns(members, **OPTIONS)
    assert not members[0].network.training
    assert all(p.grad is None for p in members[0].network.parameters())


def test_wide_networks_take_turns_and_others_are_stacked(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[str] = []
    for name in ("train_in_turns", "train_members"):
        monkeypatch.setattr(together, name, lambda members, name=name, **_: called.append(name))

    def wide() -> Network:
        return resnet32(1, 3)

    def drawing() -> Network:
        network = wide()
        return Network(nn.Sequential(network.embedder, nn.Dropout()), network.classifier)

    for network, many in ((wide, 2), (small, 2), (drawing, 2), (wide, 1)):
        make = lambda network=network: Member(network(), iter([]), streams(0))  # noqa: E731
        train_together([make] * many, at_once=many, batch_size=4)
    assert called == ["train_in_turns", *["train_members"] * 3]


def test_residual_networks_with_augmentation_in_turns() -> None:
    """Batch norm and draws of augmentation are each one's own."""
    images = pictures((6, 4, 2))

    def make(seed: int) -> Member:
        stages = iter([Stage("single", images, single_task)] * 2)
        return Member(resnet32(images.x.shape[1], 3, seed=seed), stages, streams(seed))

    options = {"batch_size": 6, "augment": CropAndFlip(1)}
    at_once = train_together([partial(make, s) for s in (0, 1)], at_once=2, **options)
    in_turn = train_together([partial(make, s) for s in (0, 1)], at_once=1, **options)
    for one, other in zip(at_once, in_turn, strict=True):
        for mine, theirs in zip(
            one.network.state_dict().values(), other.network.state_dict().values(), strict=True
        ):
            assert torch.equal(mine, theirs)


def test_sittings_go_on_where_they_ended() -> None:
    whole = Sittings(generator())
    with whole.sit():
        expected = torch.rand(6)
    parts, beside = Sittings(generator()), Sittings(generator(1))
    found = []
    for _ in range(3):
        with parts.sit():
            found.append(torch.rand(2))
        with beside.sit():
            torch.rand(5)
    assert torch.equal(torch.cat(found), expected)


# on a GPU


@on_gpu
@pytest.mark.usefixtures("deterministic")
def test_streams_of_their_own_change_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """Steps are recorded on the stream of each training, and replayed there, at once."""
    x = torch.randint(0, 256, (300, 3, 16, 16), generator=generator(), dtype=torch.uint8)
    samples = Samples(x, torch.arange(300) % 4).to("cuda")

    def make(seed: int) -> Member:
        network, rng = resnet32(3, 4, seed=seed).to("cuda"), streams(seed)
        plan = Plan.uniform(4, k=3)
        made = deep_over_sampling(network, samples, plan, rounds=3, initial_rounds=3, rng=rng)
        return Member(network, made, rng)

    options = {"batch_size": 32, "optimizer": partial(SGD, lr=1e-3), "augment": CropAndFlip(2)}
    makers = [partial(make, seed) for seed in range(4)]
    eager = train_together(makers, at_once=1, **options, engine=Engine(replay=False))
    for at_once in (1, 4):
        found = train_together(makers, at_once=at_once, **options)
        for one, other in zip(eager, found, strict=True):
            assert other.error is None
            assert torch.equal(weights(one.network), weights(other.network))
    assert caplog.records == []


@on_gpu
@pytest.mark.usefixtures("deterministic")
def test_rates_that_change_are_followed_in_turns() -> None:
    samples = pictures((60, 40, 20)).to("cuda")

    def make(seed: int) -> Member:
        stages = iter([Stage("single", samples, single_task)] * 4)
        return Member(resnet32(1, 3, seed=seed).to("cuda"), stages, streams(seed))

    options = {**OPTIONS, "optimizer": partial(SGD, lr=1e-3, momentum=0.9, weight_decay=5e-4)}
    makers = [partial(make, seed) for seed in range(3)]
    alone_, together_ = (train_together(makers, at_once=n, **options) for n in (1, 3))
    for one, other in zip(alone_, together_, strict=True):
        assert torch.equal(weights(one.network), weights(other.network))
