"""Every number on the page, against slower or better-known ways to it."""

import numpy as np
import pytest
from sklearn.metrics import precision_recall_curve

from deep_oversampling.metrics import MEASURES, measure
from deep_oversampling.report.bootstrap import draw, group_mean, interval, resampled
from deep_oversampling.report.confusion import confusion, confusion_matrix
from deep_oversampling.report.counts import counts
from deep_oversampling.report.curves import average_curve, curve, curves, thin
from deep_oversampling.report.embedding import embedding
from deep_oversampling.report.reliability import (
    bins,
    calibration_error,
    scaled,
    tempered,
)
from deep_oversampling.report.rounds import rounds
from deep_oversampling.report.scores import score
from stories import some_history, some_probabilities, story


@pytest.mark.parametrize("ties", [False, True])
def test_bootstrap_equals_measures_of_copied_samples(ties: bool) -> None:
    made = story(3, 30)
    p = {m: np.round(one, 1) if ties else one for m, one in made.probabilities.items()}
    found = resampled(made.labels, p, resamples=20, seed=3)
    weights = draw(30, 20, np.random.default_rng(3)).astype(int)
    assert (weights.sum(0) == 30).all()
    for method, one in p.items():
        for b in range(20):
            rows = np.repeat(np.arange(30), weights[:, b])
            report = measure(one[rows], made.labels[rows])
            for name in MEASURES:
                expected = getattr(report, name)
                assert found[method][name][:, b] == pytest.approx(expected, nan_ok=True, abs=1e-6)


def test_bootstrap_in_parts_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    made = story(3, 30)
    whole = resampled(made.labels, made.probabilities, resamples=50)
    monkeypatch.setattr("deep_oversampling.report.bootstrap._AT_ONCE", 30 * 7)
    parts = resampled(made.labels, made.probabilities, resamples=50)
    for method in whole:
        for name in MEASURES:
            np.testing.assert_array_equal(whole[method][name], parts[method][name])


def test_auprc_gets_fewer_resamples_where_ranking_is_dear(monkeypatch: pytest.MonkeyPatch) -> None:
    made = story(3, 30)
    monkeypatch.setattr("deep_oversampling.report.bootstrap._RANKED", 30 * 3 * 2 * 150)
    found = resampled(made.labels, made.probabilities, resamples=400)["dos"]
    assert found["auprc"].shape == (3, 150)
    assert found["f1"].shape == (3, 400)


def test_resample_without_a_class_says_nothing_of_it() -> None:
    labels = np.array([0] * 30 + [1])
    p = np.eye(2, dtype=np.float32)[labels]
    f1 = resampled(labels, {"dos": p}, resamples=200)["dos"]["f1"]
    absent = np.isnan(f1[1])
    assert 0 < absent.sum() < 200
    assert (f1[1, ~absent] == 1).all()
    assert (group_mean(f1, np.array([True, True])) == 1).all()
    assert np.isnan(group_mean(f1, np.array([False, True]))).sum() == absent.sum()


def test_interval_covers_the_truth_about_95_times_of_100() -> None:
    generator, covered = np.random.default_rng(0), 0
    for seed in range(200):  # recall is a share, 0.7: the simplest measure with a known truth
        labels = np.zeros(120, np.int64)
        right = generator.random(120) < 0.7
        p = np.stack([right, ~right], 1).astype(np.float32)
        found = resampled(labels, {"dos": p}, resamples=300, seed=seed)["dos"]["recall"][0]
        low, high = interval(found)
        covered += low <= 0.7 <= high
    assert 0.90 <= covered / 200 <= 0.985


def test_interval_is_the_middle_95_percent() -> None:
    assert interval(np.arange(1001.0)) == (25, 975)
    assert interval(np.array([np.nan, 2.0])) == (2, 2)
    assert np.isnan(interval(np.array([np.nan]))).all()


def test_differences_are_paired() -> None:
    made = story(4, 200)
    same = story(4, 200, probabilities=dict.fromkeys(("plain", "dos"), made.probabilities["dos"]))
    found = score(same, resamples=50).group_difference("f1", np.ones(4, bool))
    assert (found.value, found.low, found.high) == (0, 0, 0)


