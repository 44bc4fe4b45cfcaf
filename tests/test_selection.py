"""k and r by validation, and ensembles: what is chosen, from what, and that it is used."""

import pickle
from functools import partial

import numpy as np
import pytest
import torch

from deep_oversampling import DOSClassifier, InputError, Plan, TrainingError
from deep_oversampling import selection as room
from deep_oversampling.fitting import fit_many
from deep_oversampling.selection import Candidate, candidates, select
from toy import blobs, small

COUNTS = torch.tensor([200, 120, 20])
FAST = {"rounds": 1, "batch_size": 16, "device": "cpu"}


def plan_of(counts: torch.Tensor, k: int, r_times: float) -> Plan:
    return Plan.for_minority(counts, [2], k, r_times=r_times)


def test_candidates_cover_the_papers_ranges() -> None:
    found = candidates(COUNTS, plan_of)
    assert {one.k for one, _ in found} == {3, 5, 10}
    for candidate, plan in found:
        assert 1 <= candidate.r_times <= candidate.k
        assert plan.k.tolist() == [0, 0, candidate.k]
        assert plan.r[2] == round(candidate.r_times * 8)  # R = 20/160
    assert len({repr(plan) for _, plan in found}) == len(found) == 9


def test_plans_that_are_alike_are_tried_once() -> None:
    found = candidates(COUNTS, lambda counts, k, r_times: Plan.uniform(3, k))
    assert [(one.k, one.r_times) for one, _ in found] == [(3, 1.0), (5, 1.0), (10, 1.0)]


def test_k_is_clamped_to_what_a_class_has() -> None:
    found = candidates(torch.tensor([200, 120, 5]), plan_of)
    assert {plan.k.tolist()[2] for _, plan in found} == {3, 4}


def test_the_best_on_validation_samples_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Networks are told apart by their order; the judge likes the fifth best."""
    asked = []

    def train_all(networks, train, plans, *, seeds, batch_size):
        assert batch_size is None
        asked.append((len(train), [repr(plan) for plan in plans], seeds))
        for e, network in enumerate(networks):
            network.liked = -abs(e - 4)
        return [TrainingError("lost") if e == 8 else None for e in range(len(networks))]

    class Judged:
        def __init__(self, liked: float) -> None:
            self.liked = liked

        def mean(self) -> dict[str, float]:
            return {"f1": self.liked}

    monkeypatch.setattr(room, "predict", lambda network, x: network.liked)
    monkeypatch.setattr(room, "measure", lambda liked, y: Judged(10 + liked))
    samples = blobs((100, 60, 20))
    found = select(small, samples, plan_of, train_all, seed=3)
    ((size, plans, seeds),) = asked
    assert size == 80 + 48 + 16  # a fifth of each class is held out
    assert seeds == [3] * 9
    assert len(set(plans)) == 9
    assert (found[0].k, found[0].r_times, found[0].f1) == (5, 3.0, 10)
    assert [one.f1 for one in found] == sorted((one.f1 for one in found), reverse=True)
    assert found[-1].f1 == 0.0  # the lost one


def test_of_equals_the_smallest_is_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "_KS", (3, 5))
    train_all = partial(fit_many, optimizer=partial(torch.optim.SGD, lr=0.0), **FAST)
    found = select(small, blobs((40, 30, 10)), plan_of, train_all, seed=0)
    assert len({one.f1 for one in found}) == 1
    assert [(one.k, one.r_times) for one in found][:2] == [(3, 1.0), (3, 2.0)]


def data() -> tuple[np.ndarray, np.ndarray]:
    samples = blobs((60, 40, 16), seed=1)
    return samples.x.numpy(), np.array(["a", "b", "rare"])[samples.y.numpy()]


def test_auto_is_what_is_chosen() -> None:
    x, y = data()
    auto = DOSClassifier(k="auto", **FAST).fit(x, y)
    best = auto.candidates_[0]
    assert isinstance(best, Candidate)
    assert 0 < best.f1 <= 1
    given = DOSClassifier(k=best.k, r_times=best.r_times, **FAST).fit(x, y)
    assert repr(auto.plan_) == repr(given.plan_)
    np.testing.assert_array_equal(auto.predict_proba(x), given.predict_proba(x))


def test_auto_is_the_only_word_for_k() -> None:
    with pytest.raises(InputError, match="found 'best'; DOSClassifier takes 'auto' as well"):
        DOSClassifier(k="best", **FAST).fit(*data())


def test_auto_takes_a_batch_of_all_samples() -> None:
    x, y = data()
    auto = DOSClassifier(k="auto", **{**FAST, "batch_size": len(x)}).fit(x, y)
    assert len(auto.candidates_) > 3
    assert auto.set_params(k=3).fit(x, y).candidates_ == []


def test_auto_needs_samples_to_hold_out() -> None:
    x, y = data()
    y[0] = "one"
    with pytest.raises(InputError, match="a single one of 'one'"):
        DOSClassifier(k="auto", **FAST).fit(x, y)


# ensembles


def test_an_ensemble_is_the_mean_of_its_networks() -> None:
    x, y = data()
    several = DOSClassifier(ensemble=3, **FAST).fit(x, y)
    assert len(several.networks_) == len(several.histories_) == 3
    assert several.network_ is several.networks_[0]
    each = []
    for network in several.networks_:
        alone = DOSClassifier(**FAST).fit(x, y)
        alone.networks_ = [network]
        each.append(alone.predict_proba(x))
    assert not np.allclose(each[0], each[1])
    np.testing.assert_allclose(several.predict_proba(x), np.mean(each, 0), atol=1e-6)


def test_the_first_of_an_ensemble_is_the_one_there_would_be() -> None:
    x, y = data()
    one, several = (DOSClassifier(ensemble=e, **FAST).fit(x, y) for e in (1, 2))
    width = one.transform(x).shape[1]
    assert several.transform(x).shape[1] == 2 * width == len(several.get_feature_names_out())
    np.testing.assert_allclose(several.transform(x)[:, :width], one.transform(x), atol=1e-6)


def test_an_ensemble_is_pickled_whole() -> None:
    x, y = data()
    several = DOSClassifier(ensemble=2, **FAST).fit(x, y)
    again = pickle.loads(pickle.dumps(several))
    np.testing.assert_array_equal(again.predict_proba(x), several.predict_proba(x))
    assert again.network_ is again.networks_[0]


@pytest.mark.parametrize("wrong", [0, -1, 1.5, "two"])
def test_an_ensemble_has_one_network_or_more(wrong: object) -> None:
    with pytest.raises(InputError, match="ensemble must be a whole number ≥ 1"):
        DOSClassifier(ensemble=wrong, **FAST).fit(*data())


def test_a_lost_member_is_an_error() -> None:
    with pytest.raises(TrainingError, match="must stay finite"):
        DOSClassifier(ensemble=2, learning_rate=1e30, **FAST).fit(*data())
