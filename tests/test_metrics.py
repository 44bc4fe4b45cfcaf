"""Class-wise measures and probes: scikit-learn's values, and values worked out by hand."""

import math

import numpy as np
import pytest
import torch
from sklearn import metrics as sk
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from deep_oversampling import Network, Samples, embed, measure
from deep_oversampling.metrics import MEASURES, Report
from deep_oversampling.probes import knn_probe, logistic_probe
from toy import blobs, generator, small, train

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


@pytest.fixture(scope="module")
def trained() -> tuple[Network, Samples, Samples]:
    network, samples = small(), blobs()
    train(network, samples)
    return network, samples, blobs(seed=1)


def arrays(network: Network, *sets: Samples) -> list[np.ndarray]:
    return [embed(network, samples.x).numpy() for samples in sets]


@pytest.mark.parametrize("k", [1, 5])
def test_knn_probe_is_scikit_learns_on_the_embeddings(trained, k: int) -> None:
    network, samples, test = trained
    v, v_test = arrays(network, samples, test)
    direct = KNeighborsClassifier(n_neighbors=k).fit(v, samples.y.numpy()).predict_proba(v_test)
    np.testing.assert_allclose(knn_probe(network, samples, test, k=k), direct)


def test_knn_probe_takes_the_samples_there_are(trained) -> None:
    network, samples, test = trained
    few = samples[torch.arange(3)]
    found = knn_probe(network, few, test, k=5)
    shares = few.class_counts.double() / 3  # all three vote, wherever the test sample lies
    np.testing.assert_allclose(found, shares.expand(len(test), 3))


def test_logistic_probe_is_scikit_learns_on_the_embeddings(trained) -> None:
    network, samples, test = trained
    v, v_test = arrays(network, samples, test)
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    direct = model.fit(v, samples.y.numpy()).predict_proba(v_test)
    np.testing.assert_allclose(logistic_probe(network, samples, test), direct)


@pytest.mark.parametrize("probe", [knn_probe, logistic_probe])
def test_class_without_training_samples_has_probability_zero(trained, probe) -> None:
    network, samples, test = trained
    found = probe(network, samples[samples.y != 1], test)
    assert found.shape == (len(test), 3)
    assert (found[:, 1] == 0).all()
    np.testing.assert_allclose(found.sum(1), 1)
