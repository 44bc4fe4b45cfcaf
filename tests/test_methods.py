"""Every method on a small problem: it trains, it can be repeated, and it does what it says."""

import math
from functools import cache

import numpy as np
import pytest
import torch

from contests import BATCH, ROUNDS, VECTORS, Trained, contest, trained
from deep_oversampling import Network, Plan, Report, Samples, fit
from deep_oversampling.losses import entropy
from deep_oversampling.metrics import MEASURES, measure
from deep_oversampling.rivals import (
    METHODS,
    PAPER,
    effective_number,
    focal,
    logit_adjusted,
    with_cosine_head,
)
from deep_oversampling.rivals import method as methods
from toy import blobs, small, train, weights

close = torch.testing.assert_close
TEST = blobs((10, 10, 10), seed=1)
M, ROWS = len(VECTORS), contest().presented
OF_PICTURES = ("dos-pieces", "mixup-pieces")  # vectors have no pieces
OF_VECTORS = {name: method for name, method in METHODS.items() if name not in OF_PICTURES}
TRAININGS = {method.training.name: method.name for method in reversed(OF_VECTORS.values())}.values()
every_method = pytest.mark.parametrize("name", OF_VECTORS)
every_training = pytest.mark.parametrize("name", TRAININGS)


@cache
def of(name: str) -> Trained:
    return trained(METHODS[name], contest())


def read(name: str, network: Network) -> Report:
    (report,) = METHODS[name].readout([methods.Trained(network, VECTORS, TEST)])
    return report


def test_the_plan_favours_the_rare_class() -> None:
    assert ROWS > M


def test_names_are_those_of_the_registry() -> None:
    assert all(name == method.name for name, method in METHODS.items())
    assert len({method.title for method in METHODS.values()}) == len(METHODS)
    assert set(PAPER) < set(METHODS)
    assert all(method.publication for method in METHODS.values())


@every_method
def test_report_is_in_range_and_weights_are_finite(name: str) -> None:
    report = read(name, of(name).network)
    assert of(name).weights.isfinite().all()
    for one in MEASURES:
        column = getattr(report, one)
        assert column.shape == (3,)
        assert ((column >= 0) & (column <= 1)).all()


@every_training
def test_same_seed_same_weights(name: str) -> None:
    again = trained(METHODS[name], contest())
    assert torch.equal(again.weights, of(name).weights)


@every_training
def test_other_seed_other_weights(name: str) -> None:
    other = trained(METHODS[name], contest(seed=1), seed=1)
    assert not torch.equal(other.weights, of(name).weights)


@every_training
def test_every_training_ends_elsewhere_than_all_others(name: str) -> None:
    for other in OF_VECTORS.values():
        if other.training.name == METHODS[name].training.name:
            continue
        ours, theirs = of(name).weights, of(other.name).weights
        assert len(ours) != len(theirs) or not torch.allclose(ours, theirs, atol=1e-5), other.name


def test_readouts_of_one_training_differ_in_what_they_read() -> None:
    for names in (("cnn", "cnn-cl"), ("dos", "dos-lr", "dos-knn")):
        reports = [read(n, of(names[0]).network) for n in names]
        assert len({METHODS[n].training.name for n in names}) == 1
        assert len({tuple(report.auprc) for report in reports}) == len(names)


def test_cnn_cl_takes_auprc_from_logistic_regression_and_the_rest_from_neighbours() -> None:
    network = of("dos").network
    mixed, knn, lr = (read(n, network) for n in ("cnn-cl", "dos-knn", "dos-lr"))
    np.testing.assert_array_equal(mixed.f1, knn.f1)
    np.testing.assert_array_equal(mixed.auprc, lr.auprc)


def test_adjusted_afterwards_is_what_logits_less_log_counts_say() -> None:
    network, counts = of("cnn").network, VECTORS.class_counts
    with torch.no_grad():
        adjusted = (network(TEST.x) - counts.log()).softmax(1)
    expected, found = measure(adjusted, TEST.y), read("cnn-adjusted", network)
    np.testing.assert_array_equal(found.recall, expected.recall)
    np.testing.assert_allclose(found.auprc, expected.auprc, rtol=1e-6)
    plain = read("cnn", network)
    assert found.recall[2] > plain.recall[2]  # the rare class
    assert METHODS["cnn-adjusted"].training is METHODS["cnn"].training


def test_adjusted_afterwards_has_the_margin_of_the_comparison() -> None:
    network, by = of("cnn").network, {}
    for tau in (0.0, 1.0, 2.0):
        (report,) = METHODS["cnn-adjusted"].readout([methods.Trained(network, VECTORS, TEST, tau)])
        by[tau] = report.recall
    np.testing.assert_array_equal(by[0.0], read("cnn", network).recall)
    np.testing.assert_array_equal(by[1.0], read("cnn-adjusted", network).recall)
    assert by[2.0][2] > by[0.0][2]  # the rare class


