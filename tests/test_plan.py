"""k_j and r_j: every constructor against values worked out by hand, and what it refuses."""

import warnings

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import paper_loops as paper
from deep_oversampling import InputError, Plan
from deep_oversampling.plan import default_plan
from toy import blobs, small, train

CIFAR10_LT = [5000, 2997, 1796, 1077, 645, 387, 232, 139, 83, 50]


def vectors(plan: Plan) -> tuple[list[int], list[int]]:
    return plan.k.tolist(), plan.r.tolist()


def test_plain_is_no_over_sampling() -> None:
    assert vectors(Plan.plain(3)) == ([0, 0, 0], [1, 1, 1])


def test_uniform_treats_all_classes_alike() -> None:
    assert vectors(Plan.uniform(2, k=7)) == ([7, 7], [1, 1])


@pytest.mark.parametrize(
    ("counts", "minority", "k", "r_times", "expected"),
    [
        ([100, 5, 100, 15], [1, 3], 5, 1, ([0, 5, 0, 5], [1, 10, 1, 10])),  # R = 10/100
        ([100, 5, 100, 15], [3, 1, 1], 5, 5, ([0, 5, 0, 5], [1, 50, 1, 50])),  # k/R
        ([10, 3], [1], 3, 1, ([0, 3], [1, 3])),  # 1/R = 3.33
        ([10, 3], [1], 3, 2, ([0, 3], [1, 7])),  # 2/R = 6.67
        ([10, 20], [1], 4, 1, ([0, 4], [1, 1])),  # a "minority" that is larger: r stays 1
        ([6000] * 6 + [60] * 4, [6, 7, 8, 9], 10, 1, ([0] * 6 + [10] * 4, [1] * 6 + [100] * 4)),
        ([10, 5], [1], 0, 1, ([0, 0], [1, 2])),  # random over-sampling
    ],
)
def test_for_minority_by_hand(counts, minority, k, r_times, expected) -> None:
    plan = Plan.for_minority(torch.tensor(counts), minority, k, r_times=r_times)
    assert vectors(plan) == expected


@given(st.lists(st.integers(1, 5000), min_size=2, max_size=6), st.integers(1, 10), st.data())
def test_for_minority_is_the_papers_ratio(counts: list[int], k: int, data: st.DataObject) -> None:
    some = st.lists(
        st.integers(0, len(counts) - 1), min_size=1, max_size=len(counts) - 1, unique=True
    )
    minority = data.draw(some)
    r_times = data.draw(st.integers(1, k))
    plan = Plan.for_minority(torch.tensor(counts), minority, k, r_times=r_times)
    r = max(1, round(r_times / paper.imbalance_ratio(counts, minority)))
    assert plan.k.tolist() == [k * (j in minority) for j in range(len(counts))]
    assert plan.r.tolist() == [r if j in minority else 1 for j in range(len(counts))]


def test_automatic_levels_a_long_tail() -> None:
    """Minority: below 2500. Mean majority count (5000 + 2997)/2 = 3998.5, over each count."""
    plan = Plan.automatic(torch.tensor(CIFAR10_LT))
    assert plan.k.tolist() == [0, 0, 5, 5, 5, 5, 5, 5, 5, 5]
    assert plan.r.tolist() == [1, 1, 2, 4, 6, 10, 17, 29, 48, 80]


def test_automatic_takes_k_and_r_times() -> None:
    plan = Plan.automatic(torch.tensor([100, 10]), k=3, r_times=2)
    assert vectors(plan) == ([0, 3], [1, 20])


def test_automatic_minority_has_strictly_less_than_half_of_the_largest() -> None:
    assert Plan.automatic(torch.tensor([100, 50, 49])).k.tolist() == [0, 0, 5]
    assert Plan.automatic(torch.tensor([101, 50])).k.tolist() == [0, 5]


def test_automatic_without_minority_is_uniform() -> None:
    assert vectors(Plan.automatic(torch.tensor([100, 50, 99]), k=4)) == ([4, 4, 4], [1, 1, 1])


@given(st.lists(st.integers(1, 10_000), min_size=2, max_size=12))
def test_automatic_presents_a_minority_about_as_often_as_a_majority(counts: list[int]) -> None:
    plan = Plan.automatic(torch.tensor(counts))
    majority = [m for m in counts if 2 * m >= max(counts)]
    level = sum(majority) / len(majority)
    for m, k, r in zip(counts, *vectors(plan), strict=True):
        if 2 * m < max(counts):
            assert k == 5
            assert abs(r * m - level) <= m / 2 + 1e-6
        else:
            assert r == 1


