"""The paper's tables as data: nothing is missing, and what is shared is shared."""

import pytest

from deep_oversampling.data import parse_protocol
from deep_oversampling.models import lenet
from deep_oversampling.paper.experiments import TABLES, Experiment
from deep_oversampling.paper.settings import SETS
from deep_oversampling.rivals import METHODS
from paper_sets import SHAPES

EVERY = [one for table in TABLES.values() for one in table.experiments]


def needed(table: str) -> set[tuple[str, str, str, int]]:
    return {
        (one.data, one.imbalance, method, one.k)
        for one in TABLES[table].experiments
        for method in one.methods
    }


def test_every_table_of_the_paper_is_there() -> None:
    captions = [caption for table in TABLES.values() for caption in table.captions]
    assert [text.partition(":")[0] for text in captions[:-1]] == [f"Table {i}" for i in range(1, 9)]
    assert captions[-1].startswith("Run-time analysis")
    assert list(TABLES) == [
        "classwise",
        "datasets",
        "baseline",
        "reduction",
        "over-k",
        "balanced",
        "runtime",
    ]


@pytest.mark.parametrize(
    ("name", "layers", "batch_size", "rounds"),
    [
        ("mnist", "C6-C16-F400-F120", 60, 3),
        ("mnist-back-rotation", "C6-C16-F400-F120", 40, 5),
        ("svhn", "C6-C16-F400-F120", 60, 3),
        ("cifar10", "C20-C50-F500-F120", 50, 4),
        ("stl10", "C20-C50-F500-F120", 50, 5),
    ],
)
def test_settings_are_the_printed_ones(
    name: str, layers: str, batch_size: int, rounds: int
) -> None:
    used = SETS[name]
    assert (used.layers, used.batch_size, used.rounds) == (layers, batch_size, rounds)
    assert lenet(SHAPES[name], layers=used.layers) is not None  # such images fit


def test_settings_are_of_five_sets() -> None:
    assert list(SETS) == list(SHAPES)


SETS_OF_TWO = ("mnist", "mnist-back-rotation", "svhn")


def test_reduction_has_every_printed_cell_and_todays_rivals() -> None:
    methods = ("cnn", "cnn-cl", "dos", "ros", "smote", "logit-adjustment", "ldam-drw", "dos-la")
    assert needed("reduction") == {
        (data, f"drop:4:{p}", method, 5)
        for data in SETS_OF_TWO
        for p in ("0.9", "0.95", "0.99")
        for method in methods
    }


def test_over_k_and_balanced_have_every_k() -> None:
    for table, sets, imbalance, others in (
        ("over-k", SETS_OF_TWO, "drop:4:0.99", ("cnn", "cnn-cl", "ros")),
        ("balanced", ("svhn", "cifar10", "stl10"), "none", ("cnn", "cnn-cl")),
    ):
        expected = {(data, imbalance, "dos", k) for data in sets for k in (3, 5, 10)}
        expected |= {(data, imbalance, other, 5) for data in sets for other in others}
        assert needed(table) == expected


def test_baseline_has_every_printed_column_and_the_cnn() -> None:
    for one in TABLES["baseline"].experiments:
        assert {"tl-rs-csl", "lmle", "dos", "dos-lr", "dos-knn", "cnn"} <= set(one.methods)
        assert (one.data, one.copies) == ("mnist-back-rotation", 10)
    reductions = [one.imbalance for one in TABLES["baseline"].experiments]
    assert reductions == ["none", "gaussian:0.2", "gaussian:0.4"]


def test_classwise_is_balanced_and_reduced_by_nine_tenths() -> None:
    assert needed("classwise") == {
        ("mnist-back-rotation", imbalance, method, 5)
        for imbalance in ("none", "drop:4:0.9")
        for method in ("cnn", "cnn-cl")
    }


def test_run_time_needs_nothing_of_its_own() -> None:
    assert needed("runtime") <= needed("reduction")


@pytest.mark.parametrize("one", EVERY, ids=lambda one: one.name)
def test_experiments_can_be_run(one: Experiment) -> None:
    assert one.data in SETS
    assert set(one.methods) <= set(METHODS)
    assert str(parse_protocol(one.imbalance)) == one.imbalance
    assert (one.imbalance == "none") == (one.plan == "uniform")


def test_one_name_is_one_setting() -> None:
    found: dict[str, tuple[object, ...]] = {}
    for one in EVERY:
        setting = (one.data, one.imbalance, one.k, one.plan, one.copies)
        assert found.setdefault(one.name, setting) == setting
    assert len(set(found.values())) == len(found)
