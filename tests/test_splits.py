"""Validation samples split off the training samples: some of every class, at random."""

import math
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from deep_oversampling import InputError, Samples
from deep_oversampling.data.copies import mirrored_and_rotated
from deep_oversampling.data.splits import Skipped, Splits, hold_out
from deep_oversampling.views import View
from toy import blobs, generator

COUNTS = (50, 20, 2)


def numbered(counts: list[int] | tuple[int, ...], *, view: bool = False) -> Samples:
    """Samples that hold their own row, so that it can be told where one went."""
    y = blobs(counts).y
    x = torch.arange(len(y))[:, None]
    return Samples(View.of(x) if view else x, y, [f"class {j}" for j in range(len(counts))])


def rows(samples: Samples) -> list[int]:
    return samples.x[:].flatten().tolist()


@given(
    st.lists(st.integers(0, 30).filter(lambda m: m != 1), min_size=2, max_size=6).filter(any),
    st.floats(0, 1, exclude_min=True, exclude_max=True),
    st.integers(0, 2**32),
)
def test_every_class_is_split_by_the_share(counts: list[int], share: float, seed: int) -> None:
    samples = numbered(counts)
    rest, held = hold_out(samples, share, seed=seed)
    assert sorted(rows(rest) + rows(held)) == list(range(len(samples)))
    assert rest.classes == held.classes == samples.classes
    for m, left, taken in zip(counts, rest.class_counts, held.class_counts, strict=True):
        assert left + taken == m
        if m:  # an absent class is left alone
            assert left >= 1
            assert taken >= 1
            assert abs(taken - share * m) <= 0.5 or taken in (1, m - 1)


@pytest.mark.parametrize("part", [0, 1], ids=["rest", "held out"])
def test_samples_keep_their_labels_and_their_order(part: int) -> None:
    samples = numbered(COUNTS)
    found = hold_out(samples, 0.3)[part]
    assert rows(found) == sorted(rows(found))
    assert torch.equal(found.y, samples.y[torch.tensor(rows(found))])


def test_the_seed_alone_decides() -> None:
    samples = numbered(COUNTS)
    first = rows(hold_out(samples, 0.5, seed=0)[1])
    torch.manual_seed(5)
    torch.rand(3)
    assert rows(hold_out(samples, 0.5, seed=0)[1]) == first
    assert rows(hold_out(samples, 0.5, seed=1)[1]) != first


def test_a_view_is_split_without_being_read() -> None:
    def unreadable(x: Tensor, u: Tensor) -> Tensor:
        raise AssertionError("was read")

    y = blobs(COUNTS).y
    x = View(torch.zeros(len(y), 1), torch.arange(len(y)), unreadable, torch.zeros(len(y), 0))
    samples = numbered(COUNTS)._unchecked(x, y)  # checks would read it
    for part, whole in zip(hold_out(samples), hold_out(numbered(COUNTS)), strict=True):
        assert isinstance(part.x, View)
        assert part.x.rows.tolist() == rows(whole)


def test_single_samples_cannot_be_split() -> None:
    expected = (
        r"two samples or more .*, found a single one of 'class 1', 'class 3'; add samples, "
        r"leave the class out, or bring validation or test data of your own"
    )
    with pytest.raises(InputError, match=expected):
        hold_out(numbered([5, 1, 0, 1]))


@pytest.mark.parametrize("share", [0.0, 1.0, -0.1, math.nan])
def test_shares_out_of_range_are_refused(share: float) -> None:
    with pytest.raises(InputError, match=f"share must lie between 0 and 1 .* found share={share}"):
        hold_out(numbered(COUNTS), share)


@pytest.mark.parametrize("view", [False, True], ids=["tensor", "view"])
def test_validation_is_taken_from_training(view: bool) -> None:
    train, test = numbered(COUNTS, view=view), numbered([3, 3, 3])
    splits = Splits("numbers", train, test=test, skipped=(Skipped("a.png", "cut off"),))
    found = splits.with_validation(0.2, seed=4)
    expected = hold_out(train, 0.2, seed=4)
    assert found.validation is not None
    assert (rows(found.train), rows(found.validation)) == tuple(map(rows, expected))
    assert found.validation.class_counts.tolist() == [10, 4, 1]
    assert (found.name, found.skipped) == (splits.name, splits.skipped)
    assert found.test is test  # never touched
    assert splits.validation is None  # what was there is as it was


def test_validation_data_that_are_there_are_used() -> None:
    splits = Splits("numbers", numbered([1, 1]), validation=numbered([3, 3]))
    assert splits.with_validation() is splits


def test_copies_of_an_image_are_not_split() -> None:
    samples = Samples(torch.zeros(20, 1, 4, 4, dtype=torch.uint8), [0, 1] * 10)
    copies = mirrored_and_rotated(samples, 3, generator=generator())
    with pytest.raises(InputError, match="hold out first and copy afterwards"):
        hold_out(copies)


@pytest.mark.parametrize("options", [{"share": None}, {"share": "0.1"}, {"seed": 1.5}])
def test_numbers_that_are_none_are_refused(options: dict[str, Any]) -> None:
    samples = Samples(torch.zeros(4, 2), [0, 1, 0, 1])
    with pytest.raises(InputError, match="share must lie between 0 and 1 and the seed be a whole"):
        hold_out(samples, **options)
