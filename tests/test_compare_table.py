"""The table of ``dos compare``: what is marked, what is left away, and that nothing is cut."""

import re
from collections.abc import Sequence

import pytest

from deep_oversampling.cli.compare_table import print_table
from deep_oversampling.metrics import AS_TRAINED
from deep_oversampling.rivals import METHODS
from deep_oversampling.rivals.summary import TEST, places, summarize
from deep_oversampling.rivals.trials import Trial
from some_trials import left_out, trial

H200 = {"hardware": "NVIDIA H200", "torch": "2"}
CPU = {"hardware": "x86_64", "torch": "2"}


@pytest.fixture
def printed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    def text(trials: Sequence[Trial], columns: int = 80, group: str = "minority") -> str:
        monkeypatch.setenv("COLUMNS", str(columns))
        print_table(summarize(trials, group=group), list(trials), group, "Digits, drop:4:0.9")
        return capsys.readouterr().out

    return text


@pytest.fixture
def bold(printed, monkeypatch: pytest.MonkeyPatch):
    def cells(trials: Sequence[Trial]) -> dict[str, list[str]]:
        """What is bold in the row of each method."""
        monkeypatch.setenv("FORCE_COLOR", "1")
        monkeypatch.setenv("TERM", "xterm")
        body = printed(trials).partition("\n\n")[0].rpartition("─")[2]
        rows = body.strip().splitlines()
        return {row.split()[0]: re.findall(r"\x1b\[1m(\S+)", row) for row in rows}

    return cells


def of(method: str, values: Sequence[float], **others: object) -> list[Trial]:
    """A trial for every value, the F1 of all classes."""
    return [trial(method, s, f1=(v, v, v), **others) for s, v in enumerate(values)]


# marks


def test_the_best_mean_is_bold(bold) -> None:
    assert bold([*of("cnn", [0.2, 0.3]), *of("dos", [0.5, 0.6])]) == {
        "CNN": [],
        "DOS": [".550", ".550", ".550"],
    }


def test_only_a_method_with_all_trials_can_be_the_best(bold) -> None:
    some = [*of("smote", [0.9]), left_out("smote", 1)]
    found = bold([*of("cnn", [0.2, 0.3]), *some, *of("dos", [0.5, 0.6])])
    assert found == {"CNN": [], "SMOTE": [], "DOS": [".550"] * 3}


def test_where_no_method_has_all_trials_none_is_the_best(bold) -> None:
    trials = [trial("cnn", 0), left_out("cnn", 1), left_out("dos", 0), trial("dos", 1)]
    assert bold(trials) == {"CNN": [], "DOS": []}


def test_a_method_without_any_trial_has_dashes(printed) -> None:
    table = printed([*of("cnn", [0.2, 0.3]), left_out("dos", 0), left_out("dos", 1)])
    (line,) = (line for line in table.splitlines() if line.startswith("DOS "))
    assert line.split() == ["DOS", "–", "–", "–"]


def test_differences_beyond_noise_have_a_star(printed) -> None:
    values = {"cnn": (0.2, 0.21, 0.22), "ros": (0.9, 0.1, 0.5), "dos": (0.5, 0.52, 0.51)}
    lines = printed([t for name in values for t in of(name, values[name])]).splitlines()
    stars = [line.split()[0] for line in lines if line.rstrip().endswith("*")]
    assert stars == ["CNN"]
    assert any(line.startswith("CNN") and "-.300" in line for line in lines)


def test_one_trial_has_no_deviation(printed) -> None:
    table = printed([*of("cnn", [0.2]), *of("dos", [0.5])])
    assert "±" not in table
    assert "Digits, drop:4:0.9: 1 trial\n" in re.sub(" +\n", "\n", table)


# the comparison with DOS


def test_with_dos_there_are_differences_and_what_they_mean(printed) -> None:
    table = printed([*of("cnn", [0.2, 0.3]), *of("dos", [0.5, 0.7])])
    assert "− DOS      p" in table
    assert "− DOS: difference of minority F1; * where p < 0.05" in table
    assert f"p: {TEST}" in table


