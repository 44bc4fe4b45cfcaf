"""Samples to judge by: as many of each class, those that were taken away first."""

from dataclasses import replace

import pytest
import torch

from deep_oversampling import InputError, Samples
from deep_oversampling.data import Splits, imbalanced, mirrored_and_rotated, set_aside
from deep_oversampling.rivals import METHODS
from deep_oversampling.rivals.compare import run_trials
from deep_oversampling.rivals.trials import Setting
from toy import blobs, generator

WHOLE = Samples(torch.arange(120.0).view(120, 1), torch.arange(120) % 3)


def values(samples: Samples) -> set[float]:
    return set(samples.x.flatten().tolist())


@pytest.mark.parametrize("protocol", ["exp:10", "step:10", "drop:1:0.9", "none"])
@pytest.mark.parametrize("share", [0.1, 0.3])
def test_as_many_of_each_class_and_none_is_trained_on(protocol: str, share: float) -> None:
    subset = imbalanced(WHOLE, protocol, seed=1)
    train, aside = set_aside(subset, share)
    assert aside.class_counts.tolist() == [int(share * 40)] * 3
    assert not values(train) & values(aside)
    assert values(train) | values(aside) <= values(WHOLE)
    assert values(train) <= values(subset.samples)


def test_what_was_taken_away_comes_first() -> None:
    """Classes 1 and 2 lose 28 and 36 of 40: only class 0 has to give some of its own."""
    subset = imbalanced(WHOLE, "exp:10", seed=0)
    train, aside = set_aside(subset, 0.5)
    assert subset.samples.class_counts.tolist() == [40, 12, 4]
    assert train.class_counts.tolist() == [20, 12, 4]
    rare = aside.x[aside.y > 0].flatten().tolist()
    assert not set(rare) & values(subset.samples)


def test_everything_that_is_not_trained_on() -> None:
    subset = imbalanced(WHOLE, "exp:10", seed=0)
    (train, even), (same, everything) = (set_aside(subset, even=even) for even in (True, False))
    assert values(train) == values(same)
    assert values(everything) == values(WHOLE) - values(train) > values(even)
    assert everything.class_counts.tolist() == [4, 28, 36]


def test_the_seed_decides() -> None:
    first, again, other = (
        values(set_aside(imbalanced(WHOLE, "none", seed=s))[1]) for s in (0, 0, 1)
    )
    assert first == again != other


@pytest.mark.parametrize("share", [0.0, 0.01, 1.0])
def test_there_must_be_something_to_judge_by_and_to_train_on(share: float) -> None:
    with pytest.raises(InputError, match=r"every class to judge by .* a class of 40 samples"):
        set_aside(imbalanced(WHOLE, "exp:10", seed=0), share)


def test_copies_cannot_be_set_aside() -> None:
    images = Samples(torch.rand(20, 1, 8, 8), torch.arange(20) % 2)
    with pytest.raises(InputError, match="must be distinct to be set aside, found copies"):
        set_aside(imbalanced(mirrored_and_rotated(images, generator=generator()), "none", seed=0))


def test_a_comparison_can_be_judged_by_them() -> None:
    splits = Splits("blobs", blobs((40, 40, 40)), test=blobs((4, 4, 4)))
    setting = Setting("blobs", "", "exp:10", "auto", 2, 1, 16, 0.05, 0.2)
    removed = replace(setting, judge="removed")
    (by_test,) = run_trials(splits, setting, [METHODS["cnn"]], [0], device="cpu")
    (by_removed,) = run_trials(splits, removed, [METHODS["cnn"]], [0], device="cpu")
    assert by_test.samples == (40, 12, 4)
    assert by_removed.samples == (36, 12, 4)
    assert by_test.measures != by_removed.measures


def test_who_judges_must_be_known() -> None:
    splits = Splits("blobs", blobs((40, 40, 40)))
    setting = Setting("blobs", "", "exp:10", "auto", 2, 1, 16, 0.05, 0.2, judge="train")
    with pytest.raises(InputError, match="judge must be one of test, removed, found 'train'"):
        list(run_trials(splits, setting, [METHODS["cnn"]], [0], device="cpu"))
