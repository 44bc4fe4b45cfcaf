"""Protocols that make data imbalanced: the numbers they keep, and the samples that are drawn."""

import math
import re

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from deep_oversampling import InputError, Samples
from deep_oversampling.data.imbalance import (
    AsItIs,
    DropFromClasses,
    GaussianDeletion,
    ImbalanceProtocol,
    LongTailed,
    Step,
    draw,
    drop_from_classes,
    parse_protocol,
)
from toy import blobs, generator

COUNTS = [50, 40, 30, 20, 10]
CIFAR = torch.full((10,), 5000)

protocols = st.one_of(
    st.builds(DropFromClasses, st.integers(1, 2), st.floats(0, 0.999)),
    st.builds(GaussianDeletion, st.floats(0, 0.3)),
    st.builds(LongTailed, st.floats(1, 1000)),
    st.builds(Step, st.floats(1, 1000), st.floats(0.01, 0.99)),
    st.just(AsItIs()),
)
counts_of = st.lists(st.integers(1, 40), min_size=3, max_size=8)
with_absent = st.lists(st.integers(0, 40), min_size=3, max_size=8).filter(any)
seeds = st.integers(0, 2**32)


def kept(protocol: ImbalanceProtocol, counts: list[int] | Tensor, seed: int = 0) -> list[int]:
    return protocol.kept(torch.as_tensor(counts), generator(seed)).tolist()


def labels(counts: list[int], seed: int = 0) -> Tensor:
    y = torch.arange(len(counts)).repeat_interleave(torch.tensor(counts))
    return y[torch.randperm(len(y), generator=generator(seed))]


@given(protocols, with_absent, seeds)
def test_no_class_grows_or_disappears(
    protocol: ImbalanceProtocol, counts: list[int], seed: int
) -> None:
    try:
        after = kept(protocol, counts, seed)
    except InputError:
        assert isinstance(protocol, GaussianDeletion)  # out of reach, tested below
        return
    assert all(min(1, m) <= number <= m for number, m in zip(after, counts, strict=True))


@given(protocols, counts_of, seeds)
def test_as_many_samples_are_drawn_as_the_protocol_says(
    protocol: ImbalanceProtocol, counts: list[int], seed: int
) -> None:
    y = labels(counts, seed)
    try:
        quota = protocol.quota(torch.tensor(counts), generator(seed))
    except InputError:
        return
    rows = draw(y, quota, generator(seed))
    assert rows.tolist() == sorted(set(rows.tolist()))
    assert torch.bincount(y[rows], minlength=len(counts)).tolist() == kept(protocol, counts, seed)


@given(protocols)
def test_a_protocol_is_its_text(protocol: ImbalanceProtocol) -> None:
    assert parse_protocol(str(protocol)) == protocol


@pytest.mark.parametrize(
    ("text", "protocol"),
    [
        ("drop:4:0.99", DropFromClasses(4, 0.99)),
        ("drop:2:0.5", DropFromClasses(2, 0.5)),
        ("gaussian:0.2", GaussianDeletion(0.2)),
        ("exp:100", LongTailed(100)),
        ("step:100", Step(100)),
        ("step:10:0.3", Step(10, 0.3)),
        ("none", AsItIs()),
    ],
)
def test_texts_of_the_command_line(text: str, protocol: ImbalanceProtocol) -> None:
    assert parse_protocol(text) == protocol
    assert str(protocol) == text


def test_a_default_that_is_written_out_is_the_default() -> None:
    assert parse_protocol("step:10:0.5") == Step(10)
    assert str(LongTailed(100.0)) == "exp:100"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("dorp:4:0.9", r"must be drop:classes:p, gaussian:reduction, .* did you mean drop:classes"),
        ("gauss:0.2", r"found 'gauss:0.2'; did you mean gaussian:reduction\?$"),
        ("", r"must be drop:.*, exp:factor, step:factor\[:share\], none, found ''$"),
        ("drop", r"is written drop:classes:p in numbers, found 'drop'"),
        ("drop:", r"is written drop:classes:p"),
        ("drop:4:a lot", r"is written drop:classes:p in numbers, found 'drop:4:a lot'"),
        ("drop:4:0.9:2", r"is written drop:classes:p"),
        ("none:1", "is written none in numbers, found 'none:1'"),
        ("drop:4:1", r"p must be a number in \[0, 1\), found 1$"),
        ("drop:4:nan", r"p must be a number in \[0, 1\), found nan"),
        ("drop:2.5:0.9", r"classes must be a whole number, 1 or more, found 2\.5"),
        ("exp:0.5", r"factor must be a finite number, 1 or more, found 0\.5"),
        ("exp:inf", "factor must be a finite number, 1 or more, found inf"),
        ("step:10:1", "share must be a number between 0 and 1, found 1"),
        ("gaussian:-0.1", r"reduction must be a number in \[0, 1\), found -0\.1"),
    ],
)
def test_texts_that_are_no_protocol_are_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_protocol(text)


