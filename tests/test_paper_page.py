"""The page of results: marks, notes, and numbers that are those of the trials."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from deep_oversampling import InputError
from deep_oversampling.metrics import AS_TRAINED
from deep_oversampling.paper import cells, facts, page
from deep_oversampling.paper.cells import CellMaker, beyond_noise, number
from deep_oversampling.paper.experiments import TABLES, Experiment
from deep_oversampling.paper.page import render
from deep_oversampling.paper.printed import Printed
from deep_oversampling.paper.store import Stored
from deep_oversampling.rivals.trials import Trial, append_trial
from paper_sets import made_up
from some_trials import SETTING, left_out, trial

WHERE = {"where": {"torch": "2", "hardware": "a machine"}, "date": "2026-01-02", "quick": False}


def told(text: str, doubt: str = "", method: str = "dos", **others: object) -> Printed:
    values = {"data": "mnist", "imbalance": "drop:4:0.99", "k": None, "classes": "minority"}
    values |= {"measure": "f1"} | others
    return Printed(**values, method=method, printed=float(text), text=text, doubt=doubt)


@pytest.fixture
def says(monkeypatch: pytest.MonkeyPatch):
    """Put numbers into the paper's mouth."""

    def put(*numbers: Printed, table: str = "reduction") -> None:
        monkeypatch.setattr(cells, "printed", lambda name: list(numbers) if name == table else [])
        monkeypatch.setattr(facts, "printed_datasets", list)

    put()
    return put


def stored(trials: dict[str, list[Trial]], **header: object) -> Stored:
    return Stored(trials, {name: [{**WHERE, **header}] for name in trials}, {})


def of(name: str, **values: float) -> dict[str, list[Trial]]:
    """Four trials of each method around its value."""
    spread = (0.0, 0.01, 0.03, 0.02)
    setting = SETTING
    return {
        name: [
            made_up(method.replace("_", "-"), seed, value + extra, setting=setting)
            for method, value in values.items()
            for seed, extra in enumerate(spread)
        ]
    }


P99 = "mnist-drop-4-0.99"


def row(text: str, *starts: str) -> list[str]:
    """The cells of the first line of a table that begins with these."""
    (line, *_) = [one for one in text.splitlines() if one.startswith("| " + " | ".join(starts))]
    return [cell.strip() for cell in line.strip("|").split("|")][len(starts) :]


# names from files


def test_a_name_that_is_no_text_is_spelt_out(tmp_path: Path) -> None:
    path = tmp_path / "trials" / f"{P99}.jsonl"
    append_trial(path, trial("cnn", setting=replace(SETTING, data="a\udcff")))
    page.write_page(tmp_path, tmp_path / "page.md")
    assert r"a\udcff" in (tmp_path / "page.md").read_text("utf-8")


def test_names_are_words() -> None:
    """Of a folder of results that a stranger has made."""
    name = "<script>alert(1)</script> | [x](javascript:y)\n# z"
    setting = replace(SETTING, data=name)
    trials = {P99: [trial("cnn", setting=setting), left_out("ros", setting=setting, reason=name)]}
    made = Stored(trials, {P99: [{**WHERE, "where": {name: name}, "date": name}]}, {})
    text = render(made)
    assert text.count(r"\<script\>alert(1)\</script\> \| \[x\](javascript:y) # z") >= 4
    assert not re.search(r"(?<!\\)<script|(?<!\\)\[x|^# z", text, re.M)


# a test as imbalanced as training


def test_methods_are_shown_as_on_a_test_that_is_as_imbalanced_as_training(says) -> None:
    known = of(P99, cnn=0.5, ros=0.6, dos=0.7)
    assert "as imbalanced as training" not in render(stored(known))
    trials = []
    for one in known[P99]:
        value = one.measures["f1"][0] + (0.01 * one.seed if one.method == "dos" else 0)
        trials.append(replace(one, measures=one.measures | {AS_TRAINED: (value,) * 10}))
    text = render(stored({P99: trials})).partition("as imbalanced as training")[2]
    assert "| method | MNIST .99 |" in text
    assert row(text, "**DOS**")[0] == ".730 ± .024 ★"
    assert row(text, "CNN")[0] == ".515 ± .013"
    assert "★" not in row(render(stored({P99: trials}, quick=True)), "**DOS**")[0]


# marks


@pytest.mark.parametrize(
    ("value", "text", "marked"),
    [(0.943, "0.95", True), (0.946, "0.95", False), (0.96, "0.95", False), (0.994, "1.0", False)],
)
def test_lower_is_lower_by_more_than_rounding(says, value: float, text: str, marked: bool) -> None:
    says(told(text))
    found = row(render(stored(of(P99, dos=value - 0.015))), ".99", "minority", "**DOS**")
    mean = f"{value:.3f}".removeprefix("0")
    assert found[2] == f"{mean} ± .013 {'▼ ' if marked else ''}({text.removeprefix('0')})"
    assert "▼" not in "".join(found[:2])  # precision and recall


