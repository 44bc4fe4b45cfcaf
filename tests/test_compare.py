"""A trial of the comparison: the same subset, network and test set for every method."""

import platform
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from contests import contest, pictures
from deep_oversampling import InputError, Samples, TrainingError
from deep_oversampling.data import Splits
from deep_oversampling.duration import choose_rounds
from deep_oversampling.metrics import AS_TRAINED, MEASURES
from deep_oversampling.rivals import METHODS
from deep_oversampling.rivals import compare as comparison
from deep_oversampling.rivals.compare import contents, run_trials
from deep_oversampling.rivals.method import Training
from deep_oversampling.rivals.trials import Setting, Trial
from toy import blobs, small

SETTING = Setting("blobs", "c0ffee", "none", "auto", 3, 1, 20, 0.01, 0.25)
WHOLE = Splits("blobs", blobs((40, 30, 12)))
APART = replace(WHOLE, test=blobs((6, 6, 6), seed=1))


def run(splits: Splits, *names: str, seed: int = 0, **changes: object) -> list[Trial]:
    methods = [METHODS[name] for name in names]
    return list(run_trials(splits, replace(SETTING, **changes), methods, [seed], device="cpu"))


@pytest.mark.parametrize("splits", [WHOLE, APART], ids=["held out", "test set"])
def test_a_trial_for_every_method_with_every_measure(splits: Splits) -> None:
    trials = run(splits, "cnn", "cnn-cl", "ros", "dos")
    assert sorted(t.method for t in trials) == ["cnn", "cnn-cl", "dos", "ros"]
    for one in trials:
        assert tuple(one.measures) == (*MEASURES, AS_TRAINED)
        assert all(0 <= v <= 1 for column in one.measures.values() for v in column)
        assert one.samples == ((40, 30, 12) if splits is APART else (30, 22, 9))
        assert one.minority == (2,)
        assert one.setting == SETTING
        assert set(one.where) == {"deep-oversampling", "torch", "python", "hardware"}
        assert one.left_out == ""


def test_repeatable_but_for_the_clock_and_other_with_another_seed() -> None:
    first, again, other = (run(WHOLE, "dos", seed=s)[0] for s in (0, 0, 1))
    assert replace(first, seconds=0.0) == replace(again, seconds=0.0)
    assert first.measures != other.measures


def test_a_method_does_not_depend_on_its_company() -> None:
    alone = {name: run(APART, name)[0] for name in ("cnn-cl", "ros", "dos-lr")}
    for one in run(APART, "dos", "ros", "cnn", "dos-lr", "cnn-cl"):
        if one.method in alone:
            assert one.measures == alone[one.method].measures


def test_methods_that_share_a_training_are_trained_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls, train_together = [], comparison.train_together
    monkeypatch.setattr(
        comparison, "train_together", lambda *a, **o: calls.append(1) or train_together(*a, **o)
    )
    trials = run(APART, "dos", "cnn", "dos-lr", "cnn-cl", "dos-knn")
    assert len(calls) == 2
    assert len({t.seconds for t in trials if t.method.startswith("dos")}) == 1


@pytest.mark.parametrize(
    "change",
    [{"k": 0}, {"rounds": 1}, {"batch_size": 5}, {"learning_rate": 0.2}, {"test_share": 0.5}],
    ids=str,
)
def test_every_setting_changes_something(change: dict[str, object]) -> None:
    base = {"rounds": 4, "learning_rate": 0.03}
    plain, other = run(WHOLE, "dos", **base), run(WHOLE, "dos", **{**base, **change})
    assert other[0].measures != plain[0].measures


def test_model_and_imbalance_change_what_is_trained() -> None:
    pictured = Splits("pictures", pictures((20, 16, 8)))
    auto, residual = (run(pictured, "cnn", model=model)[0] for model in ("auto", "resnet32"))
    assert auto.measures != residual.measures
    assert run(APART, "cnn", imbalance="exp:10")[0].samples == (40, 12, 4)


def test_classes_that_the_protocol_reduced_are_the_minority() -> None:
    """Though the counts alone would say otherwise: 12 is rarer than half of 30."""
    for seed in range(4):
        one = run(APART, "ros", imbalance="drop:1:0.6", seed=seed)[0]
        (reduced,) = (j for j, m in enumerate((40, 30, 12)) if one.samples[j] < m)
        assert one.minority == (reduced,)


def test_presented_is_counted() -> None:
    by_name = {t.method: t.presented for t in run(APART, "cnn", "ros", "dos")}
    assert by_name["cnn"] == 2 * 82
    assert by_name["ros"] == by_name["dos"] == 82 + 40 + 30 + 3 * 12


def test_a_method_that_cannot_be_run_says_why_and_the_rest_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "imblearn.over_sampling", None)
    smote, of_embeddings, cnn = run(APART, "smote", "embedding-smote", "cnn")
    for one in (smote, of_embeddings):
        assert "SMOTE needs imbalanced-learn, found that it cannot be imported (" in one.left_out
        assert one.measures == {}
        assert one.presented == 0
    assert cnn.left_out == ""
    assert cnn.measures


