"""Trials in a file, and what is made of them."""

import json
import math
import re
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from deep_oversampling import InputError
from deep_oversampling.rivals.summary import Row, summarize
from deep_oversampling.rivals.trials import GROUPS, Trial, append_trial, read_trials
from some_trials import SETTING, left_out, trial


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs" / "one" / "trials.jsonl"


def written(path: Path, *trials: Trial) -> Path:
    for one in trials:
        append_trial(path, one)
    return path


SOME = [
    trial("cnn", 0),
    trial("dos", 0, f1=(0.1, None, 0.3)),  # no sample to test on
    left_out("smote", 0, 'a single one of "große\u2028Hunde"'),
    trial("dos", 1, setting=SETTING),
]


def test_what_is_written_is_read(path: Path) -> None:
    assert read_trials(written(path, *SOME)) == SOME
    assert read_trials(path, SETTING) == SOME
    lines = path.read_text().splitlines()
    assert len(lines) == len(SOME)
    assert all(json.loads(line)["setting"]["rounds"] == 3 for line in lines)


def test_no_file_is_no_trials(path: Path) -> None:
    assert read_trials(path) == []


@pytest.mark.parametrize("length", [1, 40, -2, -1])
def test_torn_last_line_is_passed_over_and_the_next_has_a_line_of_its_own(
    path: Path, length: int
) -> None:
    """Torn after so many characters; −1: only the end of the line is missing."""
    written(path, *SOME[:2])
    first, second = path.read_text().splitlines(keepends=True)
    path.write_text(first + second[:length])
    whole = length == -1
    assert read_trials(path) == SOME[: 2 if whole else 1]
    append_trial(path, SOME[3])
    assert read_trials(path) == [*SOME[: 2 if whole else 1], SOME[3]]


@pytest.mark.parametrize("line", ["", "{nonsense", '{"setting": {"da'])
def test_torn_lines_are_passed_over(path: Path, line: str) -> None:
    written(path, SOME[0])
    path.write_text(path.read_text() + line + "\n")
    assert read_trials(written(path, SOME[1])) == SOME[:2]


@pytest.mark.parametrize("line", ["{}", "[]", "3", "null", '{"setting": {}}'])
def test_lines_of_another_release_are_refused(path: Path, line: str) -> None:
    written(path, SOME[0])
    path.write_text(path.read_text() + line + "\n")
    with pytest.raises(InputError, match="as this release writes them, found in line 2"):
        read_trials(path)


def test_of_duplicates_the_first_counts(path: Path) -> None:
    first, second = trial("dos", 3), trial("dos", 3, f1=(0.0, 0.0, 0.0))
    assert read_trials(written(path, first, trial("cnn", 3), second)) == [first, trial("cnn", 3)]


OF_A_TRIAL = [field.name for field in fields(SETTING) if field.name != "rates"]


@pytest.mark.parametrize("field", OF_A_TRIAL)
def test_other_settings_are_refused_with_the_difference(path: Path, field: str) -> None:
    value = getattr(SETTING, field)
    changed = value + 1 if isinstance(value, int | float) else "mnist"
    other = replace(SETTING, **{field: changed})
    written(path, trial("dos"), trial("dos", seed=1, setting=other))
    found = f"{field} {getattr(other, field)!r} instead of {value!r} in line 2; choose another"
    with pytest.raises(InputError, match=re.escape(found)):
        read_trials(path, SETTING)
    with pytest.raises(InputError, match=re.escape(found)):  # the first line says which one it is
        read_trials(path)
    with pytest.raises(InputError, match=rf"{field} {re.escape(repr(value))} instead of .* line 1"):
        read_trials(path, other)


def test_all_differences_are_named(path: Path) -> None:
    written(path, trial())
    with pytest.raises(InputError, match="found k 5 instead of 3, rounds 3 instead of 9 in line 1"):
        read_trials(path, replace(SETTING, k=3, rounds=9))


def test_unreadable_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "folder").mkdir()
    for name in ("bytes", "folder"):
        with pytest.raises(InputError, match=f"{name} must be a readable file of trials"):
            read_trials(tmp_path / name)


