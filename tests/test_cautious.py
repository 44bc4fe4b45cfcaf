"""Neighbours once the network knows the classes, and none while it guesses."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from typer.testing import CliRunner

from deep_oversampling import (
    DOSClassifier,
    InputError,
    Network,
    Plan,
    Samples,
    TrainingError,
    cli,
    embed,
    fit,
    fit_many,
    oversample,
)
from deep_oversampling.embeddings import embed_classes
from deep_oversampling.plan import default_plan
from picture_files import folder_of
from toy import blobs, generator, small, train, weights


def vectors(plan: Plan) -> tuple[list[int], list[int]]:
    return plan.k.tolist(), plan.r.tolist()


def test_a_cautious_plan_is_the_same_but_for_how_much_g_must_know() -> None:
    plan = Plan.automatic(torch.tensor([100, 20, 4]))
    cautious = plan.cautious()
    assert vectors(cautious) == vectors(plan)
    assert cautious.minority.equal(plan.minority)
    assert (plan.known, cautious.known, plan.cautious(0.9).known) == (0, 0.6, 0.9)
    assert repr(cautious) == "Plan(k=[0, 5, 5], r=[1, 5, 25], known=0.6)"
    assert cautious.fitted_to(torch.tensor([100, 20, 6])).known == 0.6
    assert cautious.cautious(0.0).known == cautious.without_neighbours().known == 0
    levelled = plan.without_neighbours()
    assert levelled.cautious() is levelled


@pytest.mark.parametrize("known", [-0.1, 1.1, float("nan"), "much", None])
def test_how_much_g_must_know_is_a_share(known: object) -> None:
    with pytest.raises(InputError, match=r"known must be a share between 0 and 1, found"):
        Plan([1, 1], [1, 1], known=known)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("augmented", "pieces", "known"), [(False, False, 0.6), (True, False, 0), (True, True, 0)]
)
def test_the_default_is_cautious_where_it_has_neighbours_that_it_can_do_without(
    augmented: bool, pieces: bool, known: float
) -> None:
    assert default_plan(torch.tensor([100, 20]), None, augmented, pieces).known == known


def one_heap() -> Samples:
    """Labels that have nothing to do with the samples."""
    return Samples(torch.randn(38, 4, generator=generator()), blobs().y)


def knows(network: Network, samples: Samples) -> float:
    none = torch.zeros(samples.n, dtype=torch.bool)
    known = embed_classes(network, samples, none).known
    assert known is not None
    return known


@pytest.mark.parametrize(
    ("right", "known"),
    [((20, 12, 6), 1.0), ((20, 0, 0), 0.0), ((20, 6, 0), 0.25), ((0, 0, 2), 0.0)],
)
def test_what_g_knows_is_mean_recall_above_guessing(right: tuple[int, ...], known: float) -> None:
    """Samples that hold a class, which g reads off: theirs, or the next one."""
    y = torch.arange(3).repeat_interleave(torch.tensor([20, 12, 6]))
    place = torch.cat([torch.arange(m) for m in (20, 12, 6)])
    said = torch.where(place < torch.tensor(right)[y], y, (y + 1) % 3)
    samples = Samples(torch.eye(3)[said], y)
    network = Network(nn.Identity(), nn.Identity())
    assert knows(network, samples) == pytest.approx(known)


@pytest.mark.parametrize("samples", [blobs(), one_heap()], ids=["blobs", "one heap"])
def test_a_table_has_neighbours_where_g_knows_enough(samples: Samples) -> None:
    network = small()
    train(network, samples, rounds=40)
    plan = Plan.automatic(samples.class_counts)
    v = embed_classes(network, samples, plan.k > 0)
    assert v.known is not None
    assert 0 < v.known < 1
    for known, same in ((0.99 * v.known, plan), (1.01 * v.known, plan.without_neighbours())):
        found = oversample(samples, v, plan.cautious(known), generator=generator())
        whole = embed(network, samples.x)
        expected = oversample(samples, whole, same, generator=generator())
        assert torch.equal(found.anchor, expected.anchor)
        assert torch.equal(found.has_neighbours, expected.has_neighbours)
        assert torch.equal(found.w, expected.w)
        assert torch.equal(found.variance, expected.variance)


def test_embeddings_alone_do_not_say_what_g_knows() -> None:
    samples, plan = blobs(), Plan.automatic(blobs().class_counts).cautious()
    v = embed(small(), samples.x)
    with pytest.raises(InputError, match=r"must know what g makes of the embeddings, found embedd"):
        oversample(samples, v, plan, generator=generator())
    assert len(oversample(samples, v, plan.cautious(0), generator=generator()).crowded)


@pytest.mark.parametrize(
    ("known", "initial_rounds", "same"),
    [(1.0, 1, Plan([0, 0, 0], [1, 1, 3])), (1e-9, 40, Plan([0, 0, 5], [1, 1, 3]))],
    ids=["never enough", "always enough"],
)
def test_what_g_knows_is_all_that_counts(known: float, initial_rounds: int, same: Plan) -> None:
    found = []
    for plan in (Plan([0, 0, 5], [1, 1, 3]).cautious(known), same):
        network = small()
        length = {"rounds": 3, "initial_rounds": initial_rounds, "batch_size": 4}
        history = train(network, blobs(), plan, **length)
        assert (history.rounds[-1].embedding_loss > 0) == bool(same.k.any())
        found.append(weights(network))
    assert torch.equal(*found)


def test_every_round_looks_anew() -> None:
    samples, network, plan = blobs(), small(), Plan([0, 0, 5], [1, 1, 3]).cautious(0.3)
    knew: list[float] = []
    history = train(
        network,
        samples,
        plan,
        rounds=20,
        initial_rounds=1,
        on_round=lambda _: knew.append(knows(network, samples)),
    )
    had = [one.embedding_loss > 0 for one in history.rounds[1:]]
    assert had == [known >= 0.3 for known in knew[:-1]]
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


@pytest.mark.parametrize(("k", "known"), [(None, 0.6), (5, 0), (0, 0)])
def test_the_classifier_is_cautious_where_k_is_not_said(k: int | None, known: float) -> None:
    x, y = blobs().x.numpy(), blobs().y.numpy()
    assert DOSClassifier(k=k, rounds=1, device="cpu").fit(x, y).plan_.known == known


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
        assert ("no round had neighbours, as the network knew too little" in told) == cautious
        assert ("mixed from k neighbours once the network knows the classes" in told) == cautious
        info = " ".join(call(cli.app, ["info", "run"]).output.split())
        assert ("neighbours once classes are known" in info) == cautious
        assert f"cautious = {str(cautious).lower()}" in Path("run/config.toml").read_text()
    again = call(cli.app, ["train", "--config", "run/config.toml", "--out", "again"])
    assert "once the network knows the classes" in " ".join(again.output.split())
    refused = call(cli.app, [*usual, "--cautious", "--pieces", "--out", "other"])
    assert refused.exit_code != 0
    assert "pieces must have neighbours in every round" in " ".join(refused.output.split())


def test_of_networks_that_are_trained_at_once_each_is_cautious_by_itself() -> None:
    samples = blobs()
    plan = Plan.automatic(samples.class_counts)
    plans = [plan.cautious(1.0), plan, plan.cautious(1.0)]
    networks, alone = [[small(seed=seed) for seed in range(3)] for _ in range(2)]
    options: dict[str, Any] = {"rounds": 2, "device": "cpu"}
    found = fit_many(networks, samples, plans, at_once=3, **options)
    had = [not isinstance(one, TrainingError) and one.rounds[-1].embedding_loss for one in found]
    assert list(map(bool, had)) == [False, True, False]
    for seed, (network, one) in enumerate(zip(networks, alone, strict=True)):
        fit(one, samples, plans[seed], seed=seed, recover=False, **options)
        assert torch.allclose(weights(network), weights(one), atol=1e-5)
