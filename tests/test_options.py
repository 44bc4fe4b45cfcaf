"""Every option of ``fit`` changes something that can be seen."""

import math
from functools import partial

import pytest
import torch
from torch.optim import SGD, Adam, Optimizer
from torch.optim.lr_scheduler import CosineAnnealingLR, StepLR

from deep_oversampling import History, Plan, Samples, measure, predict
from deep_oversampling.history import Round
from toy import COUNTS, blobs, small, train, weights

M = sum(COUNTS)
PLAN = Plan(k=[0, 2, 3], r=[1, 1, 3])


def run(plan: Plan | None = PLAN, **options) -> tuple[torch.Tensor, History]:
    network = small()
    history = train(network, blobs(), plan, **options)
    return weights(network), history


def still(parameters) -> Optimizer:
    """An optimiser that leaves the weights where they are, so that only losses differ."""
    return SGD(parameters, lr=0.0)


def tasks(history: History) -> list[str]:
    return [r.task for r in history.rounds]


def test_plan_decides_what_is_presented() -> None:
    presented = [run(plan)[1].rounds[-1].presented for plan in (Plan.plain(3), PLAN, None)]
    automatic = 20 + 12 + 6 * 3  # minority below 10; 16 majority samples on average, 16/6 → 3
    assert presented == [M, 20 + 12 + 6 * 3, automatic]
    assert not torch.equal(run(Plan.plain(3))[0], run(PLAN)[0])


def test_rounds_are_as_many_of_each_task() -> None:
    assert tasks(run(rounds=2)[1]) == ["single", "single", "multi", "multi"]  # R11
    assert tasks(run(rounds=3)[1]) == ["single"] * 3 + ["multi"] * 3


def test_initial_rounds_are_single_task_rounds() -> None:
    assert tasks(run(rounds=1, initial_rounds=0)[1]) == ["multi"]
    assert tasks(run(rounds=1, initial_rounds=3)[1]) == ["single"] * 3 + ["multi"]


class Counting(SGD):
    """SGD that counts its steps."""

    steps = 0

    def step(self, closure=None):
        self.steps += 1
        return super().step(closure)


def steps_of(samples: Samples, **options) -> list[int]:
    """The steps that each optimiser made, for plain training."""
    made: list[Counting] = []

    def counting(parameters) -> Optimizer:
        made.append(Counting(parameters, lr=0.01))
        return made[-1]

    n = samples.n
    train(small(n), samples, Plan.plain(n), rounds=2, optimizer=counting, **options)
    return [each.steps for each in made if each.steps]  # one is only looked at before


@pytest.mark.parametrize("batch_size", [1, 7, M])
def test_batch_size_decides_the_number_of_steps(batch_size: int) -> None:
    # one optimiser for all four rounds: its state is kept (R9)
    assert steps_of(blobs(), batch_size=batch_size) == [4 * math.ceil(M / batch_size)]


def test_batch_size_is_sixty_or_all_samples_unless_told() -> None:
    assert steps_of(blobs((100, 30))) == [4 * math.ceil(130 / 60)]
    assert steps_of(blobs((20, 10))) == [4]


def test_pull_scales_the_embedding_loss() -> None:
    first, second, none = (
        run(pull=pull, optimizer=still)[1].rounds[-1] for pull in (1.0, 10.0, 0.0)
    )
    assert second.embedding_loss == pytest.approx(10 * first.embedding_loss, rel=1e-5)
    assert first.embedding_loss > none.embedding_loss == 0
    assert second.classifier_loss == pytest.approx(first.classifier_loss)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"pull": 0.0}, {"pull": 1.0, "pull_limit": None}),
        ({"pull_limit": 0.1}, {"pull_limit": 0.3}),
        ({"pull_limit": 0.3}, {"pull_limit": None}),
        ({"weighted": True}, {"weighted": False}),
        ({"optimizer": SGD}, {"optimizer": Adam}),
        ({"seed": 0}, {"seed": 1}),
        ({"batch_size": 7}, {"batch_size": 8}),
        ({"schedule": None}, {"schedule": lambda o: StepLR(o, 1, gamma=0.1)}),
        ({"schedule": None}, {"schedule": "cosine"}),
    ],
    ids=lambda options: " ".join(options),
)
def test_option_changes_the_weights(one: dict, other: dict) -> None:
    assert not torch.equal(run(**one)[0], run(**other)[0])