def test_a_folder_that_cannot_be_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    below = tmp_path / "file" / "trials.jsonl"
    assert read_trials(below) == []
    with pytest.raises(InputError, match=r"must be a file that can be written to: .*\(--out\)"):
        append_trial(below, trial())


# a trial


def test_means_are_over_the_classes_of_a_group_that_have_a_value() -> None:
    one = trial(f1=(0.2, None, 0.9), minority=(1, 2))
    assert [one.mean("f1", group) for group in GROUPS] == pytest.approx([0.9, 0.2, 0.55])
    assert math.isnan(trial(f1=(0.2, 0.3, None)).mean("f1", "minority"))
    assert math.isnan(trial(minority=()).mean("f1", "minority"))
    assert math.isnan(left_out("dos").mean("f1", "all"))


# the summary


def table(*trials: Trial, **options: str) -> dict[str, Row]:
    return {row.method: row for row in summarize(trials, **options)}


def minority(method: str, values: list[float]) -> list[Trial]:
    return [trial(method, seed, f1=(0.1, 0.2, value)) for seed, value in enumerate(values)]


DOS, OTHER = [0.61, 0.72, 0.55, 0.80], [0.50, 0.70, 0.57, 0.61]


def test_cells_are_means_and_deviations_over_the_trials() -> None:
    rows = table(*minority("cnn", OTHER), *minority("dos", DOS))
    assert list(rows) == ["cnn", "dos"]
    cell = rows["cnn"].cells["minority"]["f1"]
    mean = sum(OTHER) / 4
    assert cell.mean == pytest.approx(mean)
    assert cell.sd == pytest.approx(math.sqrt(sum((v - mean) ** 2 for v in OTHER) / 3))
    assert rows["cnn"].cells["majority"]["auprc"].mean == pytest.approx(0.15)
    assert rows["cnn"].cells["all"]["recall"].mean == pytest.approx((0.3 + mean) / 3)
    assert rows["cnn"].trials == 4
    assert rows["cnn"].seconds == 1.5


def test_p_is_that_of_the_paired_t_test() -> None:
    row = table(*minority("cnn", OTHER), *minority("dos", DOS))["cnn"]
    difference = np.subtract(OTHER, DOS)
    t = difference.mean() / (difference.std(ddof=1) / math.sqrt(4))
    assert row.difference == pytest.approx(difference.mean())
    assert row.p == pytest.approx(2 * stats.t.sf(abs(t), df=3))
    assert row.p != pytest.approx(stats.ttest_ind(OTHER, DOS).pvalue, rel=0.01)


def test_reference_is_not_compared_with_itself() -> None:
    rows = table(*minority("cnn", OTHER), *minority("dos", DOS))
    assert math.isnan(rows["dos"].difference)
    assert math.isnan(rows["dos"].p)
    turned = table(*minority("cnn", OTHER), *minority("dos", DOS), reference="cnn")
    assert turned["dos"].difference == pytest.approx(-rows["cnn"].difference)
    assert turned["dos"].p == pytest.approx(rows["cnn"].p)


def test_group_is_what_is_compared() -> None:
    both = [trial("cnn", s, f1=(0.2 + s / 9, 0.4, 0.9)) for s in range(3)]
    both += [trial("dos", s, f1=(0.5, 0.4 + s / 7, 0.3)) for s in range(3)]
    expected = {"minority": 0.6, "majority": -0.15 + 1 / 18 - 1 / 14}
    for group, difference in expected.items():
        assert table(*both, group=group)["cnn"].difference == pytest.approx(difference)


def test_only_trials_that_both_have_are_compared() -> None:
    """Pairs go by seed, not by order; the cells are of all trials."""
    ours = minority("cnn", OTHER)
    row = table(*reversed(ours), *minority("dos", DOS)[1:3])["cnn"]
    assert row.difference == pytest.approx((0.70 - 0.72 + 0.57 - 0.55) / 2)
    assert row.p == pytest.approx(stats.ttest_rel([0.70, 0.57], [0.72, 0.55]).pvalue)
    assert row.trials == 4
    assert row.cells["minority"]["f1"].mean == pytest.approx(sum(OTHER) / 4)


