"""What a training reports: rounds, losses, and the spread of the embeddings."""

import json
import math

import pytest
import torch
from hypothesis import given

from deep_oversampling import History, Plan, embed
from deep_oversampling.history import Spread, spread
from strategies import Problem, problems
from toy import blobs, small, train


@pytest.fixture(scope="module")
def trained() -> tuple[History, Spread]:
    network, samples = small(), blobs()
    history = train(
        network, samples, Plan(k=[0, 0, 3], r=[1, 1, 4]), rounds=2, validation=blobs(seed=1)
    )
    return history, spread(embed(network, samples.x), samples.y, 3)


def test_rounds_tell_task_rows_and_losses(trained: tuple[History, Spread]) -> None:
    rounds = trained[0].rounds
    assert [r.presented for r in rounds] == [38, 38, 20 + 12 + 4 * 6, 20 + 12 + 4 * 6]
    assert [r.embedding_loss for r in rounds[:2]] == [0, 0]
    assert all(r.embedding_loss > 0 for r in rounds[2:])
    assert all(r.classifier_loss > 0 and r.seconds > 0 for r in rounds)


def test_spreads_are_of_the_embeddings_between_rounds(trained: tuple[History, Spread]) -> None:
    history, at_the_end = trained
    assert len(history.spreads) == 3  # before each multi-task round, and at the end
    assert history.spreads[-1] == at_the_end


def test_first_spread_is_that_of_the_embeddings_the_round_starts_from() -> None:
    samples = blobs()
    history = train(small(), samples, initial_rounds=0)
    assert history.spreads[0] == spread(embed(small(), samples.x), samples.y, 3)


def test_history_is_ready_for_json(trained: tuple[History, Spread]) -> None:
    history = trained[0]
    plain = json.loads(json.dumps(history.to_dict(), allow_nan=False))
    assert plain == history.to_dict()
    assert [r["task"] for r in plain["rounds"]] == ["single", "single", "multi", "multi"]
    assert set(plain["rounds"][0]["validation"]) == {"minority", "majority"}
    assert plain["spreads"][0]["within"] == history.spreads[0].within


def test_history_prints_a_line_per_round(trained: tuple[History, Spread]) -> None:
    history = trained[0]
    lines = str(history).splitlines()
    assert len(lines) == 1 + len(history.rounds) + len(history.mishaps) + 1
    for line, r in zip(lines[1:], history.rounds, strict=False):
        assert r.task in line
        assert str(r.presented) in line
        assert f"{r.classifier_loss:.4f}" in line
    assert lines[-1].endswith(f"{history.spreads[-1].ratio:.2f}")


@given(problems())
def test_spread_by_loops(problem: Problem) -> None:
    v, n = problem.v.double(), len(problem.counts)
    means = [v[problem.y == j].mean(0) for j in range(n)]
    centre = sum(means) / n
    within = [
        sum(float((u - means[j]).square().sum()) for u in v[problem.y == j]) / problem.counts[j]
        for j in range(n)
    ]
    between = [float((mean - centre).square().sum()) for mean in means]
    found = spread(v, problem.y, n)
    assert found.within == pytest.approx(sum(within) / n)
    assert found.between == pytest.approx(sum(between) / n)


def test_ratio_is_free_of_scale_and_place() -> None:
    samples = blobs()
    v = samples.x.double()
    ratio = spread(v, samples.y, 3).ratio
    assert spread(50 * v + 7, samples.y, 3).ratio == pytest.approx(ratio)


def test_every_class_counts_the_same() -> None:
    """Repeating the samples of one class changes nothing."""
    samples = blobs()
    often = torch.arange(len(samples)).repeat_interleave(1 + 9 * (samples.y == 2))
    found = spread(samples.x[often].double(), samples.y[often], 3)
    expected = spread(samples.x.double(), samples.y, 3)
    assert (found.within, found.between) == pytest.approx((expected.within, expected.between))


def test_classes_of_one_point_each_are_perfectly_distinct() -> None:
    v = torch.tensor([[0.0], [0.0], [1.0]])
    assert math.isinf(spread(v, torch.tensor([0, 0, 1]), 2).ratio)
