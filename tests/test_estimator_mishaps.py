"""DOSClassifier where training goes wrong: made good, told once, or a fit that failed."""

from __future__ import annotations

import pickle
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, FitFailedWarning
from sklearn.model_selection import GridSearchCV, cross_val_score

from deep_oversampling import TrainingError
from estimator_inputs import fast, vectors
from test_mishaps import Spoiled

HOPELESS = 1e12  # as a learning rate


def spoiled() -> Spoiled:
    """A training that is lost in its second round, and not where the rate is lower."""
    return Spoiled(lambda parameter: parameter.fill_(torch.nan), 3)


@pytest.fixture
def data() -> tuple[np.ndarray, np.ndarray]:
    return vectors()


def warned(call: Any) -> list[warnings.WarningMessage]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        call()
    return found


def test_a_training_that_is_lost_is_made_good_and_told_once(data: tuple[Any, Any]) -> None:
    classifier = fast(optimizer=spoiled())
    (found,) = warned(lambda: classifier.fit(*data))
    assert found.category is ConvergenceWarning
    assert found.filename == __file__  # the caller's line
    assert "with a tenth of the learning rate (0.01)" in str(found.message)
    assert [mishap.rate for mishap in classifier.history_.mishaps] == [0.1]
    assert np.isfinite(classifier.predict_proba(data[0])).all()


def test_without_recover_it_is_an_error_and_nothing_is_fitted(data: tuple[Any, Any]) -> None:
    classifier = fast(optimizer=spoiled(), recover=False)
    with pytest.raises(TrainingError, match="the loss must stay finite"):
        classifier.fit(*data)
    assert not hasattr(classifier, "networks_")
    assert classifier.get_params()["recover"] is False
    assert clone(fast(recover=False)).recover is False


def test_what_is_lost_twice_is_an_error(data: tuple[Any, Any]) -> None:
    with pytest.raises(TrainingError, match="a tenth of the learning rate did not help"):
        fast(learning_rate=HOPELESS).fit(*data)


def test_members_of_an_ensemble_are_made_good_by_themselves(data: tuple[Any, Any]) -> None:
    several = fast(optimizer=spoiled(), ensemble=2)
    assert len(warned(lambda: several.fit(*data))) == 1
    first, second = several.histories_
    assert len(first.mishaps) == len(second.mishaps) == 1
    alone = fast(optimizer=spoiled())
    warned(lambda: alone.fit(*data))
    ours, theirs = several.networks_[0].state_dict(), alone.network_.state_dict()
    assert all(np.allclose(ours[name], theirs[name], atol=1e-5) for name in theirs)


def test_where_all_goes_well_nothing_changes_and_nothing_is_said(data: tuple[Any, Any]) -> None:
    careful, careless = fast(), fast(recover=False)
    assert not warned(lambda: careful.fit(*data))
    careless.fit(*data)
    np.testing.assert_array_equal(careful.predict_proba(data[0]), careless.predict_proba(data[0]))


def test_rounds_that_do_not_suffice_for_early_stopping_are_told(data: tuple[Any, Any]) -> None:
    found = warned(lambda: fast(rounds=1, early_stopping=True, learning_rate=0.001).fit(*data))
    assert [one.category for one in found if "early stopping" in str(one.message)] == [
        ConvergenceWarning
    ]


def test_a_search_goes_on_where_a_fit_fails(data: tuple[Any, Any]) -> None:
    grid = {"learning_rate": [0.05, HOPELESS]}
    search = GridSearchCV(fast(k=2), grid, cv=2, error_score=np.nan)
    found = warned(lambda: search.fit(*data))
    assert FitFailedWarning in {one.category for one in found}
    assert search.best_params_ == {"learning_rate": 0.05}
    assert np.isnan(search.cv_results_["mean_test_score"][1])


def test_errors_travel_between_processes() -> None:
    error = pickle.loads(pickle.dumps(TrainingError("lost")))
    assert (type(error), str(error)) == (TrainingError, "lost")


PROGRAM = """
import sys, warnings
sys.path.insert(0, sys.argv[1])
import numpy as np
from sklearn.model_selection import GridSearchCV
from estimator_inputs import fast, vectors

def search(n_jobs):
    grid = {"learning_rate": [0.05, 0.01, 1e12]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return GridSearchCV(fast(k=2), grid, cv=2, n_jobs=n_jobs).fit(*vectors())

if __name__ == "__main__":
    one, two = search(1), search(2)
    for name in ("mean_test_score", "std_test_score"):
        np.testing.assert_array_equal(one.cv_results_[name], two.cv_results_[name])
    np.testing.assert_array_equal(*(s.predict_proba(vectors()[0]) for s in (one, two)))
    scores = one.cv_results_["mean_test_score"]
    assert np.isfinite(scores[:2]).all() and np.isnan(scores[2]), scores
    print("alike")
"""


@pytest.mark.slow
def test_processes_of_joblib_search_alike(tmp_path: Path) -> None:
    """In a program of its own: their warnings are not this one's."""
    program = tmp_path / "search.py"
    program.write_text(PROGRAM)
    tests = str(Path(__file__).parent)
    done = subprocess.run(
        [sys.executable, str(program), tests], capture_output=True, text=True, check=False
    )
    assert done.stdout == "alike\n", done.stderr


def test_scores_of_cross_validation_are_those_of_one_process(data: tuple[Any, Any]) -> None:
    twice = [cross_val_score(fast(k=2), *data, cv=2) for _ in range(2)]
    np.testing.assert_array_equal(*twice)