# what is presented

MIXING = ("mixup", "remix", "mixup-la")
LOSS_ONLY = ("drw", "cnn", "weights", "focal", "class-balanced", "ldam-drw", "logit-adjustment")
ROWS_OF_DOS = ("dos", "ros", "smote", "crt", "mixup-crt", "embedding-smote", "dos-la", "dos-ldam")
ONLY = {  # images of a round after the initial ones
    **dict.fromkeys((*LOSS_ONLY, *MIXING, "drs"), M),
    **dict.fromkeys(ROWS_OF_DOS, ROWS),
    "lmle": ROWS // 5 * 5,
    "tl-rs-csl": M + max(ROWS - M, M) // 3 * 3,
}


@every_training
def test_images_presented_are_those_documented(name: str) -> None:
    rounds = of(name).history.rounds
    assert sum(one.presented for one in rounds) == ROUNDS * (M + ONLY[name])
    for one, stage in zip(rounds, of(name).stages, strict=True):
        assert one.presented == len(stage.table) * stage.images_per_row
        assert one.task == stage.task


def labels(trained: Trained, stage: int) -> list[int]:
    """How often each class is presented in a stage."""
    table = trained.stages[stage].table
    batch = table[torch.arange(len(table))]
    return torch.bincount(batch.y, minlength=3).tolist()


def test_resampling_presents_the_rare_class_as_often_as_dos() -> None:
    plan, counts = contest().plan, VECTORS.class_counts
    for name in ("dos", "ros", "smote", "embedding-smote", "dos-la", "dos-ldam"):
        assert labels(of(name), 0) == counts.tolist()
        for stage in range(ROUNDS, 2 * ROUNDS):
            assert labels(of(name), stage) == (plan.r * counts).tolist()


def test_crt_presents_all_classes_alike() -> None:
    for stage in (2, 3):
        found = labels(of("crt"), stage)
        assert sum(found) == ROWS
        spread = 5 * math.sqrt(ROWS * 2 / 9)
        assert all(abs(number - ROWS / 3) < spread for number in found)
    drawn = [of("crt").stages[stage].table.index for stage in (2, 3)]
    assert not torch.equal(*drawn)  # anew in every round


@pytest.mark.parametrize("name", [*LOSS_ONLY, *MIXING])
def test_methods_of_loss_present_the_samples_as_they_are(name: str) -> None:
    for stage in range(2 * ROUNDS):
        assert labels(of(name), stage) == VECTORS.class_counts.tolist()


def test_mixing_draws_new_shares_in_every_round() -> None:
    shares = [stage.table.share for stage in of("mixup").stages]
    assert not any(torch.equal(a, b) for i, a in enumerate(shares) for b in shares[:i])


def test_groups_are_drawn_anew_in_every_round() -> None:
    for name, task in (("tl-rs-csl", "triplet"), ("lmle", "quintuplet")):
        first, second = (s.table.index for s in of(name).stages if s.task == task)
        assert not torch.equal(first, second)


def test_smote_of_embeddings_is_of_embeddings() -> None:
    made = of("embedding-smote")
    fixed = made.stages[-1].table[torch.arange(M)].x
    close(fixed, made.network.embed(VECTORS.x).detach())


# the same start


@pytest.mark.parametrize(
    "name", ["dos", "ros", "drs", "drw", "smote", "crt", "embedding-smote", "tl-rs-csl", "lmle"]
)
def test_initial_rounds_are_those_of_the_cnn(name: str) -> None:
    plain = of("cnn")
    for t in range(ROUNDS):
        assert torch.equal(of(name).before[t], plain.before[t])
    after = of(name).before[ROUNDS]
    if name in ("crt", "embedding-smote"):  # f alone: the head was started anew
        of_f = len(weights(small().embedder))
        assert torch.equal(after[:of_f], plain.before[ROUNDS][:of_f])
        assert not torch.equal(after[of_f:], plain.before[ROUNDS][of_f:])
        assert torch.equal(of(name).weights[:of_f], after[:of_f])  # and only g learns then
    else:
        assert torch.equal(after, plain.before[ROUNDS])


@pytest.mark.parametrize("name", ["weights", "focal", "class-balanced", "logit-adjustment"])
def test_losses_start_from_the_same_weights_and_act_at_once(name: str) -> None:
    plain = of("cnn")
    assert torch.equal(of(name).before[0], plain.before[0])
    assert not torch.equal(of(name).before[1], plain.before[1])


