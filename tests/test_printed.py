"""The paper's printed numbers are all there, can be looked up, and the doubtful ones say so."""

from collections import defaultdict
from collections.abc import Iterator
from itertools import permutations

import pytest

from deep_oversampling.data.imbalance import parse_protocol
from deep_oversampling.data.official.catalogue import look_up
from deep_oversampling.errors import InputError
from deep_oversampling.metrics import MEASURES
from deep_oversampling.paper.printed import TABLES, Printed, datasets, printed
from deep_oversampling.rivals import METHODS

Where = tuple[str, str, str, int | None, str]  # data, imbalance, method, k, classes
Block = dict[str, Printed]  # measure -> number

every_table = pytest.mark.parametrize("table", TABLES)


def key(one: Printed) -> Where:
    return one.data, one.imbalance, one.method, one.k, one.classes


def blocks(table: str) -> dict[Where, Block]:
    found: dict[Where, Block] = defaultdict(dict)
    for one in printed(table):
        found[key(one)][one.measure] = one
    return found


@pytest.mark.parametrize(
    ("table", "numbers"),
    [
        ("classwise", 2 * 2 * 10 * 3),  # classifiers, (im)balanced, digits, measures
        ("summary", 2 * 3 * 3),  # classifiers, groups, measures
        ("baseline", 3 * 5),  # reductions, methods
        ("reduction", 3 * 3 * 2 * 3 * 4),  # methods, p, groups, sets, measures
        ("over-k", (2 + 3) * 2 * 3 * 4),  # CNN and CNN-CL, three k; groups, sets, measures
        ("balanced", (2 + 3) * 3 * 2),  # the same; sets, F1 and AUPRC
        ("runtime", 3),  # sets
    ],
)
def test_every_number_of_a_table_is_there(table: str, numbers: int) -> None:
    assert len(printed(table)) == numbers


@every_table
def test_no_number_is_there_twice(table: str) -> None:
    keys = [(*key(one), one.measure) for one in printed(table)]
    assert len(set(keys)) == len(keys)


@every_table
def test_numbers_are_found_by_our_names(table: str) -> None:
    for one in printed(table):
        assert look_up(one.data).name == one.data
        assert one.method in METHODS
        assert one.classes in {"minority", "majority", "all"} or one.classes[0].isdigit()
        if table == "runtime":
            assert one.measure == "ratio"
            assert one.imbalance == ""
        else:
            assert one.measure in MEASURES
            assert str(parse_protocol(one.imbalance)) == one.imbalance


@every_table
def test_numbers_are_shares(table: str) -> None:
    for one in printed(table):
        assert float(one.text) == one.printed
        assert 0 <= one.printed <= 1 or (table == "runtime" and 1 < one.printed < 2)


@pytest.mark.parametrize(
    ("table", "where", "text"),
    [
        ("classwise", ("mnist-back-rotation", "none", "cnn", None, "4", "recall"), "0.83"),
        ("classwise", ("mnist-back-rotation", "drop:4:0.9", "cnn", None, "4*", "f1"), "0.16"),
        (
            "classwise",
            ("mnist-back-rotation", "drop:4:0.9", "cnn", None, "4*", "precision"),
            "0.090",
        ),
        ("classwise", ("mnist-back-rotation", "drop:4:0.9", "cnn-cl", None, "9", "f1"), "0.61"),
        ("summary", ("mnist-back-rotation", "none", "cnn-cl", None, "all", "f1"), "0.75"),
        ("summary", ("mnist-back-rotation", "drop:4:0.9", "cnn", None, "minority", "f1"), "0.43"),
        ("baseline", ("mnist-back-rotation", "none", "dos", None, "all", "recall"), "0.7735"),
        (
            "baseline",
            ("mnist-back-rotation", "gaussian:0.4", "lmle", None, "all", "recall"),
            "0.7013",
        ),
        ("reduction", ("svhn", "drop:4:0.95", "cnn-cl", None, "minority", "f1"), "0.069"),
        ("reduction", ("mnist", "drop:4:0.99", "dos", 5, "majority", "auprc"), "1.0"),
        ("over-k", ("svhn", "drop:4:0.99", "dos", 3, "minority", "auprc"), "0.83"),
        ("balanced", ("stl10", "none", "dos", 3, "all", "auprc"), "0.41"),
        ("runtime", ("svhn", "", "dos", None, "all", "ratio"), "1.32"),
    ],
)
def test_numbers_read_by_hand(table: str, where: tuple[object, ...], text: str) -> None:
    assert [one.text for one in printed(table) if (*key(one), one.measure) == where] == [text]


