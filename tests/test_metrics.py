"""Class-wise measures: scikit-learn's values, and values worked out by hand."""

import math

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn import metrics as sk

from deep_oversampling import InputError, measure
from deep_oversampling.metrics import MEASURES, Report, measure_all
from toy import generator

TRUTH = np.array([0, 0, 1, 1, 2])
P = np.array(
    [[0.6, 0.3, 0.1], [0.3, 0.6, 0.1], [0.2, 0.7, 0.1], [0.1, 0.8, 0.1], [0.5, 0.2, 0.3]]
)  # predicted: 0, 1, 1, 1, 0


def random_case(m: int = 80, n: int = 4) -> tuple[np.ndarray, np.ndarray]:
    logits = torch.randn(m, n, generator=generator())
    return logits.softmax(1).numpy(), torch.randint(n, (m,), generator=generator(1)).numpy()


def test_measures_are_those_of_scikit_learn() -> None:
    p, y = random_case()
    report, predicted = measure(p, y), p.argmax(1)
    np.testing.assert_allclose(report.precision, sk.precision_score(y, predicted, average=None))
    np.testing.assert_allclose(report.recall, sk.recall_score(y, predicted, average=None))
    np.testing.assert_allclose(report.f1, sk.f1_score(y, predicted, average=None))
    each = sk.average_precision_score(np.eye(4)[y], p, average=None)
    np.testing.assert_allclose(report.auprc, each)


def test_measures_by_hand() -> None:
    report = measure(P, TRUTH)
    np.testing.assert_allclose(report.precision, [1 / 2, 2 / 3, 0])
    np.testing.assert_allclose(report.recall, [1 / 2, 1, 0])
    np.testing.assert_allclose(report.f1, [1 / 2, 4 / 5, 0])
    # scores of class 0 fall as 0.6 (yes), 0.5 (no), 0.3 (yes): ½·1 + ½·⅔; the others in turn
    np.testing.assert_allclose(report.auprc, [5 / 6, 1, 1])


def test_f1_as_trained_is_that_of_samples_weighted_by_their_class() -> None:
    p, y = random_case()
    trained = torch.tensor([500, 300, 20, 5])
    found = measure(p, y, trained=trained).f1_as_trained
    weight = (trained.numpy() / np.bincount(y))[y]
    wanted = sk.f1_score(y, p.argmax(1), average=None, sample_weight=weight)
    np.testing.assert_allclose(found, wanted)
    assert measure(p, y).f1_as_trained is None


def test_f1_as_trained_by_hand() -> None:
    # a half of class 0 is taken for 1, and class 2 for 0: 45 hits among 45 + 1 taken, of 90; …
    found = measure(P, TRUTH, trained=torch.tensor([90, 9, 1])).f1_as_trained
    np.testing.assert_allclose(found, [2 * 45 / (90 + 46), 2 * 9 / (9 + 54), 0])
    strange = np.array([0, 0, 1, 1, 7])  # a label that no class has counts for nobody
    found = measure(P, strange, trained=torch.tensor([90, 9, 1])).f1_as_trained
    np.testing.assert_allclose(found, [2 * 45 / (90 + 45), 2 * 9 / (9 + 54), np.nan])


def test_tensors_and_arrays_are_measured_alike() -> None:
    p, y = random_case()
    from_tensors, from_arrays = measure(torch.from_numpy(p), torch.from_numpy(y)), measure(p, y)
    for name in MEASURES:
        assert np.array_equal(getattr(from_tensors, name), getattr(from_arrays, name))


def test_perfect_predictions_score_one() -> None:
    assert measure(np.eye(3)[TRUTH], TRUTH).mean() == dict.fromkeys(MEASURES, 1.0)


def test_class_without_samples_is_no_number_and_skipped() -> None:
    present = measure(P[:4, :2], TRUTH[:4])
    absent = measure(P[:4], TRUTH[:4])  # nothing of class 2, and nobody is taken for it
    assert all(math.isnan(getattr(absent, name)[2]) for name in MEASURES)
    assert absent.mean() == pytest.approx(present.mean())


def test_class_without_samples_that_is_predicted_is_skipped_too() -> None:
    p = P[:4].copy()
    p[0] = [0.1, 0.2, 0.7]
    report = measure(p, TRUTH[:4])
    assert math.isnan(report.precision[2])
    assert report.recall[0] == 0


def test_groups_are_masks_or_indices() -> None:
    report = measure(P, TRUTH)
    by_mask = report.mean([True, False, True])
    assert by_mask == report.mean([0, 2])
    assert by_mask["f1"] == pytest.approx((1 / 2 + 0) / 2)
    assert report.mean()["recall"] == pytest.approx((1 / 2 + 1 + 0) / 3)


