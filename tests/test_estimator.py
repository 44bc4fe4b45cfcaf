"""DOSClassifier keeps scikit-learn's contract, and passes on to DOS what it was given."""

from __future__ import annotations

import pickle
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from torch import Tensor, nn

from deep_oversampling import InputError, Network, embed, lenet, mlp
from deep_oversampling.augmentation import CropAndFlip
from deep_oversampling.estimator import DOSClassifier
from estimator_inputs import fast


@pytest.mark.filterwarnings(  # the checks have classes of a few samples, and k is clamped (R8)
    "ignore:class '.*' has . sample:UserWarning"
)
@parametrize_with_checks(  # none is expected to fail
    [DOSClassifier(rounds=3, learning_rate=0.05, device="cpu")],
    expected_failed_checks=lambda estimator: {},
)
def test_scikit_learns_checks(estimator: DOSClassifier, check: Any) -> None:
    check(estimator)


def test_it_is_a_classifier() -> None:
    assert is_classifier(DOSClassifier())


# Labels and outputs


def test_labels_may_be_strings(vectors) -> None:
    X, y = vectors
    classifier = fast(rounds=10).fit(X, y)
    assert classifier.classes_.tolist() == ["cat", "dog", "eel"]
    assert set(classifier.predict(X)) <= set(y)
    assert classifier.score(X, y) > 0.9


def test_probabilities_sum_to_one_and_agree_with_predict(vectors) -> None:
    X, y = vectors
    classifier = fast().fit(X, y)
    probabilities = classifier.predict_proba(X)
    assert probabilities.shape == (70, 3)
    np.testing.assert_allclose(probabilities.sum(1), 1, rtol=1e-5)
    assert (classifier.classes_[probabilities.argmax(1)] == classifier.predict(X)).all()


def test_transform_gives_the_embeddings(vectors) -> None:
    X, y = vectors
    classifier = fast().fit(X, y)
    v = embed(classifier.network_, torch.from_numpy(X).float())
    assert v.shape == (70, 64)
    np.testing.assert_array_equal(classifier.transform(X), v.numpy())
    assert len(classifier.get_feature_names_out()) == 64


def test_set_output_names_the_embeddings(vectors) -> None:
    pytest.importorskip("pandas")
    frame = fast().set_output(transform="pandas").fit_transform(*vectors)
    assert frame.columns[:2].tolist() == ["dosclassifier0", "dosclassifier1"]


def test_history_holds_every_round(vectors) -> None:
    history = fast(rounds=3, initial_rounds=1).fit(*vectors).history_
    assert [r.task for r in history.rounds] == ["single", "multi", "multi", "multi"]


# Images


def test_images_may_leave_out_a_single_channel(images) -> None:
    X, y = images
    without, with_channel = fast().fit(X, y), fast().fit(X[:, np.newaxis], y)
    assert without.input_shape_ == with_channel.input_shape_ == (1, 8, 8)
    expected = without.predict_proba(X)
    np.testing.assert_array_equal(expected, without.predict_proba(X[:, np.newaxis]))
    np.testing.assert_array_equal(expected, with_channel.predict_proba(X))


