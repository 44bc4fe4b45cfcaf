"""Early stopping: when a training ends, with which weights, and what it needs to look at."""

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

from deep_oversampling import (
    DOSClassifier,
    EarlyStopping,
    History,
    InputError,
    Network,
    Plan,
    Samples,
    fit,
    fit_many,
    measure,
    predict,
)
from deep_oversampling.data.splits import hold_out
from deep_oversampling.history import Round
from deep_oversampling.objectives import single_task
from deep_oversampling.stages import Stage
from deep_oversampling.stopping import until_no_better
from toy import blobs, small, train

PLAN = Plan(k=[0, 0, 3], r=[1, 1, 4])


def stopped_at(values: list[float], patience: int, tasks: str = "") -> tuple[History, float]:
    """Rounds with such minority F1, each of which adds 1 to a weight; the weight at the end."""
    network, history = small(), History()
    weight = network.classifier.bias
    weight.data.zero_()
    stage = {name: Stage(name, blobs(), single_task) for name in ("single", "multi")}
    names = [{"s": "single", "m": "multi"}[one] for one in tasks or "m" * len(values)]

    def stages() -> Iterator[Stage]:
        yield from (stage[name] for name in names)

    stop = EarlyStopping(patience)
    for t, one in enumerate(until_no_better(stages(), network, history, stop, {})):
        weight.data += 1
        scores = {"minority": {"f1": values[t]}}
        history.rounds.append(Round(one.task, 1, 0.0, 0.0, 0.0, scores))
    return history, weight[0].item()


@pytest.mark.parametrize(
    ("values", "patience", "rounds", "kept"),
    [
        ([0.1, 0.2, 0.3], 1, 3, 2),  # it gets better to the end
        ([0.3, 0.2, 0.4, 0.5], 1, 2, 0),
        ([0.3, 0.2, 0.4, 0.5], 2, 4, 3),
        ([0.1, 0.5, 0.4, 0.4, 0.4, 0.9], 3, 5, 1),
        ([0.2, 0.2, 0.2], 2, 3, 0),  # as good is no better: the earliest is kept
    ],
)
def test_it_ends_after_so_many_rounds_without_a_better_one(
    values: list[float], patience: int, rounds: int, kept: int
) -> None:
    history, weight = stopped_at(values, patience)
    assert (len(history.rounds), history.kept) == (rounds, kept)
    assert weight == kept + 1


def test_single_task_rounds_are_not_counted() -> None:
    history, weight = stopped_at([0.9, 0.8, 0.7, 0.3, 0.2, 0.4], 1, tasks="sssmmm")
    assert (len(history.rounds), history.kept, weight) == (5, 3, 4)


TRAIN, VALIDATION = hold_out(blobs((60, 40, 24)), 0.5)


def minority_f1(network: Network, data: Samples) -> float:
    return measure(predict(network, data.x), data.y).mean([2])["f1"]


def test_fit_keeps_the_weights_of_the_best_round() -> None:
    network, validation = small(), VALIDATION
    history = train(network, TRAIN, PLAN, rounds=12, validation=validation, stop=EarlyStopping(2))
    multi = [r.validation["minority"]["f1"] for r in history.rounds if r.task == "multi"]
    assert history.kept == 12 + int(np.argmax(multi))
    assert minority_f1(network, validation) == max(multi)
    assert f"those of round {history.kept + 1}" in str(history)
    assert len(multi) in (12, history.kept - 12 + 1 + 2)


def test_up_to_its_end_the_training_is_the_one_without_stopping() -> None:
    options: dict[str, Any] = {"rounds": 8, "validation": VALIDATION}
    whole = train(small(), TRAIN, PLAN, **options)
    ended = train(small(), TRAIN, PLAN, stop=EarlyStopping(1), **options)
    assert len(ended.rounds) < len(whole.rounds)
    for one, other in zip(ended.rounds, whole.rounds, strict=False):
        assert one.classifier_loss == other.classifier_loss
    assert len(ended.spreads) == sum(r.task == "multi" for r in ended.rounds) + 1
    assert whole.kept is None


