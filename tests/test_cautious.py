"""Neighbours where classes are apart, and none where they are in one heap."""

from pathlib import Path
from typing import Any

import pytest
import torch
from typer.testing import CliRunner

from deep_oversampling import (
    DOSClassifier,
    InputError,
    Plan,
    Samples,
    TrainingError,
    cli,
    embed,
    fit,
    fit_many,
    oversample,
)
from deep_oversampling.moments import moments_of
from deep_oversampling.plan import default_plan
from picture_files import folder_of
from toy import blobs, generator, small, train, weights


def vectors(plan: Plan) -> tuple[list[int], list[int]]:
    return plan.k.tolist(), plan.r.tolist()


def test_a_cautious_plan_is_the_same_but_for_how_far_classes_must_be_apart() -> None:
    plan = Plan.automatic(torch.tensor([100, 20, 4]))
    cautious = plan.cautious()
    assert vectors(cautious) == vectors(plan)
    assert cautious.minority.equal(plan.minority)
    assert (plan.apart, cautious.apart, plan.cautious(2.0).apart) == (0, 1 / 3, 2)
    assert repr(cautious) == "Plan(k=[0, 5, 5], r=[1, 5, 25], apart=0.33)"
    assert cautious.fitted_to(torch.tensor([100, 20, 6])).apart == 1 / 3
    assert cautious.cautious(0.0).apart == cautious.without_neighbours().apart == 0
    levelled = plan.without_neighbours()
    assert levelled.cautious() is levelled


@pytest.mark.parametrize("apart", [-0.1, float("nan"), "far", None])
def test_how_far_apart_is_a_number(apart: object) -> None:
    with pytest.raises(InputError, match=r"apart must be a number ≥ 0, found"):
        Plan([1, 1], [1, 1], apart=apart)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("augmented", "pieces", "apart"), [(False, False, 1 / 3), (True, False, 0), (True, True, 0)]
)
def test_the_default_is_cautious_where_it_has_neighbours_that_it_can_do_without(
    augmented: bool, pieces: bool, apart: float
) -> None:
    assert default_plan(torch.tensor([100, 20]), None, augmented, pieces).apart == apart


def one_heap() -> Samples:
    """Labels that have nothing to do with the samples."""
    return Samples(torch.randn(38, 4, generator=generator()), blobs().y)


@pytest.mark.parametrize("samples", [blobs(), one_heap()], ids=["blobs", "one heap"])
def test_a_table_has_neighbours_where_classes_are_far_enough_apart(samples: Samples) -> None:
    v = embed(small(), samples.x)
    ratio = moments_of(v, samples.y, samples.n).spread().ratio
    plan = Plan.automatic(samples.class_counts)
    for apart, same in ((0.99 * ratio, plan), (1.01 * ratio, plan.without_neighbours())):
        found = oversample(samples, v, plan.cautious(apart), generator=generator())
        expected = oversample(samples, v, same, generator=generator())
        assert torch.equal(found.anchor, expected.anchor)
        assert torch.equal(found.has_neighbours, expected.has_neighbours)
        assert torch.equal(found.w, expected.w)
        assert torch.equal(found.variance, expected.variance)


def test_a_training_without_any_neighbours_is_over_sampling() -> None:
    plan = Plan.automatic(blobs().class_counts)
    networks = []
    for one in (plan.cautious(1e9), plan.without_neighbours(), plan.cautious(1e-9), plan):
        network = small()
        history = train(network, blobs(), one, rounds=3)
        assert (history.rounds[-1].embedding_loss > 0) == (one.apart < 1 and bool(one.k.any()))
        networks.append(weights(network))
    assert torch.equal(networks[0], networks[1])
    assert torch.equal(networks[2], networks[3])
    assert not torch.equal(networks[0], networks[2])