def test_without_neighbours_keeps_the_presentations() -> None:
    plan = Plan(k=[0, 5, 3], r=[1, 9, 2]).without_neighbours()
    assert vectors(plan) == ([0, 0, 0], [1, 9, 2])


@pytest.mark.parametrize(
    ("plan", "favoured"),
    [
        (Plan(k=[0, 5, 0], r=[1, 8, 1]), [False, True, False]),
        (Plan(k=[0, 0, 0], r=[1, 8, 2]), [False, True, True]),
        (Plan(k=[5, 5, 5], r=[1, 1, 1]), [False, False, False]),
    ],
    ids=repr,
)
def test_minority_are_the_favoured_classes(plan: Plan, favoured: list[bool]) -> None:
    assert plan.minority.tolist() == favoured


def test_k_is_clamped_and_the_class_is_named() -> None:
    plan = Plan(k=[0, 5], r=[1, 4])
    expected = r"class 'rare' has 3 sample\(s\), so k=2 in-class neighbours .* instead of 5"
    with pytest.warns(UserWarning, match=expected) as caught:
        fitted = plan.fitted_to(torch.tensor([9, 3]), ("usual", "rare"))  # R8
    assert len(caught) == 1
    assert vectors(fitted) == ([0, 2], [1, 4])
    assert vectors(plan) == ([0, 5], [1, 4])  # the plan that was given is left as it is


def test_class_with_a_single_sample_has_no_neighbours() -> None:
    with pytest.warns(UserWarning, match=r"class 1 has 1 sample\(s\), so k=0"):
        fitted = Plan(k=[0, 5], r=[1, 4]).fitted_to(torch.tensor([9, 1]))
    assert vectors(fitted) == ([0, 0], [1, 4])


def test_of_many_small_classes_some_are_named_and_the_others_counted() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fitted = Plan([5] * 9, [1] * 9).fitted_to(torch.tensor([3] * 8 + [100]))
    assert fitted.k.tolist() == [2] * 8 + [5]
    words = [str(one.message) for one in caught]
    assert [f"class {j} has 3" in text for j, text in enumerate(words[:5])] == [True] * 5
    assert words[5:] == [
        "3 more classes have fewer samples than neighbours were asked for, and the neighbours that "
        "they have are used"
    ]


def test_training_warns_once_and_uses_the_clamped_k() -> None:
    samples = blobs((20, 12, 1))
    plan = Plan.for_minority(samples.class_counts, [2])
    with pytest.warns(UserWarning, match=r"class '2' has 1 sample\(s\), so k=0") as caught:
        history = train(small(), samples, plan, rounds=3)
    assert len(caught) == 1
    assert history.rounds[-1].presented == 32 + 16


def test_enough_samples_are_no_reason_to_warn() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plan = Plan(k=[0, 5], r=[1, 4])
        assert vectors(plan.fitted_to(torch.tensor([9, 6]))) == vectors(plan)


def test_clamping_makes_no_class_a_favoured_one() -> None:
    """All classes are treated alike, so none is a minority; least of all the larger ones."""
    with pytest.warns(UserWarning, match="instead of 5"):
        fitted = Plan.uniform(3, k=5).fitted_to(torch.tensor([8, 7, 4]))
    assert fitted.minority.tolist() == [False, False, False]


def test_shorthand_becomes_dense_vectors() -> None:
    plan = Plan(k=[0, 5], r=torch.tensor([1, 2], dtype=torch.int32))
    assert plan.k.dtype == plan.r.dtype == torch.long
    assert repr(plan) == "Plan(k=[0, 5], r=[1, 2])"


