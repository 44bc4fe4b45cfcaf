"""Training that goes wrong: what is found, what is done about it, and what is told."""

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.optim import SGD
from torch.optim.lr_scheduler import (
    CosineAnnealingLR,
    CosineAnnealingWarmRestarts,
    CyclicLR,
    LambdaLR,
    LinearLR,
    OneCycleLR,
    SequentialLR,
    StepLR,
)

from deep_oversampling import (
    Checkpoints,
    History,
    InputError,
    Plan,
    Stopped,
    TrainingError,
    fit,
    fit_many,
)
from deep_oversampling.history import Mishap, Round
from deep_oversampling.mishaps import leapt, never_predicted, slow_down
from toy import blobs, small, weights

OPTIONS: dict[str, Any] = {"rounds": 2, "batch_size": 5, "device": "cpu", "seed": 3}
STEPS = 8  # of a single-task round, of 38 samples


class Spoiled(SGD):
    """After so many steps, something happens to the weights; not where the rate is lower."""

    def __init__(self, spoil: Callable[[Tensor], object], step: int, always: bool = False) -> None:
        self.spoil, self.at, self.always = spoil, step, always

    def __call__(self, parameters: Iterable[nn.Parameter]) -> "Spoiled":
        made = Spoiled(self.spoil, self.at, self.always)
        SGD.__init__(made, parameters, lr=0.1, momentum=0.9)
        return made

    @torch.no_grad()
    def step(self, closure: None = None) -> None:
        super().step(closure)
        self.at -= 1
        if self.at <= 0 and (self.always or self.param_groups[0]["lr"] > 0.05):
            for parameter in self.param_groups[0]["params"][:4]:  # of the embedder
                self.spoil(parameter)


SPOILS: dict[str, tuple[Callable[[Tensor], object], str]] = {
    "nan": (lambda p: p.fill_(torch.nan), "the loss must stay finite, found NaN or infinity at"),
    "infinity": (lambda p: p.fill_(torch.inf), "the loss must stay finite, found NaN"),
    "collapsed": (lambda p: p.zero_(), "found all 38 alike: the embedder has collapsed"),
}


def told(history: History) -> list[Any]:
    return [{**one, "seconds": 0} for one in history.to_dict()["rounds"]] + history.mishaps


@pytest.mark.parametrize("spoil", SPOILS)
@pytest.mark.parametrize("step", [3, 8, 12, 20])
def test_a_round_that_is_lost_is_made_again_slower(
    spoil: str, step: int, caplog: pytest.LogCaptureFixture
) -> None:
    act, words = SPOILS[spoil]
    history = fit(network := small(), blobs(), optimizer=Spoiled(act, step), **OPTIONS)
    (mishap,) = history.mishaps
    assert mishap.round == (step - 1) // STEPS + 1
    assert words in mishap.found
    assert mishap.done.endswith(
        "from the weights before it, with a tenth of the learning rate (0.01)"
    )
    assert caplog.messages == [str(mishap)]
    assert str(mishap) in str(history)
    assert [one.task for one in history.rounds] == ["single"] * 2 + ["multi"] * 2
    assert weights(network).isfinite().all()


def test_it_begins_from_the_last_good_weights() -> None:
    spoiled = Spoiled(SPOILS["nan"][0], STEPS + 3)
    fit(network := small(), blobs(), **OPTIONS | {"optimizer": spoiled, "rounds": 1})
    by_hand = small()
    fit(by_hand, blobs(), **OPTIONS | {"optimizer": then_slow, "rounds": 1})
    assert weights(network).equal(weights(by_hand))


def then_slow(parameters: Iterable[nn.Parameter]) -> SGD:
    """The first round as ever; then no momentum, and a tenth of the rate."""

    class Slows(SGD):
        taken = 0

        def step(self, closure: None = None) -> None:
            if self.taken == STEPS:
                self.state.clear()
                self.param_groups[0]["lr"] *= 0.1
            self.taken += 1
            super().step(closure)

    return Slows(parameters, lr=0.1, momentum=0.9)


