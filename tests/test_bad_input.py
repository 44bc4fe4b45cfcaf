"""What ``fit`` refuses at the door, and what it does when a training goes wrong."""

from functools import partial

import pytest
import torch
from torch import Tensor, nn
from torch.optim import LBFGS, SGD
from torch.optim.lr_scheduler import OneCycleLR, ReduceLROnPlateau

from deep_oversampling import (
    DOSError,
    InputError,
    Network,
    Plan,
    Samples,
    TrainingError,
    dos_loss,
    embed,
    fit,
    fit_many,
    lenet,
    oversample,
    rivals,
)
from toy import blobs, generator, small, train, weights


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rounds": 0}, "rounds must be at least 1 .* found rounds=0, initial_rounds=None"),
        ({"rounds": -1}, "found rounds=-1"),
        ({"initial_rounds": -1}, "initial_rounds at least 0, found rounds=1, initial_rounds=-1"),
        ({"batch_size": 39}, "between 1 and the number of samples, found 39 for 38 samples"),
        ({"batch_size": 0}, "found 0 for 38 samples"),
        ({"pull": -1.0, "pull_limit": 0.3}, "0 or more .* found pull=-1.0, pull_limit=0.3"),
        ({"pull": float("nan")}, "found pull=nan"),
        ({"pull": float("inf")}, "and finite .* found pull=inf"),
        ({"pull_limit": -0.1}, r"found pull=[\d.]+, pull_limit=-0.1"),
        ({"pull_limit": float("nan")}, "pull_limit=nan"),
        ({"rounds": 2.5}, "rounds must be a whole number, found 2.5"),
        ({"rounds": None}, "rounds must be a whole number, found None"),
        ({"initial_rounds": "3"}, "initial_rounds must be a whole number, found '3'"),
        ({"batch_size": 7.5}, "batch_size must be a whole number, found 7.5"),
        ({"approximate_above": 0.5}, "approximate_above must be a whole number, found 0.5"),
        ({"seed": "a"}, "seed must be a whole number, found 'a'"),
        ({"pull": None}, "pull must be a number, found None"),
        ({"pull": "strong"}, "pull must be a number, found 'strong'"),
        ({"pull_limit": "0.3"}, "pull_limit must be a number, or None for no limit, found '0.3'"),
        ({"schedule": 3}, "schedule must be 'cosine' or a function, found 3; lambda o: StepLR"),
        ({"schedule": "steps"}, "schedule must be 'cosine' or a function, found 'steps'"),
        (
            {"on_round": "rounds.jsonl"},
            "on_round must be a function of a round, found 'rounds.jsonl'; JSONL",
        ),
        ({"engine": "compile"}, "engine must be an Engine, found 'compile'; Engine"),
        ({"stop": 5}, "stop must be an EarlyStopping, found 5; EarlyStopping"),
        ({"checkpoint": 1}, "checkpoint must be the path of a folder, or Checkpoints, found 1"),
        ({"validation": (1, 2)}, "validation must be Samples, found tuple; data.from_dataset"),
        ({"plan": "auto"}, "plan must be a Plan, found 'auto'; make one, .* leave it out"),
        ({"plan": Plan.plain(2)}, "found a plan for 2 classes and data of 3"),
        ({"plan": Plan.plain(4)}, "found a plan for 4 classes and data of 3"),
    ],
    ids=str,
)
def test_arguments_are_checked_before_anything_is_trained(options: dict, message: str) -> None:
    network = small()
    with pytest.raises(InputError, match=message):
        train(network, blobs(), **options)
    assert torch.equal(weights(network), weights(small()))