def test_scores_are_those_of_measure() -> None:
    made = story(4, 200)
    scores = score(made, resamples=20)
    report = measure(made.probabilities["dos"], made.labels)
    assert scores.table()["auprc"]["dos"]["value"] == pytest.approx(report.auprc, abs=5e-5)
    rare = np.array([False, False, True, True])
    assert scores.group("dos", "f1", rare).value == pytest.approx(report.mean(rare)["f1"])


@pytest.mark.slow
def test_large_set_takes_seconds() -> None:
    generator = np.random.default_rng(0)
    labels = generator.integers(100, size=10_000)
    p = {m: some_probabilities(labels, 100, 1.5, generator) for m in ("plain", "dos")}
    found = resampled(labels, p)
    assert found["dos"]["auprc"].shape == (100, 1000)


@pytest.mark.parametrize("decimals", [1, 8])  # with ties and without
def test_curve_has_scikit_learns_points(decimals: int) -> None:
    generator = np.random.default_rng(1)
    hit = generator.random(80) < 0.3
    scores = np.round(hit * 0.4 + generator.random(80), decimals)
    precision, recall, _ = precision_recall_curve(hit, scores)
    found_recall, found_precision = curve(scores, hit)
    np.testing.assert_allclose(found_recall, recall[:-1][::-1])
    np.testing.assert_allclose(found_precision, precision[:-1][::-1])


def test_thinned_curve_keeps_ends_and_invents_nothing() -> None:
    generator = np.random.default_rng(1)
    hit = generator.random(5000) < 0.3
    whole = curve(generator.random(5000) + hit, hit)
    recall, precision = thin(*whole)
    assert len(recall) == 200
    assert (recall[0], recall[-1]) == (whole[0][0], 1)
    assert set(zip(recall, precision, strict=True)) <= set(zip(*whole, strict=True))
    assert (np.diff(recall) >= 0).all()


def test_average_curve_by_hand() -> None:
    one = np.array([0.5, 1.0]), np.array([1.0, 0.6])
    two = np.array([1.0]), np.array([0.4])
    recall, precision = average_curve([one, two])
    assert precision[recall <= 0.5] == pytest.approx(0.7)
    assert precision[recall > 0.5] == pytest.approx(0.5)


def test_average_curve_starts_at_the_first_hit() -> None:
    missed = curve(np.array([0.9, 0.8, 0.7]), np.array([False, True, True]))
    assert missed[1].tolist() == pytest.approx([0, 1 / 2, 2 / 3])
    recall, precision = average_curve([missed])
    assert precision[recall <= 0.5] == pytest.approx(1 / 2)
    assert precision[recall > 0.5] == pytest.approx(2 / 3)


def test_class_without_validation_samples_has_no_curve() -> None:
    made = story(3, 60)
    found = curves(story(3, 60, labels=np.where(made.labels == 2, 0, made.labels)))
    assert found["dos"]["classes"][2] is None
    assert found["dos"]["rare"] is None


def test_ece_by_hand() -> None:
    p = np.array([[0.9, 0.1], [0.9, 0.1], [0.4, 0.6], [0.3, 0.7]])
    labels = np.array([0, 1, 1, 1])
    # bins of a tenth: .9 twice, one right; .6 right; .7 right
    assert calibration_error(p, labels, 10) == pytest.approx(0.5 * 0.4 + 0.25 * 0.4 + 0.25 * 0.3)
    found = bins(p, labels, 10)
    assert found["confidence"] == pytest.approx([0.6, 0.7, 0.9])
    assert found["accuracy"] == [1, 1, 0.5]
    assert found["share"] == [0.25, 0.25, 0.5]


def test_certain_predictions_are_in_the_last_bin() -> None:
    assert calibration_error(np.eye(3), np.arange(3)) == 0


def test_temperature_is_the_optimum_and_undoes_scaling() -> None:
    generator = np.random.default_rng(0)
    true = generator.dirichlet(np.ones(4), size=4000)
    labels = np.array([generator.choice(4, p=row) for row in true])
    _, own = tempered(true, labels)
    assert own == pytest.approx((1, 1), abs=0.1)
    _, of_sharper = tempered(scaled(true, 0.25), labels)
    assert of_sharper == pytest.approx([4 * t for t in own], rel=1e-2)


def test_no_sample_is_scaled_by_a_temperature_that_saw_it() -> None:
    made = story(3, 41)
    p, labels = made.probabilities["dos"], made.labels
    before, _ = tempered(p, labels)
    changed = labels.copy()
    changed[0] = (changed[0] + 1) % 3
    after, _ = tempered(p, changed)
    np.testing.assert_array_equal(before[0], after[0])  # its own label does not matter
    assert (before != after).any()  # to the other half it does