@pytest.mark.parametrize("names", [("cnn", "ros"), ("dos",), ("dos-lr", "cnn")], ids=str)
@pytest.mark.parametrize("group", ["minority", "all"])
def test_without_dos_or_with_it_alone_there_are_none(
    printed, names: tuple[str, ...], group: str
) -> None:
    table = printed([t for name in names for t in of(name, [0.5, 0.7])], group=group)
    assert re.search(r"AUPRC *\n", table)  # the last column
    assert "− DOS" not in table
    assert table.endswith(".141 \n")  # no legend, no empty line


# width

REASON = (
    "SMOTE needs imbalanced-learn, found that it is not installed; pip install "
    "'deep-oversampling[rivals]'"
)
BROKEN = [
    *of("cnn", [0.2, 0.3], lost=REASON),
    *[left_out("smote", s, REASON) for s in range(2)],
    *of("dos", [0.5, 0.7], where=H200),
]


@pytest.mark.parametrize("columns", [40, 60, 80, 120])
def test_reasons_are_wrapped_with_an_indent(printed, columns: int) -> None:
    _, _, below = printed(BROKEN, columns).partition("\n\n")
    lines = below.splitlines()
    assert max(map(len, lines)) <= columns
    whole = below.replace("\n  ", " ")
    assert f"smote: left out of 2 of 2 trials: {REASON}\n" in whole
    assert f"cnn: lost in 2 of 2 trials: {REASON}\n" in whole
    assert any(line.startswith("  ") for line in lines)


def test_a_reason_of_wide_letters_is_wrapped_by_its_width(printed) -> None:
    reason = " ".join(["貓貓貓貓"] * 12)
    _, _, below = printed([left_out("cnn", 0, reason)], 40).partition("\n\n")
    assert max(len(line) + line.count("貓") for line in below.splitlines()) <= 40
    assert below.count("貓") == 48


@pytest.mark.parametrize("columns", [1, 40, 60, 80])
def test_no_number_is_cut_in_a_narrow_terminal(printed, columns: int) -> None:
    trials = [t for name in METHODS for t in of(name, [0.0, 1.0])]
    wide, narrow = (printed(trials, width).partition("\n\n")[0] for width in (200, columns))
    assert narrow.replace("─", "").split() == wide.replace("─", "").split()
    assert "…" not in narrow
    assert narrow.count(".500 ± .707") == 3 * len(METHODS)
    assert max(map(len, narrow.splitlines())) <= 80
    for method in METHODS.values():
        assert method.title in narrow


# where trials were run


def test_trials_of_one_place_say_nothing(printed) -> None:
    trials = [*of("cnn", [0.5, 0.6], where=CPU), *of("dos", [0.5, 0.7], where=dict(CPU))]
    assert places(trials) == {}
    assert "places" not in printed(trials)


def test_trials_of_several_places_say_what_differs(printed) -> None:
    trials = [*of("cnn", [0.5, 0.6], where=CPU), *of("dos", [0.5, 0.7], where=H200)]
    assert places(trials) == {"hardware": ["x86_64", "NVIDIA H200"]}
    table = printed(trials)
    assert "trials were run in different places: hardware x86_64, NVIDIA H200\n" in table
    newer = [*trials, trial("ros", where=H200 | {"torch": "3", "python": "3.14"})]
    assert places(newer) == {
        "hardware": ["x86_64", "NVIDIA H200"],
        "torch": ["2", "3"],
        "python": ["unknown", "3.14"],
    }
    assert "H200; torch 2, 3; python unknown, 3.14" in printed(newer, 200)


def test_a_trial_that_was_left_out_was_run_nowhere() -> None:
    trials = [*of("cnn", [0.5], where=CPU), trial("dos", where=H200, left_out="out of memory")]
    assert places(trials) == {}


def test_a_test_as_imbalanced_as_training_has_a_column_where_it_differs(printed) -> None:
    both = {"f1": (0.5, 0.5, 0.5), "auprc": (0.5, 0.5, 0.5), AS_TRAINED: (0.8, 0.8, 0.8)}
    text = printed([trial("cnn", measures=both), trial("dos", measures=both)])
    assert "F1 as" in text.splitlines()[1]
    assert "trained" in text.splitlines()[2]
    assert "F1 as trained: of all classes, were they as frequent in the test" in text
    assert text.count(".800") == 2
    both[AS_TRAINED] = (0.5, 0.504, 0.5)
    assert "trained" not in printed([trial("cnn", measures=both), trial("dos", measures=both)])
