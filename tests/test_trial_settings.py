"""Plans and networks of a setting by name; headers and broken lines among trials."""

import json
import math
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import torch

from contests import pictures
from deep_oversampling import InputError, Samples
from deep_oversampling.augmentation import CropAndFlip
from deep_oversampling.data import Splits
from deep_oversampling.rivals import METHODS, compare
from deep_oversampling.rivals.compare import (
    begun,
    entries_of,
    options_of,
    run_trials,
)
from deep_oversampling.rivals.method import Contest
from deep_oversampling.rivals.networks import make_network
from deep_oversampling.rivals.trials import (
    append_header,
    append_trial,
    read_headers,
    read_trials,
)
from deep_oversampling.stages import train_members
from deep_oversampling.training import Trainer
from some_trials import SETTING, trial

SMALL = replace(SETTING, data="pictures", imbalance="none", rounds=1, batch_size=8, k=3)
SPLITS = Splits("pictures", pictures((12, 8, 4)), test=pictures((6, 6, 6)))


def contest_of(monkeypatch: pytest.MonkeyPatch, **changes: object) -> Contest:
    """What DOS is given."""
    seen: list[Contest] = []

    def watched(*values: object, **named: object) -> Contest:
        seen.append(Contest(*values, **named))  # type: ignore[arg-type]
        return seen[-1]

    monkeypatch.setattr(compare, "Contest", watched)
    list(run_trials(SPLITS, replace(SMALL, **changes), [METHODS["dos"]], [0], device="cpu"))
    return seen[0]