def test_group_of_absent_classes_has_no_mean() -> None:
    report = Report(*(np.array([1.0, math.nan]) for _ in MEASURES))
    assert all(math.isnan(value) for value in report.mean([1]).values())
    assert report.mean() == dict.fromkeys(MEASURES, 1.0)


def by_scikit_learn(p: np.ndarray, y: np.ndarray) -> Report:
    labels = np.arange(p.shape[1])
    *columns, support = sk.precision_recall_fscore_support(
        y, p.argmax(1), labels=labels, zero_division=0.0
    )
    auprc = [sk.average_precision_score(y == j, p[:, j]) if support[j] else 0.0 for j in labels]
    return Report(*(np.where(support, column, math.nan) for column in (*columns, auprc)))


def assert_alike(ours: Report, theirs: Report, tolerance: float = 1e-12) -> None:
    for name in MEASURES:
        found, expected = getattr(ours, name), getattr(theirs, name)
        assert found.dtype == np.float64
        np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)


# few values, so that there are ties; any value, so that there are numbers that nearly tie
COARSE = st.sampled_from([0.0, -0.0, 0.25, 0.5, 1.0])
FINE = st.floats(0, 1)
SHAPES = st.tuples(st.integers(1, 3), st.integers(1, 12), st.integers(1, 4))  # E, m, n


@st.composite
def members(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    e, m, n = draw(SHAPES)
    p = draw(arrays(np.float64, (e, m, n), elements=draw(st.sampled_from([COARSE, FINE]))))
    return p, draw(arrays(np.int64, (e, m), elements=st.integers(0, n - 1)))


@given(members())
@example((np.full((2, 7, 3), 0.25), np.arange(14).reshape(2, 7) % 3))
def test_every_member_has_the_measures_of_scikit_learn(case: tuple[np.ndarray, np.ndarray]) -> None:
    p, y = case
    for memory in (1, 2**20):
        reports = measure_all(p, y, memory=memory)
        assert len(reports) == len(p)
        for report, scores, truth in zip(reports, p, y, strict=True):
            assert_alike(report, by_scikit_learn(scores, truth))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_many_samples_with_ties_in_the_precision_they_come_in(dtype: torch.dtype) -> None:
    p = torch.randn(2, 5_000, 6, generator=generator()).to(dtype).softmax(2)
    p[1] = (100 * p[1]).round() / 100
    y = torch.randint(6, (5_000,), generator=generator(1))
    for report, scores in zip(measure_all(p, y), p, strict=True):
        assert_alike(report, by_scikit_learn(scores.numpy(), y.numpy()))
        assert_alike(report, measure(scores, y), 0)


def test_label_of_no_column_is_of_none_of_the_classes() -> None:
    p, y = random_case()
    y[::7], y[1] = 4, -1
    assert_alike(measure(p, y), by_scikit_learn(p, y))


def test_gradients_and_the_order_of_memory_do_not_matter() -> None:
    p, y = random_case()
    assert_alike(measure(torch.from_numpy(p).requires_grad_(), y), measure(p, y), 0)
    assert_alike(measure(torch.from_numpy(p.T.copy()).T, y[::-1][::-1]), measure(p, y), 0)


@pytest.mark.parametrize(
    ("p", "y", "message"),
    [
        (
            np.array([[0.5, 0.5], [math.nan, 0.1]]),
            [0, 1],
            r"finite, found NaN .* sample 1 .* lower",
        ),
        (np.array([[math.inf, 0.5], [0.2, 0.1]]), [0, 1], "finite, found NaN or infinity .* 0 of"),
        (P, TRUTH[:-1], r"found shape \(5, 3\) and \(4,\)"),
        (P[:, 0], TRUTH, r"found shape \(5,\)"),
        (P[:0], TRUTH[:0], r"one or more samples, .* found shape \(0, 3\)"),
        (P, TRUTH.astype(float), r"integer class indices .* found torch.float64; convert"),
    ],
    ids=["nan", "inf", "labels missing", "one axis", "no samples", "float labels"],
)
def test_what_cannot_be_measured_is_refused(p: np.ndarray, y: np.ndarray, message: str) -> None:
    with pytest.raises(InputError, match=message):
        measure(p, np.asarray(y))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_measured_on_the_gpu_as_on_the_cpu() -> None:
    p, y = random_case(5_000)
    p = p.round(2)
    both = torch.from_numpy(np.stack([p, p[::-1]]))
    for ours, theirs in zip(measure_all(both.to("cuda"), y), measure_all(both, y), strict=True):
        assert_alike(ours, theirs)