def test_what_is_lost_again_is_an_error_with_the_weights_from_before() -> None:
    always = Spoiled(SPOILS["nan"][0], STEPS + 3, always=True)
    with pytest.raises(
        TrainingError, match=r"^round 2 .*a tenth of the learning rate did not help"
    ):
        fit(network := small(), blobs(), optimizer=always, **OPTIONS)
    assert weights(network).isfinite().all()
    assert not weights(network).equal(weights(small()))


def test_it_can_be_switched_off() -> None:
    spoiled = Spoiled(SPOILS["nan"][0], 3)
    with pytest.raises(TrainingError, match=r"^round 1 \(single-task\): the loss must stay finite"):
        fit(network := small(), blobs(), optimizer=spoiled, recover=False, **OPTIONS)
    assert weights(network).equal(weights(small()))


def test_many_are_not_slowed_for_one() -> None:
    with pytest.raises(InputError, match="recover is for the training of one network, found 2"):
        fit_many([small(), small()], blobs(), recover=True)


class StopsAt(Checkpoints):
    def __init__(self, folder: Path, times: int) -> None:
        super().__init__(folder, minutes=1e-6)
        self._left = times

    def due(self) -> bool:
        self._left -= 1
        if self._left == 0:
            self.stop()
        return super().due()


@pytest.mark.parametrize("times", range(1, 11))
def test_it_goes_on_after_a_crash_before_at_and_after_the_mishap(
    times: int, tmp_path: Path
) -> None:
    """The rate stays lowered; a checkpoint from within the lost round does no harm."""

    def spoiled(left: int) -> dict[str, Any]:
        falling = partial(CosineAnnealingLR, T_max=4)
        optimizer = Spoiled(SPOILS["nan"][0], left)
        return {**OPTIONS, "optimizer": optimizer, "schedule": falling}

    history = fit(whole := small(), blobs(), **spoiled(STEPS + 3))
    with pytest.raises(Stopped):
        fit(small(), blobs(), checkpoint=StopsAt(tmp_path, times), **spoiled(STEPS + 3))
    steps = 4 * times  # between two looks; those of a new process are counted anew
    left = STEPS + 3 - steps if times <= 2 else 0
    found = fit(again := small(), blobs(), checkpoint=tmp_path, **spoiled(max(left, 1)))
    assert told(found) == told(history)
    assert weights(again).equal(weights(whole))


def test_schedules_are_lowered_too() -> None:
    optimizer = SGD(small().parameters(), lr=1.0)
    parts = [LinearLR(optimizer, 0.5, total_iters=2), CosineAnnealingLR(optimizer, T_max=8)]
    scheduler = SequentialLR(optimizer, parts, milestones=[2])
    history = History()
    assert slow_down(TrainingError("lost"), 0, history, optimizer, scheduler)
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.05)
    for expected in (0.075, 0.1):
        optimizer.step()
        scheduler.step()
        assert optimizer.param_groups[0]["lr"] == pytest.approx(expected)
    assert slow_down(TrainingError("lost"), 0, history, optimizer, scheduler) is None


@pytest.mark.parametrize(
    "schedule",
    [
        partial(OneCycleLR, max_lr=1.0, total_steps=9),
        partial(CyclicLR, base_lr=0.1, max_lr=1.0, step_size_up=3),
        partial(StepLR, step_size=2),
        partial(LambdaLR, lr_lambda=lambda t: 1 / (t + 1)),
        partial(CosineAnnealingWarmRestarts, T_0=3),
    ],
    ids=lambda one: one.func.__name__,
)
def test_every_schedule_goes_on_with_a_tenth(schedule: Any) -> None:
    rates: list[list[float]] = []
    for lowered in (False, True):
        optimizer = SGD(small().parameters(), lr=1.0, momentum=0.9)
        scheduler = schedule(optimizer)
        if lowered:
            assert slow_down(TrainingError("lost"), 0, History(), optimizer, scheduler)
        rates.append([])
        for _ in range(8):
            rates[-1].append(optimizer.param_groups[0]["lr"])
            optimizer.step()
            scheduler.step()
    assert rates[1] == pytest.approx([rate / 10 for rate in rates[0]])