def test_precision_and_recall_are_shown_but_not_compared(says) -> None:
    says(*(told("0.99", measure=measure) for measure in ("precision", "recall", "f1", "auprc")))
    found = row(render(stored(of(P99, dos=0.5))), ".99", "minority", "**DOS**")
    assert ["▼" in cell for cell in found] == [False, False, True, True]
    assert all("(.99)" in cell for cell in found)


def test_recall_is_compared_where_it_is_all_there_is(says) -> None:
    one = told("0.7735", data="mnist-back-rotation", imbalance="none", classes="all")
    says(Printed(**{**vars(one), "measure": "recall"}), table="baseline")
    text = render(stored(of("mnist-back-rotation-x10-none", dos=0.7, cnn=0.6)))
    assert "▼ (.7735)" in row(text, "0 %")[4]


def test_doubtful_numbers_are_marked_and_the_reason_given(says) -> None:
    says(told("0.66", "repeated: k = 10; contradicted: .71"), told("0.43", method="cnn"))
    text = render(stored(of(P99, dos=0.9, cnn=0.8)))
    assert row(text, ".99", "minority", "**DOS**")[2].endswith("(.66 ?)")
    assert row(text, ".99", "minority", "CNN")[2].endswith("(.43)")
    for reason in ("repeated: k = 10", "contradicted: .71"):
        assert f"- {reason}: MNIST, p = 0.99, DOS, minority: f1." in text


def test_what_is_lower_is_counted(says) -> None:
    says(told("0.95"), told("0.1", method="cnn"), told("0.2", method="cnn", measure="auprc"))
    text = render(stored(of(P99, dos=0.5, cnn=0.5)))
    assert "- ▼ 1 of 3 printed numbers." in text
    assert (
        "- 2 of 3 printed numbers are reached or exceeded; of the other 1, 0 are in doubt" in text
    )


def test_what_is_lower_than_a_number_in_doubt_is_counted_apart(says) -> None:
    says(told("0.95", "repeated: k = 10"), told("0.96", measure="auprc"))
    text = render(stored(of(P99, dos=0.5)))
    assert "- ▼ 2 of 2 printed numbers, 1 of them in doubt." in text


def test_doubts_about_one_place_are_listed_together(says) -> None:
    says(*(told("0.9", "exchanged", measure=measure) for measure in ("precision", "recall")))
    text = render(stored(of(P99, dos=0.5)))
    assert "- exchanged: MNIST, p = 0.99, DOS, minority: precision, recall." in text


@pytest.mark.parametrize(
    ("others", "marked"),
    [({"cnn": 0.5, "ros": 0.6}, True), ({"cnn": 0.5, "ros": 0.95}, False), ({"cnn": 0.5}, False)],
)
def test_beyond_noise_is_above_both(says, others: dict[str, float], marked: bool) -> None:
    trials = of(P99, dos=0.9)[P99]
    for method, value in others.items():
        trials += [made_up(method, s, value + 0.005 * s**2, setting=SETTING) for s in range(4)]
    found = row(render(stored({P99: trials})), ".99", "minority", "**DOS**")
    assert [("★" in cell) for cell in found] == [False, False, marked, marked]


def test_noise_is_that_of_the_pairs() -> None:
    def some(*values: float) -> list[Trial]:
        return [trial("x", seed, f1=(value,) * 3) for seed, value in enumerate(values)]

    dos = some(0.5, 0.7, 0.9, 0.6)
    assert beyond_noise(dos, [some(0.49, 0.68, 0.89, 0.59)], "f1", "minority")
    assert not beyond_noise(dos, [some(0.9, 0.49, 0.68, 0.4)], "f1", "minority")
    assert not beyond_noise(dos, [some(0.51, 0.72, 0.91, 0.61)], "f1", "minority")
    assert not beyond_noise(dos, [], "f1", "minority")


def test_printed_numbers_without_k_are_those_of_any(says) -> None:
    says(told("0.7", k=3), told("0.8", method="cnn"))
    maker = CellMaker("reduction")
    assert maker.find("mnist", "drop:4:0.99", "dos", 5, "minority", "f1") is None
    found = maker.find("mnist", "drop:4:0.99", "dos", 3, "minority", "f1")
    assert found is not None
    assert found.text == "0.7"
    assert maker.find("mnist", "drop:4:0.99", "cnn", 5, "minority", "f1") is not None


# what is on it


def test_every_table_of_the_paper_is_linked(says) -> None:
    text = render(stored({}))
    for table in TABLES.values():
        for caption in table.captions:
            (anchor,) = re.findall(rf"\[{re.escape(caption)}\]\(#(.*?)\)", text)
            assert re.sub(r"[^a-z0-9-]", "", caption.lower().replace(" ", "-")) == anchor
            assert f"\n## {caption}\n" in text


def test_cnn_and_random_over_sampling_are_always_beside_dos(says) -> None:
    text = render(stored({}))
    for part in text.split("\n## ")[1:]:
        if "**DOS**" in part and "Balanced Data" not in part:
            assert "CNN" in part
            assert "random over-sampling" in part
    assert "**Random over-sampling**: Every class is presented once" in text