@pytest.mark.parametrize(
    ("ours", "theirs"), [("dos-la", "logit-adjustment"), ("dos-ldam", "ldam-drw")]
)
def test_dos_with_a_loss_starts_as_the_loss_alone(ours: str, theirs: str) -> None:
    for t in range(ROUNDS + 1):
        assert torch.equal(of(ours).before[t], of(theirs).before[t])
    assert not torch.equal(
        of(ours).before[ROUNDS], of("dos").before[ROUNDS][: len(of(ours).weights)]
    )


def test_ldam_defers_its_weights() -> None:
    first, *_, last = of("ldam-drw").stages
    network = with_cosine_head(small())
    assert len(first.objective(network, VECTORS)) == 2
    ell, nothing, weights = last.objective(network, VECTORS)
    close(ell, first.objective(network, VECTORS)[0])
    assert not nothing.any()
    close(weights, effective_number(VECTORS.class_counts)[VECTORS.y])
    assert float(weights[VECTORS.y == 2][0]) > 1 > float(weights[VECTORS.y == 0][0])


# reductions


def test_dos_without_neighbours_and_copies_is_the_cnn() -> None:
    plain = trained(METHODS["dos"], contest(plan=Plan.plain(3)))
    close(plain.weights, of("cnn").weights, rtol=1e-5, atol=1e-6)


def test_dos_without_neighbours_is_random_over_sampling() -> None:
    plan = contest().plan.without_neighbours()
    ours, theirs = trained(METHODS["dos"], contest(plan=plan)), of("ros")
    for multi, single in zip(ours.stages, theirs.stages, strict=True):
        rows = torch.arange(len(multi.table))
        assert torch.equal(multi.table[rows].x, single.table[rows].x)
    close(ours.weights, theirs.weights, rtol=1e-5, atol=1e-6)


def test_random_over_sampling_needs_no_embedding() -> None:
    """An embedder that has collapsed to a point: there are no neighbours to search for."""
    network = small()
    for parameter in network.embedder.parameters():
        parameter.data.zero_()
    assert trained(METHODS["ros"], contest(), network).weights.isfinite().all()
    assert {stage.task for stage in of("ros").stages} == {"single"}


@pytest.mark.parametrize("name", ["smote", "ros", "weights", "class-balanced", "logit-adjustment"])
def test_on_balanced_data_it_is_the_cnn(name: str) -> None:
    balanced = blobs((12, 12, 12))
    plan = Plan.uniform(3, k=2)
    ours, plain = (trained(METHODS[n], contest(balanced, plan)) for n in (name, "cnn"))
    close(ours.weights, plain.weights, rtol=1e-4, atol=1e-6)


def test_dos_is_fit() -> None:
    network = small()
    history = fit(
        network, VECTORS, contest().plan, rounds=ROUNDS, batch_size=BATCH, device="cpu", seed=0
    )
    assert torch.equal(weights(network), of("dos").weights)
    assert [r.presented for r in history.rounds] == [r.presented for r in of("dos").history.rounds]


@pytest.mark.parametrize(
    ("name", "loss"),
    [("dos-la", logit_adjusted(VECTORS.class_counts)), ("dos", entropy)],
    ids=["logit adjustment", "entropy"],
)
def test_loss_of_fit_is_the_loss_of_the_method(name: str, loss) -> None:
    network = small()
    train(network, VECTORS, contest().plan, rounds=ROUNDS, batch_size=BATCH, loss=loss)
    assert torch.equal(weights(network), of(name).weights)


@pytest.mark.parametrize("initial", [0, 1])
def test_loss_changes_both_tasks(initial: int) -> None:
    plain, other = small(), small()
    for network, loss in ((plain, entropy), (other, focal())):
        train(network, VECTORS, contest().plan, initial_rounds=initial, loss=loss)
    assert not torch.equal(weights(plain), weights(other))


# degenerate data

ALONE = blobs((20, 6, 1))


@pytest.mark.filterwarnings("ignore:class 2 has 1 sample")
@every_training
def test_a_class_with_one_sample_is_survived(name: str) -> None:
    plan = Plan.automatic(ALONE.class_counts, k=3).fitted_to(ALONE.class_counts)
    assert trained(METHODS[name], contest(ALONE, plan)).weights.isfinite().all()


@pytest.mark.parametrize("name", ["smote", "tl-rs-csl", "lmle", "dos"])
def test_as_few_samples_as_there_can_be(name: str) -> None:
    samples = Samples(torch.eye(2, 4), [0, 1])
    assert trained(METHODS[name], contest(samples, Plan.plain(2))).weights.isfinite().all()