def test_a_loss_that_leaps() -> None:
    history = History()
    assert leapt(1e6, "single", history) is None  # nothing to compare it with
    for last, found, leaps in ((0.01, 99.0, False), (0.01, 101.0, True), (50.0, 4e3, False)):
        history.rounds.append(Round("single", 60, last, 0.0, 0.1))
        assert ("leap" in str(leapt(found, "single", history))) == leaps
    assert "must not leap, found a mean of 1e+04 after 50" in str(leapt(1e4, "single", history))


@pytest.mark.parametrize(
    ("losses", "loss", "rises"),
    [
        ([2.0, 0.5, 0.08], 1.1, True),  # from a tenth, to more than half of where it began
        ([2.0, 0.5, 0.08], 0.9, False),  # not so far
        ([2.0, 0.5, 0.2], 1.9, False),  # not from so low
        ([0.02, 0.5, 0.8], 1.1, True),  # the best is not the last
        ([1e-3, 1e-4, 1e-5], 4e-4, False),  # small beside where it began
        ([], 5.0, False),
    ],
)
def test_a_loss_that_rises(losses: list[float], loss: float, rises: bool) -> None:
    history = History([Round("multi", 60, one, 0.0, 0.1) for one in losses])
    error = leapt(loss, "multi", history)
    assert (error is not None) == rises
    if error:
        assert f"must not rise again as it did, found a mean of {loss:.3g} where" in str(error)
    history.mishaps.append(Mishap(1, "", "", 0.1))
    assert leapt(loss, "multi", history) is None  # it has been slowed down already


def test_who_forgets_what_was_learnt_goes_on_slower_from_before() -> None:
    forgets = Spoiled(lambda p: p.neg_(), 12 * STEPS + 1)
    options = {**OPTIONS, "rounds": 1, "initial_rounds": 13, "optimizer": forgets}
    history = fit(small(), blobs(), **options)
    (mishap,) = history.mishaps
    assert mishap.round == 13
    assert "must not rise again as it did" in mishap.found
    before, again = (one.classifier_loss for one in history.rounds[11:13])
    assert again == pytest.approx(before, rel=0.1)


def test_a_loss_is_compared_with_those_of_its_task() -> None:
    history = History([Round("single", 60, one, 0.0, 0.1) for one in (2.0, 0.1)])
    assert leapt(1.5, "multi", history) is None
    assert leapt(1.5, "single", history) is not None


def test_a_class_that_is_never_predicted() -> None:
    p = torch.tensor([[0.9, 0.1, 0.0], [0.6, 0.4, 0.0], [0.2, 0.8, 0.0]])
    y = torch.tensor([0, 2, 2])
    (mishap,) = never_predicted(p, y, ("a", "b", "c"), 4)
    assert str(mishap).startswith(
        "round 4: never predicted: 'c', though 2 of 3 validation samples are of such a class"
    )
    assert mishap.rate == 1
    assert "a larger tau for rare classes" in mishap.done
    (many,) = never_predicted(torch.eye(1, 9).expand(9, 9), torch.arange(9), "abcdefghi", 1)
    assert "'b', 'c', 'd', 'e', 'f' and 3 more, though 8 of 9" in many.found
    assert never_predicted(torch.eye(3), torch.arange(3), "abc", 1) == []


def test_it_is_told_after_training() -> None:
    plan = Plan.plain(3)
    options = OPTIONS | {"validation": blobs(seed=1), "optimizer": partial(SGD, lr=1e-6)}
    history = fit(small(), blobs(), plan, **options)
    assert history.mishaps
    assert all("never predicted: " in mishap.found for mishap in history.mishaps)
    assert History.from_dict(history.to_dict()) == history
