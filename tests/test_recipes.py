"""Recipes of a comparison: what they fill up, and what training makes of it."""

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import torch
from torch import nn

from contests import contest, pictures
from deep_oversampling import InputError, Samples
from deep_oversampling.augmentation import CropAndFlip
from deep_oversampling.data import Splits
from deep_oversampling.oversampling import Overloaded
from deep_oversampling.rivals import METHODS
from deep_oversampling.rivals.compare import begun, entries_of, options_of, run_trials
from deep_oversampling.rivals.method import evenly
from deep_oversampling.rivals.networks import make_network
from deep_oversampling.rivals.recipes import RECIPES, filled_up, rate_share, recipe_of, schedule_of
from deep_oversampling.rivals.retraining import behind_fixed
from deep_oversampling.rivals.trials import Setting, read_trials
from deep_oversampling.stages import Stage, train_stages
from deep_oversampling.training import Trainer
from some_trials import SETTING, trial

GIVEN = {"data": "x", "contents": "", "imbalance": "exp:4", "k": 2, "test_share": 0.2}
SPLITS = Splits("pictures", pictures((24, 16, 8)), test=pictures((6, 6, 6)))


def modern(**changes: object) -> Setting:
    """The long-tailed recipe in small."""
    small = {"rounds": 5, "batch_size": 16, "model": "C8-F8", **changes}
    return filled_up(RECIPES["cifar-lt"], size=48, **GIVEN, **small)


# what they fill up


def test_the_recipe_of_the_long_tailed_sets() -> None:
    setting = filled_up(RECIPES["cifar-lt"], size=50_000, **GIVEN)
    assert (setting.rounds, setting.late, setting.head_rounds) == (100, 40, 10)
    assert (setting.model, setting.batch_size) == ("resnet32", 128)
    assert (setting.learning_rate, setting.weight_decay) == (0.1, 2e-4)
    assert (setting.schedule, setting.augment, setting.even) == ("steps", "crop-flip", True)


def test_what_is_given_wins_and_rounds_stay_in_proportion() -> None:
    setting = filled_up(RECIPES["cifar-lt"], size=9, **GIVEN, weight_decay=5e-4, rounds=10)
    assert setting.weight_decay == 5e-4
    assert (setting.rounds, setting.late, setting.head_rounds) == (10, 4, 1)


def test_the_plain_recipe_is_a_setting_that_says_nothing_more() -> None:
    plain = filled_up(RECIPES["plain"], size=9, rounds=3, **GIVEN)
    assert plain == Setting("x", "", "exp:4", "auto", 2, 3, 60, 0.01, 0.2)
    assert plain.late == 3


def test_an_unknown_recipe_is_refused() -> None:
    with pytest.raises(InputError, match="one of plain, cifar-lt, found 'cifar'"):
        recipe_of("cifar")


def test_settings_of_earlier_releases_are_read(tmp_path: Path) -> None:
    line = asdict(trial())
    for name in ("late_rounds", "head_rounds", "weight_decay", "augment", "even", "judge"):
        del line["setting"][name]
    path = tmp_path / "trials.jsonl"
    line["setting"]["initial_rounds"] = None
    path.write_text(json.dumps(line) + "\n")
    assert read_trials(path, SETTING) == [trial()]


# the schedule


def test_rates_are_those_of_the_published_code() -> None:
    """By epochs that count from 1: epoch/5, then 1, 0.01 after 160, 0.0001 after 180."""
    for epoch in range(1, 201):
        expected = epoch / 5 if epoch <= 5 else 0.0001 if epoch > 180 else 1.0
        expected = 0.01 if 160 < epoch <= 180 else expected
        assert rate_share(epoch - 1, rounds=200, late_rounds=40) == pytest.approx(expected)


def test_rounds_of_g_begin_anew() -> None:
    shares = [rate_share(t, rounds=5, late_rounds=1, head_rounds=4) for t in range(3, 11)]
    assert shares[2] == 1.0
    assert shares[2:] == sorted(shares[2:], reverse=True)
    assert shares[-2:] == [0.0, 0.0]


def test_the_optimiser_follows_the_schedule(monkeypatch: pytest.MonkeyPatch) -> None:
    seen, run = [], Trainer.train_in_parts

    def watched(self: Trainer, *values: object, **options: object) -> object:
        seen.append(self.optimizer.param_groups[0]["lr"])
        return run(self, *values, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Trainer, "train_in_parts", watched)
    setting = modern()
    list(run_trials(SPLITS, setting, [METHODS["crt"]], [0], device="cpu"))
    expected = [rate_share(t, rounds=10, late_rounds=2, head_rounds=1) for t in range(11)]
    assert seen == pytest.approx([0.1 * share for share in expected])
    assert schedule_of(replace(setting, schedule="constant")) is None


def test_rounds_of_g_need_a_schedule_that_begins_anew() -> None:
    setting = replace(modern(), schedule="cosine")
    with pytest.raises(InputError, match="need a schedule that begins anew, steps, found cosine"):
        list(run_trials(SPLITS, setting, [METHODS["cnn"]], [0], device="cpu"))


@pytest.mark.parametrize("schedule", ["cosine", "constant"])
def test_with_another_schedule_a_recipe_has_no_rounds_after_the_last(schedule: str) -> None:
    setting = modern(schedule=schedule)
    assert (setting.rounds, setting.late_rounds, setting.head_rounds) == (5, 2, 0)
    (trial,) = run_trials(SPLITS, setting, [METHODS["crt"]], [0], device="cpu")
    assert trial.measures