def test_images_of_three_channels_are_learned(images) -> None:
    X, y = images
    X = np.stack([X, X // 2, 255 - X], axis=1)  # (m, 3, h, w)
    classifier = fast(rounds=30).fit(X, y)
    assert isinstance(classifier.network_.embedder[0], nn.Conv2d)
    assert classifier.score(X, y) > 0.9


class Recorder(nn.Module):
    """A normalisation that remembers the types it was given."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[torch.dtype] = set()

    def forward(self, x: Tensor) -> Tensor:
        self.seen.add(x.dtype)
        return x.float() / 255


@pytest.mark.parametrize(
    ("given", "seen"),
    [("uint8", torch.uint8), ("int64", torch.float32), ("float64", torch.float32)],
)
def test_only_uint8_images_keep_their_type(images, given: str, seen: torch.dtype) -> None:
    X, y = images
    X = X.astype(given)
    classifier = fast(lenet((1, 8, 8), 3, normalize=Recorder())).fit(X, y)
    classifier.predict(X)
    assert classifier.network_.normalize.seen == {seen}


def test_uint8_vectors_are_numbers_like_any_other(images) -> None:
    X, y = images
    X = X.reshape(60, 64)
    classifier = fast().fit(X, y)
    expected = classifier.predict_proba(X.astype(float))
    np.testing.assert_array_equal(classifier.predict_proba(X), expected)


def test_images_too_small_to_pool_get_an_mlp(images) -> None:
    X, y = images
    assert fast().fit(X[:, 3:6, 2:7], y).transform(X[:, 3:6, 2:7]).shape == (60, 64)


# Copies


@pytest.mark.parametrize("kind", ["vectors", "images"])
def test_a_pickled_copy_predicts_the_same(kind: str, request: pytest.FixtureRequest) -> None:
    X, y = request.getfixturevalue(kind)
    classifier = fast().fit(X, y)
    loaded = pickle.loads(pickle.dumps(classifier))
    np.testing.assert_array_equal(loaded.predict_proba(X), classifier.predict_proba(X))
    assert repr(loaded.plan_) == repr(classifier.plan_)
    assert loaded.history_ == classifier.history_


class CountsMoves(Network):
    moves = 0

    def cpu(self) -> CountsMoves:
        self.moves += 1
        return super().cpu()


def test_networks_are_pickled_on_the_cpu_and_left_where_they_are(vectors) -> None:
    parts = mlp(4, 3)
    network = CountsMoves(parts.embedder, parts.classifier)
    classifier = fast(network).fit(*vectors)
    loaded = pickle.loads(pickle.dumps(classifier))
    assert (loaded.network.moves, loaded.network_.moves) == (1, 1)
    assert (classifier.network.moves, classifier.network_.moves) == (0, 0)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU to pickle from")
def test_a_classifier_trained_on_a_gpu_is_pickled_without_it(vectors) -> None:
    X, y = vectors
    classifier = fast(device="cuda").fit(X, y)
    loaded = pickle.loads(pickle.dumps(classifier))
    assert (loaded.network_.device.type, classifier.network_.device.type) == ("cpu", "cuda")
    np.testing.assert_allclose(loaded.predict_proba(X), classifier.predict_proba(X), atol=1e-4)


def test_a_clone_has_the_parameters_and_is_not_fitted(vectors) -> None:
    X, y = vectors
    copy = clone(fast(k=3, minority=["eel"]).fit(X, y))
    assert (copy.k, copy.minority, copy.rounds) == (3, ["eel"], 2)
    with pytest.raises(NotFittedError):
        copy.predict(X)


# Company


def test_a_pipeline_scales_first(vectors) -> None:
    X, y = vectors
    pipeline = make_pipeline(StandardScaler(), fast(rounds=10)).fit(1000 * X, y)
    assert pipeline.score(1000 * X, y) > 0.9


def test_a_grid_search_chooses_k(vectors) -> None:
    search = GridSearchCV(fast(), {"k": np.array([0, 2])}, cv=2).fit(*vectors)
    assert search.best_params_["k"] in (0, 2)
    assert search.best_estimator_.plan_.k.max() == search.best_params_["k"]


# Randomness


def probabilities_of(classifier: DOSClassifier, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    return classifier.fit(X, y).predict_proba(X)


def made_without_a_seed(shape: tuple[int, ...], n: int) -> Network:
    f = nn.Sequential(nn.Linear(*shape, 16), nn.ReLU(), nn.Dropout(0.2))
    return Network(f, nn.Linear(16, n))


@pytest.mark.parametrize("network", [None, made_without_a_seed])
def test_random_state_alone_decides_the_result(vectors, network: Any) -> None:
    first = probabilities_of(fast(network), *vectors)
    torch.rand(7), np.random.rand(7)  # noqa: NPY002  other states of the global generators
    np.testing.assert_array_equal(first, probabilities_of(fast(network), *vectors))
    assert not np.allclose(first, probabilities_of(fast(network, random_state=1), *vectors))


def test_training_leaves_the_global_generators_alone(vectors) -> None:
    ours, numpys = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    fast().fit(*vectors)
    assert torch.equal(torch.get_rng_state(), ours)
    assert (np.random.get_state()[1] == numpys).all()  # noqa: NPY002


def test_a_random_state_object_goes_on_from_fit_to_fit(vectors) -> None:
    classifier = fast(random_state=np.random.RandomState(0))
    first = probabilities_of(classifier, *vectors)
    assert not np.allclose(first, probabilities_of(classifier, *vectors))


# The plan


@pytest.mark.parametrize(
    ("minority", "k", "r"),
    [
        ("auto", [0, 0, 5], [1, 1, 3]),  # 30, 30, 10
        (["eel"], [0, 0, 5], [1, 1, 3]),
        (np.array(["cat", "eel"]), [5, 0, 5], [2, 1, 2]),  # R = 20 / 30
        (None, [5, 5, 5], [1, 1, 1]),
    ],
)
def test_minority_decides_the_plan(vectors, minority: Any, k: list[int], r: list[int]) -> None:
    plan = fast(minority=minority).fit(*vectors).plan_
    assert (plan.k.tolist(), plan.r.tolist()) == (k, r)


@pytest.mark.parametrize(("k", "found"), [(None, [0, 0]), (5, [0, 5])])
def test_augmented_images_have_neighbours_where_they_are_asked_for(k: int, found: list) -> None:
    X = np.random.default_rng(0).integers(0, 256, (26, 8, 8), np.uint8)
    plan = fast(k=k, augment=CropAndFlip(1)).fit(X, [0] * 20 + [1] * 6).plan_
    assert (plan.k.tolist(), plan.r.tolist()) == (found, [1, 3])


def test_the_plan_is_the_one_that_small_classes_allow(vectors) -> None:
    X, y = vectors
    few = np.r_[np.flatnonzero(y != "eel"), np.flatnonzero(y == "eel")[:3]]
    with pytest.warns(UserWarning, match="class 'eel' has 3 sample") as caught:
        classifier = fast().fit(X[few], y[few])
    assert classifier.plan_.k.tolist() == [0, 0, 2]
    assert len(caught) == 1
    assert caught[0].filename == __file__


def test_two_samples_are_enough() -> None:
    X, y = [[0.0, 1.0], [1.0, 0.0]], ["a", "b"]
    assert fast(k=0, rounds=20).fit(X, y).predict(X).tolist() == y


# Every parameter does something


@pytest.mark.parametrize(
    "other",
    [
        {"minority": None},
        {"k": 2},
        {"r_times": 3.0},
        {"rounds": 1},
        {"initial_rounds": 1},
        {"batch_size": 10},
        {"learning_rate": 0.02},
        {"pull": 0.01},
        {"pull_limit": 0.1},
        {"weighted": False},
        {"optimizer": torch.optim.Adam},
        {"schedule": "cosine"},
        {"network": mlp(4, 3, (8,))},
    ],
    ids=lambda other: next(iter(other)),
)
def test_every_parameter_changes_the_result(vectors, other: dict[str, Any]) -> None:
    usual = probabilities_of(fast(), *vectors)
    assert not np.allclose(usual, probabilities_of(fast(**other), *vectors))


def test_the_network_is_trained_on_the_device_asked_for(vectors) -> None:
    with pytest.raises(InputError, match=r"this machine has \(cpu.*\), found 'no_such_device'"):
        fast(device="no_such_device").fit(*vectors)
    with pytest.raises(InputError, match=r"this machine has \(cpu.*\), found 'cuda:99'"):
        fast(device="cuda:99").fit(*vectors)


def test_an_optimizer_takes_the_place_of_the_learning_rate(vectors) -> None:
    sgd = partial(torch.optim.SGD, lr=0.05, momentum=0.9)
    ours = probabilities_of(fast(learning_rate=1e9, optimizer=sgd), *vectors)
    np.testing.assert_array_equal(ours, probabilities_of(fast(learning_rate=0.05), *vectors))


# Networks


def test_a_network_is_copied(vectors) -> None:
    network = mlp(4, 3)
    before = {name: value.clone() for name, value in network.state_dict().items()}
    classifier = fast(network).fit(*vectors)
    for name, value in network.state_dict().items():
        assert torch.equal(value, before[name])
    assert not torch.equal(network.classifier.weight, classifier.network_.classifier.weight)


def test_a_function_makes_the_network(images) -> None:
    asked = []

    def make(input_shape: tuple[int, ...], n_classes: int) -> Network:
        asked.append((input_shape, n_classes))
        return lenet(input_shape, n_classes, "C4-F20")

    X, y = images
    assert fast(make).fit(X, y).transform(X).shape == (60, 20)
    assert asked == [((1, 8, 8), 3)]


@pytest.mark.parametrize("network", ["lenet", nn.Linear(4, 3), lambda shape, n: nn.Linear(4, n)])
def test_what_is_no_network_is_refused(vectors, network: Any) -> None:
    with pytest.raises(InputError, match=r"network must be a Network.*found (str|Linear)"):
        fast(network).fit(*vectors)


@pytest.mark.parametrize("outputs", [2, 10])
def test_a_network_must_have_an_output_per_class(vectors, outputs: int) -> None:
    with pytest.raises(InputError, match=f"one output for each of the 3 classes, found {outputs}"):
        fast(mlp(4, outputs)).fit(*vectors)
