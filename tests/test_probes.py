"""Classifiers on embeddings: those of scikit-learn, the same whichever way they are found."""

import warnings

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import Tensor

from deep_oversampling import InputError, Network, Samples, embed, logistic, probes
from deep_oversampling.logistic import Logistic, logistic_regression, logistic_regressions
from deep_oversampling.probes import (
    knn_probe,
    logistic_probe,
    logistic_probe_all,
    neighbour_votes,
)
from deep_oversampling.rivals import METHODS, method
from deep_oversampling.rivals.method import Trained
from strategies import Problem, problems
from toy import blobs, generator, small, train

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


@pytest.fixture(scope="module")
def trained() -> tuple[Network, Samples, Samples]:
    network, samples = small(), blobs()
    train(network, samples)
    return network, samples, blobs(seed=1)


def arrays(network: Network, *sets: Samples) -> list[np.ndarray]:
    return [embed(network, samples.x).numpy() for samples in sets]


# neighbours


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


@given(problems(), st.integers(1, 6), st.sampled_from([1, 1000, 2**20]))
def test_nearer_embeddings_vote_and_only_equally_far_ones_may_be_chosen_from(
    problem: Problem, k: int, memory: int
) -> None:
    v, y, n, k = problem.v.double(), problem.y, len(problem.k), min(k, len(problem.y))
    queries = v + torch.tensor(0.5)  # on a grid of halves distances are exact
    distances = (queries.unsqueeze(1) - v).square().sum(2)
    last = distances.kthvalue(k).values.unsqueeze(1)
    of_class = torch.eye(n, dtype=torch.float64)[y]
    for_sure, at_most = (
        (chosen).double() @ of_class for chosen in (distances < last, distances <= last)
    )
    by_blocks = probes._votes_by_blocks(v, y, queries, n, k, memory)
    for votes in (by_blocks, neighbour_votes(v, y, queries, n, k=k)):
        torch.testing.assert_close(votes.sum(1), torch.ones(len(v)).double())
        assert (votes * k >= for_sure - 1e-9).all()
        assert (votes * k <= at_most + 1e-9).all()


def test_both_ways_find_the_same_neighbours_far_from_the_origin() -> None:
    v = 1000 + torch.randn(400, 20, generator=generator())  # where the formula needs the centring
    y, queries = torch.arange(400) % 7, 1000 + torch.randn(50, 20, generator=generator(1))
    by_blocks = probes._votes_by_blocks(v.double(), y, queries.double(), 8, 5)
    torch.testing.assert_close(by_blocks, neighbour_votes(v, y, queries, 8))


def test_no_neighbours_are_refused() -> None:
    with pytest.raises(InputError, match="k must be 1 or more, found 0"):
        neighbour_votes(torch.eye(3), torch.arange(3), torch.eye(3), 3, k=0)


# logistic regression


def to_the_end(v: Tensor, y: Tensor, queries: Tensor, n: int) -> np.ndarray:
    """P(C|x) by scikit-learn, as far as it goes."""
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=100_000, tol=1e-10))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # rounding ends it before tol does
        model.fit(v.double().numpy(), y.numpy())
    found = np.zeros((len(queries), n))
    found[:, model.classes_] = model.predict_proba(queries.double().numpy())
    return found


def test_logistic_probe_is_scikit_learns_on_the_embeddings(trained) -> None:
    network, samples, test = trained
    v, v_test = map(torch.from_numpy, arrays(network, samples, test))
    expected = to_the_end(v, samples.y, v_test, 3)
    np.testing.assert_allclose(logistic_probe(network, samples, test), expected, rtol=0, atol=2e-5)


def draw(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=generator(seed))


def labels(m: int, n: int = 3) -> Tensor:
    return torch.randint(n, (m,), generator=generator(9))


Y = labels(300)
NEAR = draw(300, 4) + torch.eye(3, 4)[Y]
CASES = {
    "overlapping": (NEAR, Y),
    "well separated": (0.01 * draw(300, 5) + 100 * torch.eye(3, 5)[Y], Y),
    "collinear": (torch.cat([NEAR, NEAR, NEAR @ draw(4, 6)], 1), Y),
    "nearly of rank one": (draw(300, 1) @ draw(1, 30) + 1e-4 * draw(300, 30), Y),
    "constant features": (torch.cat([NEAR, torch.full((300, 2), 7.3)], 1), Y),
    "constant but for rounding": (torch.cat([NEAR.double(), 1e9 + 1e-8 * draw(300, 1)], 1), Y),
    "more dimensions than samples": (draw(20, 100), labels(20)),
    "two classes": (NEAR, Y.clamp(max=1)),
    "class missing": (NEAR, torch.where(Y == 1, 3, Y)),
    "all but two missing": (NEAR, 3 * Y.clamp(max=1)),
    "one of a class": (draw(500, 8), (torch.arange(500) < 1) + 2 * (torch.arange(500) > 498)),
    "outliers": (torch.exp(3 * draw(300, 8)) + 100 * torch.eye(3, 8)[Y], Y),
    "noise in labels far apart": (1e3 * torch.eye(3, 4)[Y] + draw(300, 4), labels(301)[1:]),
    "tiny and huge": (NEAR * torch.tensor([1e-12, 1e30, 1, 1]), Y),
    "two samples": (NEAR[:2], torch.arange(2)),
}