# what training makes of it


@pytest.mark.parametrize(
    "change", [{"weight_decay": 0.1}, {"augment": "none"}, {"schedule": "constant"}], ids=str
)
def test_every_part_changes_something(change: dict[str, object]) -> None:
    base = {"head_rounds": 0}
    settings = replace(modern(), **base), replace(modern(), **base, **change)
    one, other = (
        next(iter(run_trials(SPLITS, setting, [METHODS["cnn"]], [0], device="cpu")))
        for setting in settings
    )
    assert one.measures != other.measures


def test_options_say_what_the_setting_says() -> None:
    options = options_of(METHODS["cnn"], modern())
    assert options["augment"] == CropAndFlip()
    made = options["optimizer"]([nn.Parameter(torch.zeros(1))])
    assert made.param_groups[0]["weight_decay"] == 2e-4
    assert options_of(METHODS["cnn"], replace(modern(), bf16=True))["engine"].bf16


def test_mixed_precision_is_refused_at_the_door_where_there_is_no_gpu() -> None:
    with pytest.raises(InputError, match="bf16 needs an NVIDIA GPU"):
        list(run_trials(SPLITS, modern(bf16=True), [METHODS["cnn"]], [0], device="cpu"))


def test_augmentation_needs_images() -> None:
    vectors = Splits("vectors", Samples(torch.rand(9, 4), torch.arange(9) % 3))
    setting = replace(modern(), model="auto")
    with pytest.raises(InputError, match=r"crop-flip needs images, .* found \(9, 4\)"):
        list(run_trials(vectors, setting, [METHODS["cnn"]], [0]))
    with pytest.raises(InputError, match="augment must be one of none, crop-flip, found 'turn'"):
        list(run_trials(SPLITS, modern(augment="turn"), [METHODS["cnn"]], [0]))


@pytest.mark.parametrize("method", ["cnn", "ros", "drs", "drw", "ldam-drw", "dos", "tl-rs-csl"])
def test_an_epoch_is_as_many_images_as_there_are(method: str) -> None:
    setting = modern(learning_rate=0.02)
    (found,) = run_trials(SPLITS, setting, [METHODS[method]], [0], device="cpu")
    m, rounds = sum(found.samples), 5 + 5
    assert found.left_out == ""
    if method == "tl-rs-csl":  # a round is two passes
        assert found.presented <= 5 * m + 2 * 5 * m
    else:
        assert found.presented == rounds * m


@pytest.mark.parametrize(
    ("method", "begins"), [("ros", 5), ("dos", 5), ("drs", 8), ("drw", 8), ("ldam-drw", 8)]
)
def test_over_sampling_begins_halfway_and_what_is_deferred_later(method: str, begins: int) -> None:
    (entry,) = entries_of(SPLITS, modern(), [0], torch.device("cpu"))
    member = begun(METHODS[method], entry, modern())
    made = list(member.stages)
    assert len(made) == 10
    kinds = [(type(stage.table), repr(getattr(stage.objective, "func", 0))) for stage in made]
    assert len(set(kinds[:begins])) == len(set(kinds[begins:])) == 1
    assert kinds[0] != kinds[begins]


def test_only_rounds_of_g_come_on_top() -> None:
    for name in ("crt", "mixup-crt"):
        (found,) = run_trials(SPLITS, modern(), [METHODS[name]], [0], device="cpu")
        assert found.presented == (5 + 5 + 1) * sum(found.samples)


def test_of_longer_tables_some_rows_are_drawn_anew() -> None:
    given = contest()
    setting = modern(rounds=2)
    (entry,) = entries_of(SPLITS, setting, [0], torch.device("cpu"))
    member = begun(METHODS["dos"], entry, setting)
    train_stages(
        member.network, _until_multi(member.stages, seen := []), batch_size=16, rng=given.rng
    )
    first, second = seen
    assert isinstance(first.table, Overloaded)
    assert len(first.table) == len(second.table) == len(entry.train)
    assert len(first.table.w) == int(first.table.has_neighbours.sum())
    assert not torch.equal(first.table.anchor, second.table.anchor)
    batch = first.table[torch.arange(len(first.table))]
    assert torch.equal(batch.y, entry.train.y[first.table.anchor])


def _until_multi(stages, seen: list[Stage]):
    for stage in stages:
        if stage.task == "multi":
            seen.append(stage)
        yield stage


def test_short_tables_stay_as_they_are() -> None:
    given = contest()
    stage = Stage("single", given.samples, behind_fixed)
    assert list(evenly(iter([stage]), given)) == [stage]


def test_behind_a_fixed_f_only_g_learns_and_batch_norm_stands_still() -> None:
    images = pictures((12, 8, 4))
    network = make_network("resnet32", images, 0)
    network.embedder(network.normalize(images.x))  # statistics that are not those of the start
    before = {name: t.clone() for name, t in network.state_dict().items()}
    stage = Stage("head", images, behind_fixed)
    train_stages(network, iter([stage]), batch_size=8, augment=CropAndFlip(1), rng=contest().rng)
    for name, tensor in network.state_dict().items():
        assert torch.equal(tensor, before[name]) == (not name.startswith("classifier"))
