"""Trials that are trained at once: every method gives what it gives one trial after the other."""

import pytest

from deep_oversampling import Samples
from deep_oversampling.data import Splits
from deep_oversampling.rivals import METHODS, compare
from deep_oversampling.rivals.compare import run_trials
from deep_oversampling.rivals.trials import Setting, Trial
from toy import blobs

SETTING = Setting("blobs", "", "none", "auto", 3, 2, 16, 0.02, 0.2)
SPLITS = Splits("blobs", blobs((90, 60, 16), d=6), test=blobs((60, 60, 60), d=6, seed=7))
SEEDS = (3, 4, 5)
ONE_OF_EACH_TRAINING = {method.training.name: method for method in METHODS.values()}


def squares(counts: tuple[int, ...], seed: int = 0) -> Samples:
    flat = blobs(counts, d=64, seed=seed)
    return flat.with_x(flat.x.view(-1, 1, 8, 8))


OF_PICTURES = Splits("squares", squares((90, 60, 16)), test=squares((60, 60, 60), seed=7))


def trials(method: str, monkeypatch: pytest.MonkeyPatch, *, at_once: int) -> list[Trial]:
    monkeypatch.setattr(compare, "how_many", lambda trainings, device: at_once)
    chosen = [ONE_OF_EACH_TRAINING[method]]
    splits = OF_PICTURES if method.endswith("-pieces") else SPLITS
    return list(run_trials(splits, SETTING, chosen, SEEDS, device="cpu"))


@pytest.mark.parametrize("method", ONE_OF_EACH_TRAINING)
def test_at_once_is_one_after_the_other(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    alone, together = (trials(method, monkeypatch, at_once=e) for e in (1, 3))
    assert [trial.seed for trial in together] == list(SEEDS)
    for one, other in zip(alone, together, strict=True):
        assert one.left_out == other.left_out == ""
        assert one.presented == other.presented
        for name, column in one.measures.items():
            # a sample on a boundary may go either way: sums are in another order
            assert other.measures[name] == pytest.approx(column, abs=0.02)
    assert alone[0].measures != alone[1].measures


def test_nothing_is_computed_one_after_the_other(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Every objective of ours can be stacked: none falls back."""
    for method in ONE_OF_EACH_TRAINING:
        trials(method, monkeypatch, at_once=3)
    assert caplog.records == []