def test_no_pull_is_a_limit_of_zero() -> None:
    torch.testing.assert_close(run(pull=0.0)[0], run(pull_limit=0.0)[0])


def test_high_limit_is_no_limit() -> None:
    free, limited = (run(pull=0.1, pull_limit=limit)[0] for limit in (None, 1e6))
    torch.testing.assert_close(free, limited)


def test_limit_holds_the_training_that_the_pull_alone_drives_apart() -> None:
    """The reason for the limit: without it, a strong pull moves f much further (R5)."""
    start = weights(small())
    free, limited = (run(pull=100.0, pull_limit=limit)[0] for limit in (None, 0.3))
    assert (free - start).norm() > (limited - start).norm()


def test_unweighted_losses_add_whole_distances() -> None:
    """ℓ_f sums every squared error once; ℓ′_f is an average of them."""
    weighted, unweighted = (
        run(weighted=flag, optimizer=still)[1].rounds[-1] for flag in (True, False)
    )
    assert unweighted.embedding_loss > weighted.embedding_loss > 0


def test_optimizer_is_the_one_that_steps() -> None:
    assert torch.equal(run(optimizer=still)[0], weights(small()))


def test_schedule_is_stepped_after_every_round() -> None:
    made, rates = [], []

    def halving(optimizer: Optimizer) -> StepLR:
        made.append(optimizer)
        return StepLR(optimizer, 1, gamma=0.5)

    run(rounds=2, schedule=halving, on_round=lambda _: rates.append(made[-1].param_groups[0]["lr"]))
    assert rates == pytest.approx([0.005, 0.0025, 0.00125, 0.000625])


@pytest.mark.parametrize(("initial", "total"), [(None, 4), (0, 2), (3, 5)])
def test_cosine_falls_to_zero_over_all_rounds(initial: int | None, total: int) -> None:
    """Those of both kinds."""
    cosine = partial(CosineAnnealingLR, T_max=total)
    by_name, by_hand = (
        run(rounds=2, initial_rounds=initial, schedule=one)[0] for one in ("cosine", cosine)
    )
    assert torch.equal(by_name, by_hand)


def test_on_round_sees_every_round_as_it_ends() -> None:
    seen: list[Round] = []
    _, history = run(rounds=2, on_round=seen.append)
    assert seen == history.rounds


@pytest.mark.parametrize("plan", [PLAN, Plan.plain(3)], ids=repr)
def test_validation_measures_are_those_of_the_predictions(plan: Plan) -> None:
    network, held_out, by_hand = small(), blobs(seed=1), []

    def measure_now(_: Round) -> None:
        report = measure(predict(network, held_out.x), held_out.y)
        few = plan.minority.numpy()
        groups = {"minority": few, "majority": ~few}
        by_hand.append({name: report.mean(g) for name, g in groups.items() if g.any()})

    history = train(network, blobs(), plan, rounds=2, validation=held_out, on_round=measure_now)
    assert [r.validation for r in history.rounds] == by_hand
    assert len(by_hand) == 4


def test_validation_does_not_touch_the_training() -> None:
    with_it, history = run(validation=blobs(seed=1))
    without, other = run()
    assert torch.equal(with_it, without)
    assert all(r.validation for r in history.rounds)
    assert not any(r.validation for r in other.rounds)


def test_samples_are_left_as_they_were() -> None:
    samples = blobs()
    x, y = samples.x.clone(), samples.y.clone()
    train(small(), samples)
    assert torch.equal(samples.x, x)
    assert torch.equal(samples.y, y)