def test_tempered_handles_zeros_and_one_sample() -> None:
    p = np.array([[1.0, 0.0]], np.float32)
    assert tempered(p, np.array([1]))[1] == (1, 1)
    certain = np.eye(2, dtype=np.float32)[[0, 1, 0, 1, 0, 1]]
    scaled_p, temperatures = tempered(certain, np.array([0, 1, 0, 1, 1, 0]))
    assert np.isfinite(scaled_p).all()
    assert all(0 < t < np.inf for t in temperatures)


def test_confusion_counts_rows_of_truth() -> None:
    matrix = confusion_matrix(np.array([0, 0, 1]), np.array([1, 0, 1]), 2)
    assert matrix.tolist() == [[1, 1], [0, 1]]
    made = story(3, 60)
    found = confusion(made)
    cells, times = (found["methods"]["dos"][name] for name in ("cells", "counts"))
    rebuilt = np.zeros(9, int)
    rebuilt[cells] = times
    predicted = made.probabilities["dos"].argmax(1)
    assert (rebuilt.reshape(3, 3) == confusion_matrix(made.labels, predicted, 3)).all()
    assert all(j != i for j, i in found["pairs"])


def test_counts_put_frequent_classes_first() -> None:
    made = story(3, 60, counts=np.array([5, 50, 9]))
    assert counts(made)["order"] == [1, 2, 0]


def test_embedding_keeps_rare_points_and_true_distances(monkeypatch: pytest.MonkeyPatch) -> None:
    made = story(4, 200)
    found = embedding(made)
    assert found is not None
    drawn = np.array(found["points"]).reshape(3, -1, 2)
    ratio = np.diff(drawn[0], axis=0)[:20] / np.diff(made.moments[0].points, axis=0)[:20]
    inside = (drawn[0] > 0).all(1) & (drawn[0] < [1200, 900]).all(1)
    kept = (inside[:-1] & inside[1:])[:20]
    big = np.abs(np.diff(made.moments[0].points, axis=0)[:20]) > 0.5
    assert ratio[kept[:, None] & big] == pytest.approx(ratio[kept[:, None] & big][0], rel=0.02)
    rare = np.isin(made.moment_labels, made.minority).sum()
    monkeypatch.setattr("deep_oversampling.report.embedding._POINTS", 3 * (rare + 5))
    fewer = embedding(made)
    assert fewer is not None
    assert len(fewer["labels"]) == rare + 5
    assert np.isin(fewer["labels"], made.minority).sum() == rare


def test_embedding_of_one_place_is_drawn() -> None:
    made = story(4, 200, moments=1)
    made.moments[0].points[:] = 3
    found = embedding(made)
    assert found is not None
    assert found["points"][0][:2] == [600, 450]


def test_rounds_stand_where_they_belong() -> None:
    charts = {one["title"]: one["lines"] for one in rounds(story(rounds=4))}
    assert charts["Classifier loss"][1]["x"] == list(range(1, 9))
    assert charts["Embedding loss"][0]["x"] == [5, 6, 7, 8]
    assert [line["method"] for line in charts["Embedding loss"]] == ["dos"]
    assert charts["Variance within classes"][0]["x"] == [4, 5, 6, 7, 8]
    assert charts["Class separation"][0]["y"][0] == pytest.approx(5 / 3)


def test_plan_that_favours_none_measures_all_classes() -> None:
    history = some_history("plain", 2)
    for one in history["rounds"]:
        del one["validation"]["minority"]
    made = story(histories={"plain": history, "dos": some_history("dos", 2)})
    lines = {one["title"]: one["lines"] for one in rounds(made)}["Validation F1"]
    assert [(line["method"], line["name"]) for line in lines] == [
        ("plain", "all"),
        ("dos", "rare"),
        ("dos", "frequent"),
    ]


def test_separation_of_collapsed_classes_is_a_gap() -> None:
    history = some_history("dos", 2)
    history["spreads"][0] = {"within": 0.0, "between": 1.0}
    history["spreads"][1] = {"within": None, "between": None}  # what was NaN, read again
    charts = {one["title"]: one["lines"] for one in rounds(story(histories={"dos": history}))}
    assert charts["Class separation"][0]["y"][:2] == [None, None]