@pytest.mark.parametrize(
    ("k", "r", "message"),
    [
        ([0, -1], [1, 1], r"k must hold one whole number ≥ 0 per class, found \[0, -1\]"),
        ([0, 1], [1, 0], r"r must hold one number ≥ 1 per class, found \[1, 0\]"),
        ([0.0, 1.5], [1, 1], r"k must hold one whole number"),
        ([0, 1], [1.0, 0.5], r"r must hold one number ≥ 1 per class, found \[1.0, 0.5\]"),
        ([0, 1], [1.0, float("nan")], r"r must hold one number"),
        ([0, 1], [1.0, float("inf")], r"r must hold one number"),
        ([[0, 1]], [1, 1], r"k must hold one whole number"),
        (5, [1, 1], r"k must hold one whole number ≥ 0 per class, found 5"),
        ([0, 1], [1, 1, 1], r"same classes, found 2 values of k and 3 of r"),
    ],
)
def test_invalid_vectors_are_refused(k, r, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Plan(k=k, r=r)


@pytest.mark.parametrize("minority", [[], [0, 1], [2], [-1]], ids=repr)
def test_minority_must_be_some_but_not_all_classes(minority: list[int]) -> None:
    with pytest.raises(InputError, match=r"some but not all of the classes 0 … 1, found") as caught:
        Plan.for_minority(torch.tensor([10, 5]), minority)
    assert str(minority) in str(caught.value)


@pytest.mark.parametrize("q", [0.0, 0.3, 0.5, 1.0])
def test_in_part_presents_a_class_by_its_share_to_the_power_of_q(q: float) -> None:
    counts = torch.tensor([10_000, 2_500, 400, 100])
    plan = Plan.in_part(counts, q=q)
    ratio = plan.rows(counts) / counts.double().pow(q)
    torch.testing.assert_close(ratio / ratio[0], torch.ones_like(ratio), rtol=0.01, atol=0)
    assert vectors(plan)[0] == [5] * 4
    assert plan.minority.tolist() == [False, True, True, True]


def test_in_part_has_no_minority_where_no_class_is_rare() -> None:
    plan = Plan.in_part(torch.tensor([100, 64]), k=3)
    assert vectors(plan) == ([3, 3], [1.0, 1.25])
    assert not plan.minority.any()
    assert vectors(Plan.in_part(torch.tensor([9, 9]), k=1)) == ([1, 1], [1, 1])


def test_in_part_has_the_minority_and_the_checks_of_automatic() -> None:
    counts = torch.tensor([100, 50, 49])
    assert Plan.in_part(counts).minority.tolist() == [False, False, True]
    with pytest.raises(InputError, match="k must be a whole number ≥ 0, found -3"):
        Plan.in_part(counts, k=-3)


def test_the_default_has_neighbours_where_nothing_is_augmented_or_pieces_are_of_them() -> None:
    counts = torch.tensor([100, 25])
    assert vectors(default_plan(counts, None, augmented=False, pieces=False)) == ([0, 5], [1, 4])
    assert vectors(default_plan(counts, None, augmented=True, pieces=False)) == ([0, 0], [1, 4])
    for augmented in (False, True):
        plan = default_plan(counts, None, augmented=augmented, pieces=True)
        assert vectors(plan) == ([5, 5], [1, 2])


@pytest.mark.parametrize("q", [-0.1, 1.1, float("nan"), "half"])
def test_in_part_says_what_q_must_be(q: float) -> None:
    with pytest.raises(InputError, match=r"q must be a number in \[0, 1\], found"):
        Plan.in_part(torch.tensor([10, 5]), q=q)


@pytest.mark.parametrize("minority", [[1], [True], [0, 1], torch.tensor([[True, False]]), ["b"]])
def test_minority_marks_every_class(minority: object) -> None:
    with pytest.raises(InputError, match="true or false of each of the 2 classes, found"):
        Plan([0, 5], [1, 2], minority)  # type: ignore[arg-type]
    assert Plan([0, 5], [1, 2], [True, False]).minority.tolist() == [True, False]


def test_fractions_are_kept_and_whole_numbers_are_whole() -> None:
    assert Plan([0, 1], [1.0, 3.0]).r.dtype == torch.long
    plan = Plan([0, 1], [1.0, 2.5])
    assert plan.r.tolist() == [1.0, 2.5]
    assert plan.rows(torch.tensor([7, 3])).tolist() == [7, 8]
    assert plan.minority.tolist() == [False, True]
    assert repr(plan) == "Plan(k=[0, 1], r=[1.0, 2.5])"


PLANS_BY_COUNTS = {
    "for_minority": lambda **o: Plan.for_minority(torch.tensor([100, 10]), [1], **o),
    "automatic": lambda **o: Plan.automatic(torch.tensor([100, 10]), **o),
}


@pytest.mark.parametrize(("k", "hint"), [(0, "; give a k of 1 or more as well"), (1, "")])
def test_where_k_is_0_perhaps_by_default_the_refusal_of_r_says_so(k: int, hint: str) -> None:
    with pytest.raises(InputError, match=rf"= \[1, 1\], found 2{hint}$"):
        Plan.automatic(torch.tensor([100, 10]), k, r_times=2)


@pytest.mark.parametrize("make", PLANS_BY_COUNTS)
@pytest.mark.parametrize("r_times", [0, 0.99, 5.01, -1, float("nan")])
def test_r_must_lie_within_the_papers_bounds(make: str, r_times: float) -> None:
    with pytest.raises(InputError, match=r"r_times must lie in \[1, k\] = \[1, 5\], found"):
        PLANS_BY_COUNTS[make](k=5, r_times=r_times)  # R13


@pytest.mark.parametrize("make", PLANS_BY_COUNTS)
@pytest.mark.parametrize(("r_times", "r"), [(1, 10), (5, 50)])
def test_the_papers_bounds_themselves_are_allowed(make: str, r_times: float, r: int) -> None:
    assert PLANS_BY_COUNTS[make](k=5, r_times=r_times).r.tolist() == [1, r]


@pytest.mark.parametrize("make", PLANS_BY_COUNTS)
def test_negative_k_is_refused(make: str) -> None:
    with pytest.raises(InputError, match="k must be a whole number ≥ 0, found -3"):
        PLANS_BY_COUNTS[make](k=-3)


def test_classes_without_samples_are_named() -> None:
    with pytest.raises(InputError, match=r"at least one sample, found none of 'b', 'd'; remove"):
        Plan.plain(4).fitted_to(torch.tensor([3, 0, 2, 0]), "abcd")
    with pytest.raises(InputError, match="found none of 1"):
        Plan.automatic(torch.tensor([3, 0]))
    with pytest.raises(InputError, match="found none of 1"):
        Plan.for_minority(torch.tensor([3, 0]), [1])


@pytest.mark.parametrize("counts", [[5], [[5, 5]]], ids=repr)
def test_one_class_is_no_classification(counts: list) -> None:
    with pytest.raises(InputError, match="two or more classes, found class counts"):
        Plan.automatic(torch.tensor(counts))


def test_plan_must_be_for_the_classes_of_the_data() -> None:
    with pytest.raises(InputError, match="a plan for 3 classes and data of 2"):
        Plan.uniform(3).fitted_to(torch.tensor([9, 9]))


@pytest.mark.parametrize(
    ("k", "r", "favoured"),
    [([0, 5], [1, 1], [0, 1]), ([3, 3], [2, 1], [1, 0]), ([0, 5, 0], [4, 1, 1], [1, 1, 0])],
)
def test_more_of_either_is_a_favour(k: list[int], r: list[int], favoured: list[int]) -> None:
    assert Plan(k, r).minority.tolist() == [bool(one) for one in favoured]


def test_five_neighbours_unless_told_otherwise() -> None:
    counts = torch.tensor([100, 5])
    plans = (Plan.for_minority(counts, [1]), Plan.automatic(counts), Plan.uniform(2))
    assert [int(plan.k.max()) for plan in plans] == [5, 5, 5]


@pytest.mark.parametrize("k", [-1, 2.5, "auto"])
def test_uniform_says_what_k_must_be(k: object) -> None:
    with pytest.raises(InputError, match=f"k must be a whole number ≥ 0, found {k!r}") as caught:
        Plan.uniform(3, k=k)
    assert ("DOSClassifier takes 'auto'" in str(caught.value)) == isinstance(k, str)


def test_a_rare_class_may_need_no_more_presentations() -> None:
    """Less than half of the largest, but near the mean of the others."""
    assert vectors(Plan.automatic(torch.tensor([100, 50, 50, 50, 49])))[1] == [1, 1, 1, 1, 1]


def test_text_is_no_plan() -> None:
    with pytest.raises(InputError, match="k must hold whole numbers: "):
        Plan(k="ab", r=[1, 1])


def test_one_sample_is_a_class() -> None:
    assert vectors(Plan.automatic(torch.tensor([10, 1]), k=3)) == ([0, 3], [1, 10])


@pytest.mark.parametrize(("k", "r_times"), [(1, 1.5), (0, 2.0), (3, 3.5), (3, 0.5)])
def test_r_is_between_one_and_k_times(k: int, r_times: float) -> None:
    with pytest.raises(InputError, match=r"r_times must lie in \[1, k\]"):
        Plan.automatic(torch.tensor([10, 1]), k, r_times=r_times)


def test_only_empty_classes_are_named() -> None:
    with pytest.raises(InputError, match="found none of 2, 4; remove"):
        Plan.automatic(torch.tensor([10, 1, 0, 2, 0]))
