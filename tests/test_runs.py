"""A run in Python: what a stop keeps, and that the baseline is fair."""

import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn
from torch.optim import SGD

from contests import pictures
from deep_oversampling import History, InputError, Samples, TrainingError, fit, measure, predict
from deep_oversampling.data import Splits
from deep_oversampling.history import Round
from deep_oversampling.runs import Run, Settings, Task, evaluate, predict_files, prepare, train
from deep_oversampling.runs.folder import save_run
from deep_oversampling.runs.record import make_record
from deep_oversampling.runs.settings import as_toml
from deep_oversampling.runs.training import OnRound
from deep_oversampling.runs.unfinished import begin
from toy import blobs

ROUNDS = 3


def task(*, counts: tuple[int, ...] = (40, 30, 9), **changes: object) -> Task:
    made = pictures if changes.get("pieces") else blobs
    splits = Splits("blobs", made(counts))
    return prepare(Settings("blobs", rounds=ROUNDS, device="cpu", **changes), splits)


def stop(at: tuple[str, int], error: BaseException) -> OnRound:
    def on_round(method: str, t: int, one: Round) -> None:
        if (method, t) == at:
            raise error

    return on_round


@pytest.mark.parametrize("t", [1, 3, 4])
def test_a_stop_keeps_the_last_whole_round(t: int) -> None:
    given = task()
    outcome = train(given, stop(("dos", t), KeyboardInterrupt()))
    assert outcome is not None
    assert outcome.status == f"stopped after round {t} of 6"
    assert list(outcome.networks) == ["dos"]
    rounds = outcome.histories["dos"].rounds
    assert len(rounds) == t
    found = measure(predict(outcome.networks["dos"], given.validation.x), given.validation.y)
    assert rounds[-1].validation is not None
    assert rounds[-1].validation["majority"] == found.mean(~given.plan.minority.numpy())


def test_a_stop_in_the_midst_of_a_round_undoes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    given = task(batch_size=9)  # 7 steps a round
    whole = train(given, stop(("dos", 3), KeyboardInterrupt()))
    step, taken = SGD.step, []

    def stepped(self: SGD, *arguments: object) -> object:
        taken.append(1)
        if len(taken) == 24:  # in the fourth round
            raise KeyboardInterrupt
        return step(self, *arguments)

    monkeypatch.setattr(SGD, "step", stepped)
    outcome = train(given)
    assert outcome is not None
    assert whole is not None
    assert outcome.status == "stopped after round 3 of 6"
    ours, theirs = (one.networks["dos"].state_dict() for one in (outcome, whole))
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


def test_a_baseline_that_was_stopped_is_left_out() -> None:
    outcome = train(task(), stop(("plain", 2), KeyboardInterrupt()))
    assert outcome is not None
    assert outcome.status == "stopped after round 2 of 6 of the baseline, which is left out"
    assert list(outcome.networks) == list(outcome.measures) == ["dos"]
    assert len(outcome.histories["dos"].rounds) == 6


def test_a_training_that_is_lost_keeps_what_it_had() -> None:
    lost = TrainingError("the loss must stay finite")
    outcome = train(task(), stop(("dos", 2), lost))
    assert outcome is not None
    assert outcome.error is lost
    assert outcome.status.endswith("round 2 of 6: the loss must stay finite")


def test_the_baseline_is_presented_every_sample_once_a_round() -> None:
    outcome = train(task())
    assert outcome is not None
    rounds = {name: history.rounds for name, history in outcome.histories.items()}
    assert [one.presented for one in rounds["plain"]] == [63] * 6
    assert [one.presented for one in rounds["dos"]][:3] == [63] * 3
    assert all(one.presented > 63 for one in rounds["dos"][3:])
    assert all(sorted(one.validation or {}) == ["majority", "minority"] for one in rounds["plain"])


@pytest.mark.parametrize("asked", [{}, {"patience": 1}, {"pieces": True}])
def test_plain_rounds_of_dos_are_those_of_the_baseline(
    tmp_path: Path, asked: dict[str, object]
) -> None:
    """They are trained once where they are kept, and both methods end as if alone."""
    given, trained, found = task(**asked), [], []
    alone = train(given)
    with begin(tmp_path / "run", "", given) as unfinished:
        shared = train(
            given,
            lambda method, t, _: trained.append((method, t)),
            unfinished=unfinished,
            on_found=lambda method, rounds: found.append((method, len(rounds))),
        )
    assert alone is not None
    assert shared is not None
    assert ("dos", 1) in trained
    assert min(t for method, t in trained if method == "plain") == ROUNDS + 1
    assert found == [("plain", 0)]  # none of its own
    for method, network in alone.networks.items():
        theirs = shared.networks[method].state_dict()
        assert all(torch.equal(theirs[name], t) for name, t in network.state_dict().items())
        ours = [history.histories[method].rounds for history in (alone, shared)]
        assert [replace(one, seconds=0) for one in ours[0]] == [
            replace(one, seconds=0) for one in ours[1]
        ]