@pytest.mark.parametrize("p", [1.0, -0.1, math.nan, "0.9", None])
def test_shares_out_of_range_are_refused(p: float) -> None:
    with pytest.raises(InputError, match=rf"p must be a number in \[0, 1\), found {p!r}"):
        DropFromClasses(4, p)


@pytest.mark.parametrize("classes", [0, -1, 2.0])
def test_numbers_of_classes_out_of_range_are_refused(classes: int) -> None:
    with pytest.raises(InputError, match=f"classes must be a whole number, 1 or more, .*{classes}"):
        DropFromClasses(classes, 0.5)


def test_some_class_must_stay_whole() -> None:
    with pytest.raises(InputError, match=r"fewer than the 5 classes .*, found 5; .* drop:1:0\.5"):
        drop_from_classes(blobs(COUNTS), 0.5, generator=generator(), classes=5)


# Drop: the results in this repository depend on these very draws


def as_always(
    y: Tensor, n: int, p: float, classes: int, draws: torch.Generator
) -> tuple[list[int], list[int]]:
    reduced = sorted(torch.randperm(n, generator=draws)[:classes].tolist())
    keep = torch.ones(len(y), dtype=torch.bool)
    for j in reduced:
        rows = (y == j).nonzero().flatten()
        shuffled = rows[torch.randperm(len(rows), generator=draws)]
        keep[shuffled[max(1, round(len(rows) * (1 - p))) :]] = False
    return keep.nonzero().flatten().tolist(), reduced


@given(st.floats(0, 1, exclude_max=True), st.integers(1, 2), with_absent, seeds)
def test_classes_and_samples_are_drawn_as_always(
    p: float, classes: int, counts: list[int], seed: int
) -> None:
    y = labels(counts, seed)
    samples = Samples(y[:, None], y, [str(j) for j in range(len(counts))])
    rows, reduced = drop_from_classes(samples, p, generator=generator(seed), classes=classes)
    assert (rows.tolist(), reduced) == as_always(y, len(counts), p, classes, generator(seed))


def test_ten_classes_are_drawn_as_always() -> None:
    y = labels([600] * 10)
    samples = Samples(y[:, None], y)
    rows, reduced = drop_from_classes(samples, 0.9, generator=generator())
    assert (rows.tolist(), reduced) == as_always(y, 10, 0.9, 4, generator())
    assert len(rows) == 6 * 600 + 4 * 60


@pytest.mark.parametrize("p", [0.0, 0.5, 0.9, 0.999])
@pytest.mark.parametrize("classes", [1, 4])
def test_the_share_p_of_some_classes_is_dropped(p: float, classes: int) -> None:
    samples = blobs(COUNTS)
    rows, reduced = drop_from_classes(samples, p, generator=generator(), classes=classes)
    assert len(set(reduced)) == classes
    for j, (before, after) in enumerate(
        zip(COUNTS, samples[rows].class_counts.tolist(), strict=True)
    ):
        if j in reduced:
            assert after >= 1  # no class disappears
            assert abs(after - max(1, before * (1 - p))) <= 0.5
        else:
            assert after == before


def test_what_is_dropped_depends_on_the_generator_alone() -> None:
    samples = blobs(COUNTS)
    first, again, other = (
        drop_from_classes(samples, 0.5, generator=generator(seed), classes=2) for seed in (0, 0, 1)
    )
    assert torch.equal(first[0], again[0])
    assert first[1] == again[1]
    assert not torch.equal(first[0], other[0])


def test_samples_without_images_are_dropped_alike() -> None:
    """Only labels decide: the storage of x plays no part."""
    y = blobs(COUNTS).y
    bytes_ = Samples(torch.zeros(len(y), 1, 2, 2, dtype=torch.uint8), y)
    first, second = (
        drop_from_classes(s, 0.9, generator=generator())[0] for s in (bytes_, blobs(COUNTS))
    )
    assert torch.equal(first, second)


# Long tails and steps


@pytest.mark.parametrize(
    ("factor", "expected"),
    [
        (1, [5000] * 10),
        (10, [5000, 3871, 2997, 2320, 1796, 1391, 1077, 834, 645, 500]),
        (50, [5000, 3237, 2096, 1357, 878, 568, 368, 238, 154, 100]),
        (100, [5000, 2997, 1796, 1077, 645, 387, 232, 139, 83, 50]),
        (1e6, [5000, 1077, 232, 50, 10, 2, 1, 1, 1, 1]),
    ],
)
def test_long_tail_of_cifar(factor: float, expected: list[int]) -> None:
    assert kept(LongTailed(factor), CIFAR) == expected


