"""DOSClassifier refuses what it cannot use, in words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from sklearn.exceptions import NotFittedError

from deep_oversampling import InputError, estimator, rivals
from estimator_inputs import fast


@pytest.mark.parametrize("minority", [["fox"], ["eel", "fox"], "eels", [], ["cat", "dog", "eel"]])
def test_minority_must_name_some_of_the_labels(vectors, minority: Any) -> None:
    expected = r"some but not all of the labels \['cat', 'dog', 'eel'\], found \["
    with pytest.raises(InputError, match=expected):
        fast(minority=minority).fit(*vectors)


def test_minority_may_be_one_label_of_any_type(vectors) -> None:
    X, y = vectors
    numbered = np.unique(y, return_inverse=True)[1]
    one, several = (fast(minority=minority).fit(X, numbered) for minority in (2, [2]))
    assert one.plan_.minority.tolist() == several.plan_.minority.tolist() == [False, False, True]


def test_early_stopping_is_checked_before_candidates_are_trained(
    vectors, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(estimator, "select", lambda *_, **__: pytest.fail("candidates"))
    options = {"k": "auto", "early_stopping": True}
    with pytest.raises(InputError, match="patience must be a whole number ≥ 1, found 0"):
        fast(n_iter_no_change=0, **options).fit(*vectors)
    with pytest.raises(InputError, match="share must lie between 0 and 1"):
        fast(validation_fraction=1.0, **options).fit(*vectors)


def test_one_class_is_not_enough(vectors) -> None:
    X, _ = vectors
    with pytest.raises(InputError, match=r"two or more classes, found 1 class, \['cat'\], in 70"):
        fast().fit(X, ["cat"] * 70)


@pytest.mark.parametrize("loss", [rivals.focal(), torch.nn.CrossEntropyLoss(), "focal"], ids=str)
def test_loss_must_make_one_from_the_class_counts(vectors, loss: Any) -> None:
    expected = r"as rivals.ldam does, found that .* does not: .* lambda counts: rivals.focal\(\)"
    with pytest.raises(InputError, match=expected):
        fast(loss=loss).fit(*vectors)
    with pytest.raises(InputError, match=r"a loss must take logits .* when they are made"):
        fast(loss=rivals.focal).fit(*vectors)
    assert fast(loss=lambda counts: rivals.focal()).fit(*vectors).history_.rounds


def test_other_features_than_in_fit_are_refused(vectors) -> None:
    X, y = vectors
    classifier = fast().fit(X, y)
    with pytest.raises(ValueError, match="X has 3 features, but DOSClassifier is expecting 4"):
        classifier.predict(X[:, :3])
    with pytest.raises(ValueError, match=r"type of those in fit, \(4,\) .* found \(1, 4, 4\)"):
        classifier.predict(np.zeros((2, 4, 4)))


@pytest.mark.parametrize("shape", [(2, 8, 9), (2, 3, 8, 8), (2, 64), (64,)])
def test_other_images_than_in_fit_are_refused(images, shape: tuple[int, ...]) -> None:
    classifier = fast().fit(*images)
    for method in (classifier.predict, classifier.predict_proba, classifier.transform):
        with pytest.raises(InputError, match=r"those in fit, \(1, 8, 8\) of torch.uint8, found"):
            method(np.zeros(shape, np.uint8))


def test_floats_are_refused_after_uint8_images_but_not_the_other_way(images) -> None:
    X, y = images
    with pytest.raises(InputError, match=r"of torch.uint8, found .* of torch.float32; resize or"):
        fast().fit(X, y).predict(X / 255)
    classifier = fast().fit(X.astype(float), y)
    expected = classifier.predict_proba(X.astype(float))
    np.testing.assert_array_equal(classifier.predict_proba(X), expected)


@pytest.mark.parametrize("method", ["predict", "predict_proba", "transform"])
def test_a_classifier_must_be_fitted_first(vectors, method: str) -> None:
    with pytest.raises(NotFittedError):
        getattr(fast(), method)(vectors[0])