def test_every_round_looks_anew() -> None:
    samples, network = blobs(), small()
    levelled = train(small(), samples, Plan([0] * 3, [1, 1, 3]), rounds=12, initial_rounds=1)
    between = (levelled.spreads[0].ratio + levelled.spreads[-1].ratio) / 2
    plan = Plan([0, 0, 5], [1, 1, 3]).cautious(between)
    history = train(network, samples, plan, rounds=12, initial_rounds=1)
    had = [one.embedding_loss > 0 for one in history.rounds[1:]]
    assert had == [one.ratio >= between for one in history.spreads[:-1]]
    assert set(had) == {False, True}


def test_fit_is_cautious_where_nobody_gives_a_plan() -> None:
    samples = one_heap()
    plan = Plan.automatic(samples.class_counts)
    found, cautious, bold = small(), small(), small()
    train(found, samples)
    train(cautious, samples, plan.cautious())
    train(bold, samples, plan)
    assert torch.equal(weights(found), weights(cautious))
    assert not torch.equal(weights(found), weights(bold))


@pytest.mark.parametrize(("k", "apart"), [(None, 1 / 3), (5, 0), (0, 0)])
def test_the_classifier_is_cautious_where_k_is_not_said(k: int | None, apart: float) -> None:
    x, y = blobs().x.numpy(), blobs().y.numpy()
    assert DOSClassifier(k=k, rounds=1, device="cpu").fit(x, y).plan_.apart == apart


def test_pieces_have_neighbours_in_every_round() -> None:
    pictures = Samples(torch.rand(12, 3, 8, 8), [0] * 9 + [1] * 3)
    plan = Plan.in_part(pictures.class_counts, 2).cautious()
    with pytest.raises(InputError, match="pieces must have neighbours in every round, found a"):
        train(small(2, 192), pictures, plan, pieces=0.5)


def test_dos_train_is_cautious_where_k_is_not_said(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    folder_of(tmp_path / "scans", {"a": 20, "b": 7}, (8, 8))
    call = CliRunner().invoke
    usual = ["train", "scans", "--rounds", "1", "--no-baseline", "--device", "cpu"]
    for options, cautious in (
        ([], True),
        (["--no-cautious"], False),
        (["--k", "3"], False),
        (["--k", "3", "--cautious"], True),
    ):
        done = call(cli.app, [*usual, *options, "--out", "run", "--overwrite"])
        assert done.exit_code == 0, done.output
        told = " ".join(done.output.split())
        assert ("mixed from k neighbours where classes are apart" in told) == cautious
        info = " ".join(call(cli.app, ["info", "run"]).output.split())
        assert ("neighbours where classes are apart" in info) == cautious
        assert f"cautious = {str(cautious).lower()}" in Path("run/config.toml").read_text()
    again = call(cli.app, ["train", "--config", "run/config.toml", "--out", "again"])
    assert "where classes are apart" in " ".join(again.output.split())
    refused = call(cli.app, [*usual, "--cautious", "--pieces", "--out", "other"])
    assert refused.exit_code != 0
    assert "pieces must have neighbours in every round" in " ".join(refused.output.split())


def test_of_networks_that_are_trained_at_once_each_is_cautious_by_itself() -> None:
    samples = blobs()
    plan = Plan.automatic(samples.class_counts)
    plans = [plan.cautious(1e9), plan, plan.cautious(1e9)]
    networks, alone = [[small(seed=seed) for seed in range(3)] for _ in range(2)]
    options: dict[str, Any] = {"rounds": 2, "device": "cpu"}
    found = fit_many(networks, samples, plans, at_once=3, **options)
    had = [not isinstance(one, TrainingError) and one.rounds[-1].embedding_loss for one in found]
    assert list(map(bool, had)) == [False, True, False]
    for seed, (network, one) in enumerate(zip(networks, alone, strict=True)):
        fit(one, samples, plans[seed], seed=seed, recover=False, **options)
        assert torch.allclose(weights(network), weights(one), atol=1e-5)