def test_numbers_are_those_of_the_trials(says) -> None:
    text = render(stored(of(P99, cnn=0.5, ros=0.6, dos=0.7)))
    assert row(text, "Digits", ".99")[:3] == [".515 / .515", ".615 / .615", ".715 / .715"]
    assert row(text, ".99", "majority", "CNN") == [".515 ± .013"] * 4
    assert row(text, ".9", "majority", "CNN") == ["–"] * 4


def test_run_time_is_of_the_stored_seconds(says) -> None:
    says(told("1.11", imbalance="", classes="all", measure="ratio"), table="runtime")
    text = render(stored(of(P99, cnn=0.5, ros=0.6, dos=0.7)))
    part = text.partition("## Run-time")[2]
    assert row(part, "Digits")[:5] == ["1.00", "1.00", "2.00", "2.00 ± .00 (1.11)", "2.00 ± .00"]


def test_digits_are_those_of_trials_that_reduced_them(says) -> None:
    name = "mnist-back-rotation-drop-4-0.9"
    trials = [
        made_up("cnn", 0, 0.4, setting=SETTING, minority=(0, 1, 2, 3)),
        made_up("cnn", 1, 0.6, setting=SETTING, minority=(4, 5, 6, 7)),
    ]
    text = render(stored({name: trials}))
    assert row(text, "0*")[3:] == [".400", ".400", ".400", "1"]
    assert row(text, "4*")[3:] == [".600", ".600", ".600", "1"]
    assert row(text, "1")[3:] == [".600", ".600", ".600", "1"]  # not reduced there
    assert row(text, "8")[3:] == [".500 ± .141"] * 3 + ["2"]


def test_trials_places_versions_and_dates_are_told(says) -> None:
    text = render(stored(of(P99, dos=0.5)))
    for line in ("- trials of a cell: 4,", "- hardware: a machine", "- run 2026-01-02"):
        assert line in text


def test_what_is_left_out_or_not_run_is_told(says) -> None:
    trials = [left_out("smote", 0, "no library", setting=SETTING), *of(P99, dos=0.5)[P99]]
    trials += [trial("cnn", 0, setting=SETTING, lost="no number any more", f1=(0.5,) * 10)]
    text = render(stored({P99: trials}))
    assert f"- `{P99}`, smote: left out of 1 of 1 trials: no library" in text
    assert f"- `{P99}`, cnn: training lost in 1 of 1 trials: no number any more" in text
    assert "- `svhn-none`: not run yet." in text


def test_remarks_stand_on_the_page_of_the_trials_they_lie_beside(tmp_path: Path, says) -> None:
    remark = '"SVHN" = "Its digits are cut out of larger pictures."'
    for name, text in (("theirs", f"[balanced]\n{remark}\n"), ("ours", "")):
        (tmp_path / name).mkdir()
        if text:
            (tmp_path / name / "remarks.toml").write_text(text)
        page.write_page(tmp_path / name, tmp_path / name / "results.md")
    shown = "- **SVHN**: Its digits are cut out of larger pictures.\n"
    text = (tmp_path / "theirs" / "results.md").read_text()
    assert shown in text.partition("## Table 8")[2].partition("##")[0]
    assert shown not in (tmp_path / "ours" / "results.md").read_text()


@pytest.mark.parametrize(
    "text", ["[balanced", "[balance]", 'balanced = "why"', "[balanced]\na = 1"]
)
def test_remarks_that_are_none_are_named(text: str, tmp_path: Path) -> None:
    (tmp_path / "remarks.toml").write_text(text)
    with pytest.raises(InputError, match=r"remarks\.toml must be TOML with a section for each"):
        page.write_page(tmp_path, tmp_path / "results.md")


def test_a_quick_look_marks_nothing(says) -> None:
    says(told("0.95"))
    text = render(stored(of(P99, dos=0.5, cnn=0.3, ros=0.2), quick=True))
    top = text.partition("## Contents")[0]
    assert "A quick look, not a result" in top
    found = row(text, ".99", "minority", "**DOS**")
    assert found[2] == ".515 ± .013 (.95)"
    assert "reached or exceeded" not in text


def test_the_same_trials_in_another_order_are_the_same_page(says) -> None:
    trials = of(P99, cnn=0.5, ros=0.6, dos=0.7)
    trials[P99] += [left_out("smote", seed, f"reason {seed}") for seed in range(2)]
    trials[P99] += [left_out("ldam-drw", 0)]
    other = {P99: list(reversed(trials[P99]))}
    assert render(stored(trials)) == render(stored(other))


@pytest.mark.parametrize(("value", "text"), [(0.5, ".500"), (1.0, "1.000"), (0.0, ".000")])
def test_numbers_have_three_digits(value: float, text: str) -> None:
    assert number(value) == text


def test_links_lead_from_the_page_to_the_trials(tmp_path: Path, says) -> None:
    page.write_page(tmp_path / "results", tmp_path / "docs" / "results.md")
    assert (tmp_path / "docs" / "results.md").read_text().startswith("# Results")


def test_names_of_files_have_no_colons() -> None:
    assert ":" not in Experiment("svhn", "drop:4:0.9", ()).name