@pytest.mark.parametrize("name", ["smote", "embedding-smote"])
def test_nothing_is_trained_where_a_library_is_missing(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setitem(sys.modules, "imblearn.over_sampling", None)
    with pytest.raises(InputError, match="imbalanced-learn"):
        next(METHODS[name].training.stages(small(), contest()))


def failing(error: Exception) -> Callable[..., Any]:
    def fail(*_: object) -> None:
        raise error

    return fail


MEMORY = {
    "the device's": (torch.OutOfMemoryError("CUDA out of memory. Tried to …"), r"lower --batch-si"),
    "the computer's": (MemoryError("Unable to allocate …"), r"make pictures smaller"),
}


@pytest.mark.parametrize("memory", MEMORY)
def test_a_training_that_runs_out_of_memory_is_left_out(memory: str) -> None:
    error, advice = MEMORY[memory]
    training = Training("large", failing(error))
    methods = [
        replace(METHODS["dos"], training=training),
        replace(METHODS["dos-lr"], training=training),
        METHODS["cnn"],
    ]
    *both, cnn = run_trials(APART, SETTING, methods, [0], device="cpu")
    assert [one.method for one in both] == ["dos", "dos-lr"]
    for one in both:
        assert one.left_out.startswith("out of ")
        assert advice in one.left_out
        assert one.measures == {}
    assert cnn.measures
    assert cnn.left_out == ""


def test_a_readout_that_runs_out_of_memory_is_left_out_alone() -> None:
    error, _ = MEMORY["the device's"]
    methods = [METHODS["dos"], replace(METHODS["dos-lr"], readout=failing(error))]
    dos, lr, knn = run_trials(APART, SETTING, [*methods, METHODS["dos-knn"]], [0], device="cpu")
    assert lr.left_out == (
        f"out of memory on cpu ({platform.machine()}); lower --batch-size or choose --device cpu"
    )
    assert (dos.left_out, knn.left_out) == ("", "")
    assert dos.measures.keys() == knn.measures.keys() == {*MEASURES, AS_TRAINED}


def test_samples_that_do_not_fit_into_memory_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Samples, "to", failing(MEMORY["the device's"][0]))
    with pytest.raises(InputError, match=r"must fit into the memory of cpu .* choose --device cpu"):
        run(APART, "cnn")


@pytest.mark.filterwarnings("ignore:class '2' has 1 sample")
def test_a_class_with_one_sample_leaves_no_method_out() -> None:
    lonely = replace(APART, train=blobs((20, 10, 1)))
    left_out = {one.method: one.left_out for one in run(lonely, *METHODS) if one.left_out}
    assert left_out.keys() == {"dos-pieces", "mixup-pieces"}
    assert all("pieces must be of pictures" in told for told in left_out.values())


def test_a_class_with_one_sample_cannot_be_tested_on_too() -> None:
    with pytest.raises(InputError, match="or bring validation or test data of your own"):
        run(Splits("blobs", blobs((20, 10, 1))), "cnn")


def test_training_that_is_lost_counts_with_the_weights_before_it() -> None:
    (one,) = run(APART, "cnn", learning_rate=1e30)
    assert "round 1 (single-task): the loss must stay finite" in one.lost
    assert one.left_out == ""
    assert 0 <= one.mean("f1", "all") <= 1
    assert one.presented == 0


def test_contents_tell_data_apart() -> None:
    whole = APART.train
    found = {contents(APART)}
    for change in (
        replace(APART, test=None),
        replace(APART, train=Samples(whole.x + 1, whole.y, whole.classes)),
        replace(APART, train=Samples(whole.x, whole.y.flip(0), whole.classes)),
        replace(APART, train=Samples(whole.x, whole.y, ["x", "y", "z"])),
        replace(APART, train=whole[torch.arange(len(whole) - 1)]),
    ):
        found.add(contents(change))
    assert len(found) == 6
    assert contents(replace(APART, name="other")) == contents(APART)


def test_a_readout_that_goes_wrong_leaves_out_no_other() -> None:
    broken = failing(TrainingError("embeddings must be finite"))
    methods = [METHODS["dos"], replace(METHODS["dos-lr"], readout=broken), METHODS["dos-knn"]]
    trials = list(run_trials(APART, SETTING, [*methods, METHODS["cnn"]], [0], device="cpu"))
    assert [(t.method, t.left_out) for t in trials] == [
        ("dos", ""),
        ("dos-lr", "embeddings must be finite"),
        ("dos-knn", ""),
        ("cnn", ""),
    ]


def test_a_test_set_without_a_class_has_no_value_for_it() -> None:
    test = Samples(APART.test.x[APART.test.y != 1], APART.test.y[APART.test.y != 1], "abc")
    (one,) = run(replace(APART, test=test), "cnn")
    assert all(column[1] is None and None not in column[::2] for column in one.measures.values())


def test_what_no_method_can_be_run_on_is_refused() -> None:
    with pytest.raises(
        InputError,
        match=r"the model must be one of auto, resnet32 or layers such as .*, found 'lenet'",
    ):
        run(APART, "cnn", model="lenet")
    with pytest.raises(InputError, match=r"resnet32 needs images.* found \(82, 4\); choose auto"):
        run(APART, "cnn", model="resnet32")
    whole = Splits("ids", Samples(torch.arange(80).view(20, 4), torch.arange(20) % 2))
    with pytest.raises(InputError, match=r"floats or uint8, found torch.int64; store them as"):
        run(whole, "cnn")
    with pytest.raises(InputError, match=r"share must lie between 0 and 1 .*found share=1\.5"):
        run(WHOLE, "cnn", test_share=1.5)


@pytest.mark.parametrize("batch_size", [1, 60, 1000])
def test_rounds_are_more_for_fewer_samples(batch_size: int) -> None:
    rounds = [choose_rounds(m, batch_size) for m in (10, 100, 1000, 10_000, 100_000, 10**7)]
    assert rounds == sorted(rounds, reverse=True)
    assert max(rounds) <= 20
    assert min(rounds) >= 3