@given(st.integers(1, 40), st.integers(2, 12), st.integers(2, 9))
def test_whole_numbers_are_not_rounded_down(least: int, n: int, base: int) -> None:
    """The powers of a base, exactly: base^(n−1−j) times the least count."""
    expected = [least * base ** (n - 1 - j) for j in range(n)]
    if expected[0] < 10**6:
        assert kept(LongTailed(base ** (n - 1)), [expected[0]] * n) == expected


def test_long_tail_starts_at_the_largest_class_and_takes_no_more_than_there_is() -> None:
    assert kept(LongTailed(16), [10, 100, 3, 0, 100]) == [10, 50, 3, 0, 6]
    assert kept(LongTailed(16), [10]) == [10]


@pytest.mark.parametrize(
    ("protocol", "expected"),
    [
        (Step(100), [5000] * 5 + [50] * 5),
        (Step(10, 0.3), [5000] * 7 + [500] * 3),
        (Step(10, 0.7), [5000] * 3 + [500] * 7),
        (Step(3), [5000] * 5 + [1666] * 5),
        (Step(10, 0.001), [5000] * 9 + [500]),  # one class at least
        (Step(1e9, 0.999), [5000] + [1] * 9),  # and one that stays whole
    ],
)
def test_step(protocol: Step, expected: list[int]) -> None:
    assert kept(protocol, CIFAR) == expected


def test_step_takes_no_more_than_there_is() -> None:
    assert kept(Step(2), [100, 7, 60, 0, 5]) == [100, 7, 50, 0, 5]


def test_half_a_class_more_is_rare() -> None:
    assert kept(Step(10), [100] * 5) == [100, 100, 10, 10, 10]


# Gaussian deletion


@given(st.floats(0, 0.99), counts_of, seeds)
def test_the_overall_reduction_is_met_to_the_sample_or_refused(
    reduction: float, counts: list[int], seed: int
) -> None:
    try:
        after = kept(GaussianDeletion(reduction), counts, seed)
    except InputError as error:
        reachable = float(re.search(r"must be at most ([\d.e-]+) for", str(error)).group(1))
        assert reachable < reduction
        after, reduction = kept(GaussianDeletion(reachable), counts, seed), reachable
    assert sum(after) == round((1 - reduction) * sum(counts))


@pytest.mark.parametrize("reduction", [0.1, 0.2, 0.3, 0.4, 0.5, 0.85])
def test_the_share_kept_is_a_gaussian_over_the_places(reduction: float) -> None:
    after = kept(GaussianDeletion(reduction), CIFAR, seed=3)
    order = torch.randperm(10, generator=generator(3)).tolist()
    shares = [after[j] / 5000 for j in order]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] == 1
    # σ from the place where the curve is steepest; a count is up to one sample off
    steep = min(range(1, 10), key=lambda i: abs(shares[i] - math.exp(-0.5)))
    sigma = steep / math.sqrt(-2 * math.log(shares[steep]))
    for i, share in enumerate(shares):
        assert abs(share - max(math.exp(-(i**2) / (2 * sigma**2)), 1 / 5000)) < 5 / 5000


def test_no_class_is_always_the_rarest() -> None:
    rarest = [kept(GaussianDeletion(0.4), [100] * 4, seed) for seed in range(40)]
    assert {after.index(min(after)) for after in rarest} == {0, 1, 2, 3}


def test_nothing_to_reduce_keeps_everything() -> None:
    assert kept(GaussianDeletion(0), COUNTS) == COUNTS
    assert kept(GaussianDeletion(0.001), COUNTS) == COUNTS  # less than half a sample
    assert kept(AsItIs(), COUNTS) == COUNTS


def test_a_class_without_samples_has_no_place() -> None:
    after = kept(GaussianDeletion(0.4), [100, 0, 100, 0, 100])
    assert (after[1], after[3], sum(after), max(after)) == (0, 0, 180, 100)


def test_a_reduction_out_of_reach_says_the_largest() -> None:
    expected = (
        r"must be at most 0\.8998 for these classes, found 0\.95: class \d was drawn to stay "
        r"whole, with 5000 of 50000 samples, .*; choose a smaller reduction, or drop:classes:p"
    )
    with pytest.raises(InputError, match=expected):
        kept(GaussianDeletion(0.95), CIFAR)
