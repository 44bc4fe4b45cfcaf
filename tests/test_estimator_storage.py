"""DOSClassifier takes samples as they are stored: arrays, tensors, files, and gives the same."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from sklearn.model_selection import cross_val_score

from deep_oversampling import InputError
from deep_oversampling.augmentation import CropAndFlip
from deep_oversampling.losses import Loss
from deep_oversampling.rivals import logit_adjusted
from deep_oversampling.views import View
from estimator_inputs import fast


@pytest.fixture
def stored(images: tuple[NDArray[np.uint8], Any], tmp_path: Path) -> dict[str, Any]:
    """The same images (m, 1, 8, 8) in every way."""
    x = images[0][:, np.newaxis]
    np.save(tmp_path / "x.npy", x)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert not mapped.flags.writeable
    return {
        "array": x,
        "tensor": torch.from_numpy(x),
        "file": mapped,
        "view": View.of(torch.from_numpy(x)),
    }


@pytest.mark.parametrize("kind", ["tensor", "file", "view"])
def test_every_storage_trains_and_predicts_alike(
    images: tuple[Any, Any], stored: dict[str, Any], kind: str
) -> None:
    expected = fast().fit(stored["array"], images[1])
    found = fast().fit(stored[kind], images[1])
    assert found.input_dtype_ == torch.uint8
    for other in stored.values():
        np.testing.assert_array_equal(found.predict_proba(other), expected.predict_proba(other))
    np.testing.assert_array_equal(
        found.transform(stored[kind]), expected.transform(stored["array"])
    )
    assert found.n_features_in_ == expected.n_features_in_


def test_a_file_is_not_copied(
    images: tuple[Any, Any], stored: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    import deep_oversampling.estimator as estimator

    original = estimator.fit_many
    monkeypatch.setattr(
        estimator,
        "fit_many",
        lambda net, samples, *a, **o: seen.append(samples) or original(net, samples, *a, **o),
    )
    fast().fit(stored["file"], images[1])
    assert np.shares_memory(seen[0].x.numpy(), stored["file"])


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.int64, torch.uint8])
@pytest.mark.parametrize("axes", [2, 3, 4])
def test_a_view_of_any_kind_is_what_its_array_is(
    images: tuple[Any, Any], dtype: torch.dtype, axes: int
) -> None:
    x = torch.from_numpy(images[0]).to(dtype)
    x = {2: x.flatten(1), 3: x, 4: x.unsqueeze(1)}[axes]
    view, array = View.of(x), x.numpy()
    of_view, of_array = (fast(rounds=1).fit(X, images[1]) for X in (view, array))
    np.testing.assert_array_equal(of_view.predict_proba(view), of_array.predict_proba(array))
    np.testing.assert_array_equal(of_view.predict_proba(array), of_array.predict_proba(view))


def test_views_are_cross_validated(images: tuple[Any, Any], stored: dict[str, Any]) -> None:
    scores = cross_val_score(fast(), stored["view"], images[1], cv=2)
    assert len(scores) == 2
    assert np.isfinite(scores).all()


def test_labels_must_match_a_view(stored: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        fast().fit(stored["view"], [0, 1])


def test_a_view_of_another_shape_is_refused(
    images: tuple[Any, Any], stored: dict[str, Any]
) -> None:
    classifier = fast().fit(stored["view"], images[1])
    with pytest.raises(
        InputError, match="every sample must have the shape and type of those in fit"
    ):
        classifier.predict(View.of(torch.zeros(2, 1, 9, 9, dtype=torch.uint8)))


def test_a_loss_of_the_class_counts_is_passed_on(images: tuple[Any, Any]) -> None:
    x, y = images[0][:45], images[1][:45]
    seen = []

    def watched(counts: torch.Tensor) -> Loss:
        seen.append(counts.tolist())
        return logit_adjusted(counts, tau=3.0)

    plain, adjusted = fast().fit(x, y), fast(loss=watched).fit(x, y)
    assert seen == [np.bincount(y).tolist()]
    assert not np.array_equal(plain.predict_proba(x), adjusted.predict_proba(x))


def test_augmentation_is_passed_on(images: tuple[Any, Any], stored: dict[str, Any]) -> None:
    plain = fast().fit(stored["array"], images[1]).predict_proba(stored["array"])
    changed = fast(augment=CropAndFlip(1)).fit(stored["array"], images[1])
    assert not np.array_equal(plain, changed.predict_proba(stored["array"]))