@pytest.mark.parametrize("other", ["no such method", "another seed"])
def test_without_a_pair_nothing_is_compared(other: str) -> None:
    reference = [trial("dos", 9)] if other == "another seed" else []
    row = table(*minority("cnn", OTHER), *reference)["cnn"]
    assert math.isnan(row.difference)
    assert math.isnan(row.p)


def test_one_trial_has_a_difference_but_neither_deviation_nor_p() -> None:
    row = table(*minority("cnn", OTHER[:1]), *minority("dos", DOS[:1]))["cnn"]
    assert row.difference == pytest.approx(-0.11)
    assert math.isnan(row.p)
    assert math.isnan(row.cells["minority"]["f1"].sd)
    assert row.cells["minority"]["f1"].mean == pytest.approx(0.50)


@pytest.mark.parametrize("shift", [0.0, 0.1, -0.3])
def test_differences_that_are_all_equal_have_no_p(shift: float) -> None:
    """Also where they are equal but for rounding: 0.3 − 0.2 is not 0.4 − 0.3."""
    row = table(*minority("cnn", [v + shift for v in DOS]), *minority("dos", DOS))["cnn"]
    assert row.difference == pytest.approx(shift)
    assert math.isnan(row.p)


def test_methods_left_out_have_a_reason_and_no_numbers() -> None:
    row = table(left_out("smote", 0, "because"), left_out("smote", 1), trial("dos"))["smote"]
    assert (row.trials, row.left_out) == (0, "2 of 2 trials: for instance because")
    assert all(math.isnan(c.mean) for group in row.cells.values() for c in group.values())
    assert math.isnan(row.seconds)
    assert math.isnan(row.difference)
    assert table(trial("dos"))["dos"].left_out == ""


def test_a_method_left_out_once_is_measured_by_its_other_trials() -> None:
    ours = [left_out("smote", 0), *minority("smote", OTHER)[1:]]
    row = table(*ours, *minority("dos", DOS))["smote"]
    assert row.trials == 3
    assert row.left_out == "1 of 4 trials: too few samples"
    assert row.p == pytest.approx(stats.ttest_rel(OTHER[1:], DOS[1:]).pvalue)


def test_trials_without_a_value_are_no_part_of_means_and_comparison() -> None:
    ours = [*minority("cnn", OTHER), trial("cnn", 4, f1=(0.1, 0.2, None))]
    row = table(*ours, *minority("dos", [*DOS, 0.9]))["cnn"]
    alone = table(*minority("cnn", OTHER), *minority("dos", DOS))["cnn"]
    assert row.trials == 5
    assert row.difference == pytest.approx(alone.difference)
    assert row.p == pytest.approx(alone.p)
    assert row.cells["minority"]["f1"] == alone.cells["minority"]["f1"]


def test_no_trials_are_no_rows() -> None:
    assert summarize([]) == []


def test_trainings_that_were_lost_count_and_are_counted() -> None:
    ours = [trial("cnn", 0, lost="NaN"), trial("cnn", 1)]
    row = table(*ours, trial("dos", 0), trial("dos", 1))["cnn"]
    assert row.trials == 2
    assert row.lost == "1 of 2 trials: NaN"
    assert row.left_out == ""


def test_the_first_trials_had_no_fingerprint(path: Path) -> None:
    """And lines of before there were schedules: what came later has a value that stands for it."""
    written(path, trial())
    line = json.loads(path.read_text())
    for name in ("contents", "plan", "schedule", "rates"):
        line["setting"].pop(name)
    path.write_text(json.dumps(line) + "\n")
    (found,) = read_trials(path)
    assert found == trial(setting=replace(SETTING, contents=""))
    with pytest.raises(InputError, match="contents '' instead of 'c0ffee'"):
        read_trials(path, SETTING)


@pytest.mark.parametrize(
    ("name", "value"),
    [("seed", "0"), ("samples", [1, None]), ("measures", {"f1": ["0.5"]}), ("seconds", "1")],
)
def test_values_of_another_type_are_refused(path: Path, name: str, value: object) -> None:
    written(path, trial())
    path.write_text(json.dumps({**json.loads(path.read_text()), name: value}) + "\n")
    with pytest.raises(InputError, match="in line 1: a value is of another type"):
        read_trials(path)