def test_a_uniform_plan_has_k_for_every_class_and_r_1(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = contest_of(monkeypatch, plan="uniform").plan
    assert plan.k.tolist() == [3, 3, 3]
    assert plan.r.tolist() == [1, 1, 1]
    assert not plan.minority.any()


def test_else_the_counts_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = contest_of(monkeypatch).plan
    assert plan.k.tolist() == [0, 0, 3]
    assert plan.r.tolist() == [1, 1, 2]


def test_augmentation_is_known_to_what_makes_targets(monkeypatch: pytest.MonkeyPatch) -> None:
    assert contest_of(monkeypatch, augment="crop-flip").augment == CropAndFlip()
    assert contest_of(monkeypatch).augment is None


def test_unknown_plans_are_refused() -> None:
    with pytest.raises(InputError, match="one of by counts, uniform, found 'even'"):
        list(run_trials(SPLITS, replace(SMALL, plan="even"), [METHODS["cnn"]], [0], device="cpu"))


@pytest.mark.parametrize(
    "method", ["logit-adjustment", "mixup-la", "dos-la", "dos-pieces", "mixup-pieces"]
)
def test_methods_that_adjust_logits_have_the_same_tau(method: str) -> None:
    def losses(**changes: object) -> list[float]:
        setting = replace(SMALL, **changes)
        (entry,) = entries_of(SPLITS, setting, [0], torch.device("cpu"))
        member = begun(METHODS[method], entry, setting)
        train_members([member], **options_of(METHODS[method], setting))
        return [one.classifier_loss for one in member.history.rounds]

    assert losses() == losses(tau=1.0)
    assert losses()[-1] != losses(tau=1.5)[-1]


@pytest.mark.parametrize("tau", [-0.5, torch.nan, torch.inf])
def test_a_tau_that_cannot_be_is_refused(tau: float) -> None:
    with pytest.raises(InputError, match="tau must be 0 or more and finite, found"):
        list(run_trials(SPLITS, replace(SMALL, tau=tau), [METHODS["cnn"]], [0], device="cpu"))


def test_a_model_may_be_layers() -> None:
    network = make_network("C2-C3-F8", SPLITS.train, seed=0)
    assert network.embed(SPLITS.train.x[:5]).shape == (5, 8)
    layers = replace(SMALL, model="C2-C3-F8")
    (found,) = run_trials(SPLITS, layers, [METHODS["cnn"]], [0], device="cpu")
    assert found.left_out == ""
    assert len(found.measures["f1"]) == 3


@pytest.mark.parametrize(
    ("model", "must"),
    [
        ("C2-X3-F8", "layers must be convolutions"),
        ("C2-C2-C2-C2-F8", "large enough for its convolutions"),
        ("6-16-120", "or layers such as C6-C16-F400-F120, found '6-16-120'"),
    ],
)
def test_layers_that_cannot_be_are_refused_at_the_door(model: str, must: str) -> None:
    with pytest.raises(InputError, match=must):
        list(run_trials(SPLITS, replace(SMALL, model=model), [METHODS["cnn"]], [0], device="cpu"))


def test_layers_need_images() -> None:
    vectors = Splits("vectors", Samples(torch.rand(9, 4), torch.arange(9) % 3))
    with pytest.raises(InputError, match=r"C2-F8 needs images, .* found \(9, 4\)"):
        list(run_trials(vectors, replace(SMALL, model="C2-F8"), [METHODS["cnn"]], [0]))


# files


@pytest.mark.parametrize("missing", ["plan", "tau"])
def test_what_files_of_earlier_releases_do_not_say_is_the_default(
    missing: str, tmp_path: Path
) -> None:
    line = asdict(trial())
    del line["setting"][missing]
    path = tmp_path / "trials.jsonl"
    path.write_text(json.dumps(line) + "\n")
    assert read_trials(path, SETTING) == [trial()]


def test_headers_are_no_trials(tmp_path: Path) -> None:
    path = tmp_path / "trials.jsonl"
    headers = [{"date": "2026-01-01"}, {"date": "2026-01-02"}]
    for seed, header in enumerate(headers):
        append_header(path, header)
        append_trial(path, trial(seed=seed))
    assert read_trials(path, SETTING) == [trial(seed=0), trial(seed=1)]
    assert read_headers(path) == headers
    assert read_headers(tmp_path / "none") == []


def test_broken_lines_are_named_and_stay(tmp_path: Path) -> None:
    path = tmp_path / "trials.jsonl"
    append_trial(path, trial(seed=0))
    path.write_text(path.read_text() + '{"setting": {"da\n')
    append_trial(path, trial(seed=1))
    before, broken = path.read_bytes(), []
    assert len(read_trials(path, on_broken=broken.append)) == 2
    assert broken == [2]
    assert path.read_bytes() == before


def rates_of(monkeypatch: pytest.MonkeyPatch, method: str, **changes: object) -> list[float]:
    """The learning rates of the optimiser, round by round."""
    seen: list[float] = []
    run = Trainer.train_in_parts

    def watched(self: Trainer, *values: object, **options: object) -> object:
        seen.append(self.optimizer.param_groups[0]["lr"])
        return run(self, *values, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Trainer, "train_in_parts", watched)
    setting = replace(SMALL, rounds=2, learning_rate=0.02, **changes)
    list(run_trials(SPLITS, setting, [METHODS[method]], [0], device="cpu"))
    return seen


def test_a_constant_rate_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    assert rates_of(monkeypatch, "cnn") == [0.02] * 4


def test_a_cosine_falls_over_all_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    cosine = [0.01 * (1 + math.cos(math.pi * t / 4)) for t in range(4)]
    assert rates_of(monkeypatch, "dos", schedule="cosine") == pytest.approx(cosine)


def test_two_passes_of_one_round_have_one_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    single, other, first, second, third, fourth = rates_of(
        monkeypatch, "tl-rs-csl", schedule="cosine"
    )
    assert single > other > first == second > third == fourth > 0


def test_a_method_may_have_a_rate_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    rates = (("dos", 0.1),)
    assert rates_of(monkeypatch, "cnn", rates=rates) == [0.02] * 4
    assert rates_of(monkeypatch, "dos", rates=rates) == [0.1] * 4


def test_an_unknown_schedule_is_refused() -> None:
    setting = replace(SMALL, schedule="linear")
    with pytest.raises(InputError, match="must be one of constant, cosine, steps, found 'linear'"):
        list(run_trials(SPLITS, setting, [METHODS["cnn"]], [0]))


def test_a_trial_knows_its_own_rate_and_no_other(tmp_path: Path) -> None:
    path, rates = tmp_path / "t.jsonl", (("cnn", 0.03), ("ros", 0.1))
    setting = replace(SETTING, schedule="cosine", rates=rates)
    for method in ("cnn", "ros", "dos"):
        append_trial(path, trial(method, setting=setting.of(method)))
    found = {one.method: one.setting for one in read_trials(path, setting)}
    assert {name: one.learning_rate for name, one in found.items()} == {
        "cnn": 0.03,
        "ros": 0.1,
        "dos": SETTING.learning_rate,
    }
    assert not any(one.rates for one in found.values())
    assert len(read_trials(path)) == 3  # without a setting, too
    read_trials(path, replace(setting, rates=(*rates, ("smote", 0.2))))  # of one to come
    with pytest.raises(InputError, match=r"learning_rate 0.1 instead of 0.2 in line 2"):
        read_trials(path, replace(setting, rates=(("cnn", 0.03), ("ros", 0.2))))
    append_trial(path, trial("ros", seed=9, setting=replace(setting.of("ros"), learning_rate=1.0)))
    with pytest.raises(InputError, match=r"learning_rate 1.0 instead of 0.1 in line 4"):
        read_trials(path)


def test_rates_that_are_none_are_refused(tmp_path: Path) -> None:
    line = asdict(trial("cnn"))
    line["setting"]["rates"] = "fast"
    (tmp_path / "t.jsonl").write_text(json.dumps(line))
    with pytest.raises(InputError, match="must hold trials as this release writes them"):
        read_trials(tmp_path / "t.jsonl")