def test_validation_samples_that_do_not_fit_are_told_before_the_first_round() -> None:
    samples, network = blobs(), small()
    x, y = samples.x[:9], torch.arange(9) % 3
    misfits = {
        r"classes of the samples, 0, 1, 2, found 0, 1, 2, 3; Samples": Samples(x, y + y // 2),
        r"classes of the samples, 0, 1, 2, found b, a, c; Samples": Samples(x, y, ["b", "a", "c"]),
        r"must take validation samples of shape \(3,\)": Samples(x[:, :3], y),
    }
    for message, validation in misfits.items():
        with pytest.raises(InputError, match=message):
            fit(network, samples, validation=validation)
    assert torch.equal(weights(network), weights(small()))


def test_validation_samples_may_lack_names_and_the_last_classes() -> None:
    samples = Samples(blobs().x, blobs().y, ["a", "b", "c"])
    history = fit(small(), samples, rounds=1, validation=Samples(samples.x[:6], [0, 1] * 3))
    assert history.rounds[-1].validation


def test_what_is_no_network_and_what_are_no_samples_is_named() -> None:
    samples = blobs()
    with pytest.raises(
        InputError, match=r"samples must be Samples, found tuple; data.from_dataset"
    ):
        fit(small(), (samples.x, samples.y))
    with pytest.raises(
        InputError, match=r"network must be a Network, found Linear; Network.from_model"
    ):
        fit(nn.Linear(4, 3), samples)
    with pytest.raises(InputError, match="a seed for each network, found 0, 0, 0 and 0 for 0"):
        fit_many([], samples)


LOSSES = {
    "a mean": (
        nn.CrossEntropyLoss(),
        r"value for each row .* found shape \(\) for 4 rows; torch's",
    ),
    "no tensor": (lambda logits, labels: 1.0, "found float for 4 rows"),
    "not made": (rivals.ldam, "logits .* and labels .* found that .*ldam.* when they are made"),
    "made of nothing": (rivals.focal, "found that .*focal.* does not"),
    "a name": ("focal", "found that 'focal' does not"),
    "other classes": (rivals.logit_adjusted(torch.tensor([5, 2])), "found that .* does not: The"),
}


@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_must_give_a_value_for_each_row(name: str) -> None:
    loss, message = LOSSES[name]
    network = small()
    with pytest.raises(InputError, match=message):
        train(network, blobs(), loss=loss)
    assert torch.equal(weights(network), weights(small()))


def test_a_loss_that_gives_a_mean_is_refused_in_a_loop_of_ones_own_too() -> None:
    network, samples = small(), blobs()
    z = oversample(samples, embed(network, samples.x), Plan.uniform(3, 2), generator=generator())
    with pytest.raises(InputError, match=r"found shape .* torch's do with reduction='none'"):
        dos_loss(network, z[torch.arange(9)], loss=nn.CrossEntropyLoss())
    each = nn.CrossEntropyLoss(reduction="none")
    assert dos_loss(network, z[torch.arange(9)], loss=each).ndim == 0


def test_single_class_is_refused() -> None:
    samples = Samples(torch.rand(5, 4), [0] * 5)
    with pytest.raises(InputError, match=r"two or more classes, found class counts \[5\]"):
        train(small(1), samples)


def test_class_without_samples_is_named() -> None:
    samples = Samples(torch.rand(4, 4), [0, 0, 2, 2], ["cat", "dog", "cow"])
    with pytest.raises(InputError, match="at least one sample, found none of 'dog'; remove"):
        train(small(), samples)
    with pytest.raises(InputError, match="found none of 'dog'"):
        train(small(), samples, Plan.plain(3))


def test_network_must_have_an_output_for_every_class() -> None:
    with pytest.raises(InputError, match="3 classes"):
        train(small(n=2), blobs())


def test_embedder_must_return_vectors() -> None:
    samples = Samples(torch.rand(6, 1, 8, 8), [0, 0, 0, 1, 1, 1])
    network = Network(nn.Conv2d(1, 2, 3), nn.Linear(2, 2))
    with pytest.raises(InputError, match=r"shape \(1, d\), found \(1, 2, 6, 6\)"):
        train(network, samples, Plan.plain(2))


class Constant(nn.Module):
    """An embedder that has collapsed: it ignores its input."""

    def __init__(self) -> None:
        super().__init__()
        self.point = nn.Parameter(torch.tensor([0.1, 0.7, -3.3]))

    def forward(self, x: Tensor) -> Tensor:
        return self.point.expand(len(x), -1)


def test_collapsed_embedder_is_named() -> None:
    network = Network(Constant(), nn.Linear(3, 3))
    with pytest.raises(TrainingError, match="found all 38 alike: the embedder has collapsed"):
        train(network, blobs())


def huge(parameters) -> SGD:
    return SGD(parameters, lr=1e25)


@pytest.mark.parametrize("initial_rounds", [0, 1, 2])
def test_training_that_blows_up_names_the_place_and_puts_the_weights_back(
    initial_rounds: int,
) -> None:
    network, before = small(), []

    def remember(parameters) -> SGD:
        before.append(weights(network))
        return huge(parameters)

    task = "single" if initial_rounds else "multi"
    with pytest.raises(
        TrainingError,
        match=rf"^round 1 \({task}-task\): .* found NaN or infinity at step \d+ of \d",
    ) as caught:
        train(network, blobs(), initial_rounds=initial_rounds, batch_size=5, optimizer=remember)
    assert "lower the learning rate" in str(caught.value)
    assert weights(network).isfinite().all()
    assert torch.equal(weights(network), before[0])


def test_weights_are_those_before_the_round_that_failed() -> None:
    """Not those before the training: the good rounds are kept."""
    network, after_each = small(), []

    def schedule(optimizer):
        return torch.optim.lr_scheduler.LambdaLR(optimizer, lambda t: 1.0 if t < 2 else 1e30)

    with pytest.raises(TrainingError, match=r"^round 3 \(multi-task\)"):
        train(
            network,
            blobs(),
            rounds=2,
            batch_size=5,
            schedule=schedule,
            on_round=lambda _: after_each.append(weights(network)),
        )
    assert len(after_each) == 2
    assert torch.equal(weights(network), after_each[-1])


def test_embeddings_that_overflow_name_the_round_and_put_the_weights_back() -> None:
    """One step of finite loss can leave finite weights whose embeddings are not."""
    samples = blobs()
    large = Samples(100 * samples.x, samples.y)
    network = small()
    with pytest.raises(TrainingError, match="round"):
        train(network, large, batch_size=len(large), optimizer=lambda p: SGD(p, lr=1e36))
    assert embed(network, large.x).isfinite().all()


def test_embeddings_that_are_not_finite_are_named() -> None:
    x = blobs().x.double()
    x[2] = 1e300  # a number in the storage, infinite in the network's precision
    with pytest.raises(TrainingError, match="must be finite, found NaN or infinity for sample 2"):
        embed(small(), x)


def test_training_errors_are_runtime_errors() -> None:
    assert issubclass(TrainingError, RuntimeError)
    assert issubclass(TrainingError, DOSError)


def test_an_optimiser_itself_is_refused() -> None:
    network = small()
    with pytest.raises(InputError, match=r"optimizer must be a function .* found SGD"):
        train(network, blobs(), optimizer=SGD(network.parameters(), lr=0.1))


STEPS = {
    "no optimiser": ({"optimizer": list}, "gradients alone, such as SGD or Adam, found .* list$"),
    "many looks": ({"optimizer": LBFGS}, "SGD or Adam, found that it makes LBFGS"),
    "needs a loss": ({"schedule": ReduceLROnPlateau}, "after each of the 2 rounds, .* 'metrics'"),
    "too short": (
        {"schedule": partial(OneCycleLR, max_lr=0.1, total_steps=1)},
        "a step after each of the 2 rounds, .* found: Tried to step 2 times",
    ),
    "no schedule": ({"schedule": lambda optimizer: 0.9}, "needs nothing else, found: 'float'"),
}


@pytest.mark.parametrize("name", STEPS)
def test_what_cannot_be_stepped_is_told_before_the_first_round(name: str) -> None:
    options, message = STEPS[name]
    network = small()
    with pytest.raises(InputError, match=message):
        train(network, blobs(), **options)
    assert torch.equal(weights(network), weights(small()))


def test_a_schedule_may_take_as_many_steps_as_there_are_rounds() -> None:
    one_cycle = partial(OneCycleLR, max_lr=0.1, total_steps=4)
    history = train(small(), blobs(), rounds=2, schedule=one_cycle)
    assert len(history.rounds) == 4


def test_samples_that_the_network_cannot_take_are_told_before_training() -> None:
    whole = Samples(torch.randint(0, 9, (12, 4)), [0] * 6 + [1] * 6)  # int64: passed as they are
    with pytest.raises(InputError, match=r"samples of shape \(4,\) and type torch.int64"):
        train(small(n=2), whole)


def test_images_too_small_for_their_convolutions_are_refused() -> None:
    with pytest.raises(InputError, match=r"large enough for its convolutions, found \(1, 28, 28\)"):
        lenet((1, 28, 28), 3, "C6-C6-C6-F8")


def test_the_clamping_warning_points_at_the_callers_line() -> None:
    samples = Samples(torch.rand(8, 4), [0] * 6 + [1] * 2)
    with pytest.warns(UserWarning, match="class '1' has 2") as caught:
        fit(small(n=2), samples, rounds=1, device="cpu")
    assert caught[0].filename == __file__