@pytest.mark.parametrize("name", CASES)
def test_the_optimum_is_scikit_learns(name: str) -> None:
    v, y = CASES[name]
    queries = torch.cat([v, v[:50].flip(0) * 1.2])
    found = logistic_regression(v, y, 4).probabilities(queries)
    np.testing.assert_allclose(found, to_the_end(v, y, queries, 4), rtol=0, atol=2e-5)


def objective(theta: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """Σ ℋ + ½ ‖weights‖², the penalty doubled for two classes."""
    logits = x @ theta[:, :-1].T + theta[:, -1]
    factor = 2 if theta.shape[0] == 2 else 1
    return (
        torch.nn.functional.cross_entropy(logits, y, reduction="sum")
        + factor / 2 * theta[:, :-1].square().sum()
    )


@given(problems())
def test_the_gradient_is_zero_there(problem: Problem) -> None:
    model = logistic_regression(problem.v, problem.y, len(problem.k))
    x = (problem.v.double() - model.mean) / model.std
    theta = torch.cat([model.weights, model.bias.unsqueeze(1)], 1).requires_grad_()
    (gradient,) = torch.autograd.grad(objective(theta, x, problem.y), theta)
    assert float(gradient.norm()) <= 3e-5
    scaler = StandardScaler().fit(problem.v.double().numpy())
    np.testing.assert_allclose(model.mean, scaler.mean_, atol=1e-12)
    np.testing.assert_allclose(model.std, scaler.scale_)


def test_two_classes_have_scikit_learns_one_vector() -> None:
    v, y = CASES["two classes"]
    model = LogisticRegression(tol=1e-10).fit(StandardScaler().fit_transform(v.double()), y)
    found = logistic_regression(v, y, 2)
    np.testing.assert_allclose(found.weights[1] - found.weights[0], model.coef_[0], atol=1e-5)
    np.testing.assert_allclose(found.bias[1] - found.bias[0], model.intercept_[0], atol=1e-5)


@pytest.mark.parametrize("d", [4, 300])
def test_one_class_is_certain(d: int) -> None:
    found = logistic_regression(draw(9, d), torch.ones(9).long(), 3).probabilities(draw(5, d))
    np.testing.assert_array_equal(found, [[0, 1, 0]] * 5)


@pytest.mark.parametrize("probe", [knn_probe, logistic_probe])
def test_class_without_training_samples_has_probability_zero(trained, probe) -> None:
    network, samples, test = trained
    found = probe(network, samples[samples.y != 1], test)
    assert found.shape == (len(test), 3)
    assert (found[:, 1] == 0).all()
    np.testing.assert_allclose(found.sum(1), 1)


SOME = [
    CASES["overlapping"],
    CASES["class missing"],
    (NEAR[:40], Y[:40]),
    CASES["two classes"],
    (NEAR[:7], torch.full((7,), 3)),
]


def alike(ours: list[Logistic], theirs: list[Logistic]) -> None:
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(
            one.probabilities(NEAR).cpu(), other.probabilities(NEAR), rtol=0, atol=1e-5
        )


def test_members_of_other_sizes_and_classes_do_not_disturb_each_other() -> None:
    alone = logistic_regressions(SOME, 4)
    alike(logistic._fit(SOME, 4), alone)
    for found, model in zip(logistic_probe_all(SOME, [NEAR] * 5, 4), alone, strict=True):
        assert torch.equal(found, model.probabilities(NEAR))


def test_members_with_embeddings_of_two_sizes_are_refused() -> None:
    with pytest.raises(InputError, match=r"of one size, found \[3, 4\]; fit those of another"):
        logistic_regressions([(NEAR, Y), (NEAR[:, :3], Y)], 3)


@pytest.mark.parametrize("name", ["overlapping", "two classes", "class missing"])
def test_what_scikit_learn_found_says_what_scikit_learn_does(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both ways come to the same, as far as scikit-learn's own tolerance goes."""
    v, y = CASES[name]
    exact = logistic_regression(v, y, 4).probabilities(v)
    monkeypatch.setattr(logistic, "_WIDE", 3)
    found = logistic_regression(v, y, 4).probabilities(v)
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    direct = model.fit(v.numpy(), y.numpy()).predict_proba(v.numpy())
    np.testing.assert_allclose(found[:, model.classes_], direct, rtol=0, atol=1e-5)
    np.testing.assert_allclose(found, exact, rtol=0, atol=2e-3)


def test_what_does_not_converge_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logistic, "_MOST", 1)
    with pytest.warns(UserWarning, match=r"gradient of 2e-05 in 1 iterations, found \d"):
        logistic_regression(NEAR, Y, 3)


# both


def test_readout_by_both_embeds_everything_once(trained, monkeypatch: pytest.MonkeyPatch) -> None:
    network, samples, test = trained
    seen = []
    monkeypatch.setattr(method, "embed", lambda n, x: seen.append(len(x)) or embed(n, x))
    METHODS["cnn-cl"].readout([Trained(network, samples, test)])
    assert seen == [len(samples), len(test)]


@needs_gpu
def test_on_the_gpu_as_on_the_cpu() -> None:
    here, there = SOME, [(v.to("cuda"), y.to("cuda")) for v, y in SOME]
    alike(logistic_regressions(there, 4), logistic_regressions(here, 4))
    for (v, y), (v_there, y_there) in zip(here, there, strict=True):
        found = neighbour_votes(v_there, y_there, NEAR.to("cuda") + 0.1, 4)
        torch.testing.assert_close(found.cpu(), neighbour_votes(v, y, NEAR + 0.1, 4))