def test_reduced_digits_have_a_star() -> None:
    stars = {
        (one.imbalance, one.classes) for one in printed("classwise") if one.classes.endswith("*")
    }
    assert stars == {("drop:4:0.9", f"{digit}*") for digit in (0, 4, 5, 6)}


def texts(block: Block) -> dict[str, str]:
    return {measure: one.text for measure, one in block.items()}


def repeated() -> Iterator[tuple[str, Block]]:
    """Blocks of four that another setting of the same method has too."""
    found = [
        (table, where, block)
        for table in ("reduction", "over-k")
        for where, block in blocks(table).items()
    ]
    for (table, here, block), (_, there, other) in permutations(found, 2):
        if here != there and here[2] == there[2] and texts(block) == texts(other):
            yield table, block


def test_repeated_blocks_are_doubted() -> None:
    found = list(repeated())
    assert {table for table, _ in found} == {"reduction", "over-k"}
    for _, block in found:
        assert set(block) == set(MEASURES)
        assert all("repeated: " in one.doubt for one in block.values())


def test_the_same_experiment_in_two_tables_is_no_repetition() -> None:
    here, there = (
        blocks(table)["svhn", "drop:4:0.99", "cnn", None, "majority"]
        for table in ("reduction", "over-k")
    )
    assert texts(here) == texts(there)
    assert not any(one.doubt for one in (*here.values(), *there.values()))


def test_two_numbers_for_one_experiment_are_doubted() -> None:
    first, second = (
        {(*key(one), one.measure): one for one in printed(table)}
        for table in ("reduction", "over-k")
    )
    differ = [
        where for where in first.keys() & second.keys() if first[where].text != second[where].text
    ]
    assert differ
    for where in differ:
        assert f"contradicted: {second[where].text} in over-k" in first[where].doubt
        assert f"contradicted: {first[where].text} in reduction" in second[where].doubt


def least_predictions(group: Block) -> float:
    """A bound on a group's average of recall / precision, for any numbers that round to these."""
    recall = group["recall"].printed - 0.5 * 10 ** -(len(group["recall"].text) - 2)
    precision = group["precision"].printed + 0.5 * 10 ** -(len(group["precision"].text) - 2)
    return max(recall, recall**2 / precision)


@pytest.mark.parametrize("table", ["summary", "reduction", "over-k"])
def test_more_predictions_than_samples_are_doubted(table: str) -> None:
    """A class of m samples is predicted m · recall / precision times, all together once each."""
    groups = blocks(table)
    impossible = 0
    for setting, minority in groups.items():
        if setting[-1] != "minority":
            continue
        majority = groups[*setting[:-1], "majority"]
        smallest = 1595 / 26032 if setting[0] == "svhn" else 0.1  # share of a class in the test set
        if smallest * (4 * least_predictions(minority) + 6 * least_predictions(majority)) > 1:
            impossible += 1
            assert "exchanged" in minority["precision"].doubt
            assert "exchanged" in minority["recall"].doubt
    assert impossible


def test_digits_fit_the_test_set_only_when_exchanged() -> None:
    digits = [
        block
        for (_, imbalance, method, *_), block in blocks("classwise").items()
        if (imbalance, method) == ("drop:4:0.9", "cnn")
    ]
    ratios = [block["recall"].printed / block["precision"].printed for block in digits]
    assert sum(ratios) / 10 > 3
    assert sum(1 / ratio for ratio in ratios) / 10 == pytest.approx(1, abs=0.02)
    assert all("exchanged" in block[m].doubt for block in digits for m in ("precision", "recall"))


@pytest.mark.parametrize("table", ["classwise", "summary", "reduction", "over-k"])
def test_no_average_f1_is_above_the_f1_of_the_averages(table: str) -> None:
    for block in blocks(table).values():
        precision, recall = (block[m].printed + 0.005 for m in ("precision", "recall"))
        assert block["f1"].printed - 0.005 <= 2 * precision * recall / (precision + recall)


def test_sets_and_networks() -> None:
    rows = {row["data"]: row for row in datasets()}
    assert list(rows) == ["mnist", "mnist-back-rotation", "svhn", "cifar10", "stl10"]
    assert rows["svhn"]["training"] == "73257"
    assert rows["stl10"]["layers"] == "C20-C50-F500-F120"
    assert (rows["mnist-back-rotation"]["batch_size"], rows["cifar10"]["rounds"]) == ("40", "4")
    assert rows["mnist"]["doubt"]


def test_unknown_table_is_named_with_those_there_are() -> None:
    with pytest.raises(InputError, match=r"must be one of classwise, .*, runtime, found 'table 7'"):
        printed("table 7")