@pytest.mark.parametrize("at_once", [1, 3])
def test_each_of_many_ends_by_itself(at_once: int) -> None:
    validation, stop = VALIDATION, EarlyStopping(1, "auprc")
    options: dict[str, Any] = {"rounds": 6, "validation": validation, "stop": stop}
    networks = [small(seed=seed) for seed in range(3)]
    alone = copy.deepcopy(networks)
    histories = fit_many(networks, TRAIN, [PLAN] * 3, at_once=at_once, device="cpu", **options)
    assert len({len(h.rounds) for h in histories if isinstance(h, History)}) > 1
    for e, (network, other, history) in enumerate(zip(networks, alone, histories, strict=True)):
        assert isinstance(history, History)
        theirs = fit(other, TRAIN, PLAN, seed=e, device="cpu", **options)
        assert (history.kept, len(history.rounds)) == (theirs.kept, len(theirs.rounds))
        for mine, its in zip(network.parameters(), other.parameters(), strict=True):
            torch.testing.assert_close(mine, its, rtol=1e-4, atol=1e-5)


def test_without_validation_there_is_nothing_to_look_at() -> None:
    with pytest.raises(InputError, match="must have validation samples to look at, found none"):
        train(small(), blobs(), PLAN, stop=EarlyStopping())


@pytest.mark.parametrize(
    ("plan", "validation", "found"),
    [
        (Plan.uniform(3), blobs(), "of the minority, found none of the 0"),
        (PLAN, blobs((5, 5)), "of the minority, found none of the 1"),
    ],
)
def test_the_group_must_be_there(plan: Plan, validation: Samples, found: str) -> None:
    with pytest.raises(InputError, match=found):
        train(small(), blobs(), plan, validation=validation, stop=EarlyStopping())


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"patience": 0}, "patience must be a whole number ≥ 1, found 0"),
        ({"patience": 1.5}, "patience must be a whole number ≥ 1, found 1.5"),
        ({"measure": "accuracy"}, "measure must be one of precision, recall, f1, auprc, found"),
        ({"group": "all"}, "group must be one of minority, majority, found 'all'"),
    ],
)
def test_what_it_is_told_must_make_sense(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        EarlyStopping(**wrong)


# the classifier


def data(counts: tuple[int, ...] = (40, 40, 12)) -> tuple[Any, Any]:
    samples = blobs(counts)
    return samples.x.numpy(), samples.y.numpy()


FAST: dict[str, Any] = {"rounds": 15, "initial_rounds": 2, "device": "cpu"}


def test_the_classifier_stops_early_and_keeps_the_best() -> None:
    classifier = DOSClassifier(early_stopping=True, n_iter_no_change=2, **FAST).fit(*data())
    history = classifier.history_
    assert history.kept is not None
    assert len(history.rounds) < 2 + 15
    assert history.rounds[0].presented == 36 + 36 + 11  # a tenth of every class is held out


def test_it_holds_out_the_fraction_it_is_told() -> None:
    classifier = DOSClassifier(early_stopping=True, validation_fraction=0.5, **FAST).fit(*data())
    assert classifier.history_.rounds[0].presented == 20 + 20 + 6
    with pytest.raises(InputError, match="share must lie between 0 and 1"):
        DOSClassifier(early_stopping=True, validation_fraction=1.0, **FAST).fit(*data())


def test_without_it_the_classifier_trains_on_all_to_the_end() -> None:
    classifier = DOSClassifier(validation_fraction=0.5, n_iter_no_change=1, **FAST).fit(*data())
    assert classifier.history_.kept is None
    assert [r.presented for r in classifier.history_.rounds[:2]] == [92, 92]
    assert len(classifier.history_.rounds) == 2 + 15


def test_where_no_class_is_favoured_it_looks_at_all() -> None:
    options: dict[str, Any] = {**FAST, "rounds": 3, "early_stopping": True, "ensemble": 2}
    classifier = DOSClassifier(minority=None, **options).fit(*data((30, 30, 30)))
    assert [h.kept is not None for h in classifier.histories_] == [True, True]