def test_pieces_are_for_dos_and_not_for_the_baseline() -> None:
    given, without = task(pieces=True), task(pieces=True)
    assert given.plan.k.tolist() == [5, 5, 5]
    assert given.plan.rows(given.train.class_counts).tolist() == [32, 28, 15]
    assert "pieces = true\ntau = 0.5\n" in as_toml(given.settings)
    outcome = train(given)
    plain = replace(without, settings=replace(without.settings, pieces=False, tau=None))
    other = train(plain)
    assert outcome is not None
    assert other is not None
    weights = {
        name: torch.equal(network.state_dict()["classifier.0.weight"], theirs)
        for name, network in outcome.networks.items()
        for theirs in [other.networks[name].state_dict()["classifier.0.weight"]]
    }
    assert weights == {"dos": False, "plain": True}


@pytest.mark.parametrize(("asked", "margin"), [({"tau": 1.5}, 1.5), ({"tau": 0}, 0), ({}, 0.5)])
def test_a_margin_is_asked_for_or_comes_with_pieces(
    asked: dict[str, float], margin: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[object] = []

    def watched(*values: Any, **options: Any) -> History:
        seen.append(options.get("tau"))
        return fit(*values, **options)

    monkeypatch.setattr("deep_oversampling.runs.training.fit", watched)
    given = task(pieces=True, **asked)
    assert train(given) is not None
    assert seen == [margin, None]  # of DOS, and of the baseline
    assert (f"rare classes have a margin, τ = {margin:g}" in given.notes) == (margin > 0)


def test_with_a_margin_it_is_no_plain_training_where_no_class_is_rare() -> None:
    assert task(k=0, counts=(40, 35, 30)).settings.baseline is False
    assert task(k=0, counts=(40, 35, 30), tau=1.0).settings.baseline is True
    assert task(k=0, counts=(40, 40, 40), tau=1.0).settings.baseline is False  # a constant


def test_augmented_pictures_have_neighbours_where_pieces_are_of_them() -> None:
    assert task(pieces=True, augment=True).plan.k.tolist() == [5, 5, 5]
    assert task(pieces=True, augment=True, k=2).plan.k.tolist() == [2, 2, 2]


def test_k_can_be_chosen_with_pieces() -> None:
    given = task(pieces=True, k="auto")
    assert sorted(one.k for one in given.candidates) == [3, 5, 10]
    assert f"k = {given.candidates[0].k} was chosen on a part of the samples" in given.notes


def test_vectors_have_no_pieces() -> None:
    splits = Splits("blobs", blobs((40, 30, 9)))
    with pytest.raises(InputError, match=r"pieces must be of pictures, found samples of shape \("):
        prepare(Settings("blobs", pieces=True, device="cpu"), splits)


def test_a_run_is_opened_as_it_was_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    given = task()
    outcome = train(given)
    assert outcome is not None
    folder = begin(None, "My blobs!", given).run
    assert folder == Path("runs/my-blobs-1")
    assert begin(None, "My blobs!", given).run == Path("runs/my-blobs-2")
    record = make_record(given, outcome, held_out=True)
    save_run(folder, record, outcome.networks)
    run = Run.open(folder)
    assert run.record == record
    assert run.settings == given.settings
    for baseline, method in ((False, "dos"), (True, "plain")):
        p = predict(run.network(baseline=baseline, device="cpu"), given.validation.x)
        assert torch.allclose(p, outcome.probabilities[method])
    assert evaluate(run, given.validation).groups == outcome.measures["dos"]
    with pytest.raises(InputError, match="trained on pictures"):
        predict_files(run, ["a.png"])


def test_classes_in_another_order_are_the_same_classes(tmp_path: Path) -> None:
    given = task()
    outcome = train(given)
    assert outcome is not None
    folder = begin(tmp_path / "r", "", given).run
    run = save_run(folder, make_record(given, outcome, held_out=True), outcome.networks)
    turned = Samples(given.validation.x, 2 - given.validation.y, given.validation.classes[::-1])
    assert evaluate(run, turned).groups == evaluate(run, given.validation).groups


def test_tokens_are_refused() -> None:
    tokens = Samples(torch.zeros(9, 4, dtype=torch.long), [0] * 5 + [1] * 4)
    with pytest.raises(InputError, match=r"floats or uint8, found torch\.int64"):
        prepare(Settings("x", device="cpu"), Splits("tokens", tokens))


class ReadsNumbers(nn.Module):
    """A model of timm that cannot be made without memory, as it reads numbers in its making."""

    default_cfg = {"classifier": "fc"}  # noqa: RUF012

    def __init__(self, num_classes: int, in_chans: int, pretrained: bool) -> None:
        super().__init__()
        self.steps = [float(step) for step in torch.linspace(0, 1, 3)]
        self.fc = nn.Linear(in_chans * 16, num_classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(x.flatten(1))


def test_a_run_of_timm_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    create = SimpleNamespace(create_model=lambda _, **options: ReadsNumbers(**options))
    monkeypatch.setitem(sys.modules, "timm", create)
    flat = blobs((40, 30, 9), d=16)
    pictures = flat.with_x(flat.x.view(-1, 1, 4, 4))
    given = prepare(Settings("p", model="timm:any", rounds=1), Splits("p", pictures))
    outcome = train(given)
    assert outcome is not None
    record = make_record(given, outcome, held_out=True)
    run = save_run(begin(tmp_path / "r", "", given).run, record, outcome.networks)
    p = predict(run.network(device="cpu"), given.validation.x)
    assert torch.allclose(p, outcome.probabilities["dos"], atol=1e-5)
