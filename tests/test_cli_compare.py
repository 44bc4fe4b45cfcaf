"""``dos compare``, as a user types it."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import commands
from commands import called
from deep_oversampling.cli.compare import _chosen
from deep_oversampling.data import load
from deep_oversampling.metrics import AS_TRAINED, MEASURES
from deep_oversampling.rivals import METHODS, PAPER, compare
from deep_oversampling.rivals.summary import TEST
from deep_oversampling.rivals.trials import Setting, append_trial, read_trials
from picture_files import folder_of
from some_trials import left_out, trial

DIGITS = ("--data", "digits", "--imbalance", "drop:4:0.9", "--rounds", "1")
QUICK = (*DIGITS, "--trials", "2", "--methods", "cnn,ros,dos")


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("DOS_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)


def run(*arguments: str | Path, code: int = 0) -> str:
    result = called("compare", *arguments)
    assert result.exit_code == code, result.output
    return result.stdout


def refused(*arguments: str | Path) -> str:
    return commands.refused("compare", *arguments)


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Method and seed of every trial that is run; they are run as ever."""
    done: list[tuple[str, int]] = []
    run_trials = compare.run_trials

    def watched(splits, setting, methods, seeds, **options):
        for one in run_trials(splits, setting, methods, seeds, **options):
            done.append((one.method, one.seed))
            yield one

    monkeypatch.setattr(compare, "run_trials", watched)
    return done


@pytest.fixture
def untrained(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trials as wide as they can be, at once: all is 1, or 0 in turn."""

    def made_up(splits, setting, methods, seeds, **options):
        for place, method in enumerate(methods):
            for seed in seeds:
                value = float((seed + place) % 2)
                yield trial(method.name, seed, f1=(value, value, value))

    monkeypatch.setattr(compare, "run_trials", made_up)


def test_table_has_every_method_and_the_test(trained: list[tuple[str, int]]) -> None:
    table = run(*QUICK)
    for text in ("CNN", "random over-sampling", "DOS", "minority", "AUPRC", TEST, "2 trials"):
        assert text in table
    assert "Digits, drop:4:0.9, T = 1" in table
    assert max(map(len, table.splitlines())) <= 80
    assert sorted(trained) == [(m, s) for m in ("cnn", "dos", "ros") for s in (0, 1)]


def test_json_holds_setting_methods_and_trials_and_the_table_is_made_of_them() -> None:
    text = run(*QUICK, "--json", "--out", "runs")
    found = json.loads(text, parse_constant=pytest.fail)
    assert found["setting"]["imbalance"] == "drop:4:0.9"
    assert found["setting"]["compared"] == "minority F1"
    assert found["setting"]["classes"] == [str(digit) for digit in range(10)]
    assert found["where_differs"] == {}
    assert [row["method"] for row in found["methods"]] == ["cnn", "ros", "dos"]
    assert len(found["trials"]) == 6
    dos = found["methods"][2]
    assert dos["difference"] is None
    table = run(*QUICK, "--out", "runs")
    for row in found["methods"]:
        assert set(row["cells"]["minority"]) == {*MEASURES, AS_TRAINED}
        for group, measure in (("minority", "f1"), ("majority", "f1"), ("minority", "auprc")):
            cell = row["cells"][group][measure]
            text = f"{cell['mean']:.3f} ± {cell['sd']:.3f}"
            assert text.replace("0.", ".") in table


def test_one_trial_has_no_deviation(untrained: None) -> None:
    found = json.loads(run("--data", "digits", "--trials", "1", "--json"))
    assert found["methods"][0]["cells"]["all"]["f1"]["sd"] is None
    assert found["methods"][0]["p"] is None


# going on


def test_a_second_run_trains_nothing_and_says_the_same(trained: list[tuple[str, int]]) -> None:
    first = run(*QUICK, "--out", "runs/a")
    assert len(trained) == 6
    assert run(*QUICK, "--out", "runs/a") == first
    assert len(trained) == 6
    assert "trials: runs/a/trials.jsonl" in first


@pytest.mark.parametrize("kept", [1, 4])
def test_a_stopped_run_goes_on_with_what_is_missing(
    trained: list[tuple[str, int]], kept: int
) -> None:
    whole = run(*QUICK, "--out", "runs")
    path = Path("runs/trials.jsonl")
    lines = path.read_text().splitlines(keepends=True)
    before = list(trained)
    path.write_text("".join(lines[:kept]) + lines[kept][:50])  # the next is torn
    trained.clear()
    assert run(*QUICK, "--out", "runs") == whole
    assert sorted(trained) == sorted(before[kept:])
    assert len(read_trials(path)) == 6


def test_more_trials_and_methods_only_add(trained: list[tuple[str, int]]) -> None:
    one = (*DIGITS, "--out", "runs")
    run(*one, "--trials", "1", "--methods", "cnn")
    run(*one, "--trials", "2", "--methods", "cnn")
    run(*one, "--trials", "1", "--methods", "cnn,ros")
    assert trained == [("cnn", 0), ("cnn", 1), ("ros", 0)]
    fewer = json.loads(run(*one, "--trials", "1", "--methods", "ros,cnn", "--json"))
    assert [(t["method"], t["seed"]) for t in fewer["trials"]] == [("ros", 0), ("cnn", 0)]
    assert len(trained) == 3


@pytest.mark.parametrize(
    ("option", "value", "found"),
    [
        ("--rounds", "2", "rounds 1 instead of 2"),
        ("--k", "3", "k 5 instead of 3"),
        ("--imbalance", "exp:10", "imbalance 'drop:4:0.9' instead of 'exp:10'"),
        ("--batch-size", "30", "batch_size 60 instead of 30"),
        ("--learning-rate", "0.1", "learning_rate 0.01 instead of 0.1"),
        ("--test-share", "0.5", "test_share 0.2 instead of 0.5"),
        ("--model", "resnet32", "model 'auto' instead of 'resnet32'"),
    ],
)
def test_a_folder_of_other_settings_is_refused(
    untrained: None, option: str, value: str, found: str
) -> None:
    digits = compare.contents(load("digits"))
    setting = Setting("Digits", digits, "drop:4:0.9", "auto", 5, 1, 60, 0.01, 0.2)
    append_trial(Path("runs/trials.jsonl"), trial(setting=setting))
    run(*QUICK, "--out", "runs")
    assert found in refused(*QUICK, option, value, "--out", "runs")


def test_a_folder_that_cannot_be_written_is_refused(untrained: None) -> None:
    Path("file").write_text("")
    assert "must be a file that can be written to" in refused(*QUICK, "--out", "file")


# recipes


def test_a_recipe_fills_up_what_is_not_given() -> None:
    options = ("--data", "digits", "--imbalance", "exp:10", "--recipe", "cifar-lt", "--rounds", "1")
    options = (*options, "--model", "auto", "--judge", "removed", "--weight-decay", "5e-4")
    options = (*options, "--tau", "1.5")
    table = run(*options, "--trials", "1", "--methods", "cnn,dos")
    assert "Digits, exp:10, T = 1, judged by what was removed" in " ".join(table.split())
    assert "difference of all recall" in table
    assert "F1" not in table
    found = json.loads(run(*options, "--trials", "1", "--methods", "cnn", "--json"))
    setting = found["setting"]
    assert setting["compared"] == "all recall"
    assert (setting["learning_rate"], setting["batch_size"], setting["even"]) == (0.1, 128, True)
    assert (setting["weight_decay"], setting["judge"], setting["tau"]) == (5e-4, "removed", 1.5)
    assert (setting["late_rounds"], setting["head_rounds"]) == (1, 1)


# methods


def test_methods_can_be_all_or_the_papers_or_a_list() -> None:
    assert [m.name for m in _chosen("all")] == list(METHODS)
    assert [m.name for m in _chosen(" Paper ")] == list(PAPER)
    assert [m.name for m in _chosen("dos, CNN,,dos")] == ["dos", "cnn"]


@pytest.mark.parametrize("group", ["all", "paper"])
def test_every_method_of_a_group_is_run(untrained: None, group: str) -> None:
    found = json.loads(run("--data", "digits", "--trials", "1", "--methods", group, "--json"))
    names = {"all": list(METHODS), "paper": list(PAPER)}[group]
    assert [row["method"] for row in found["methods"]] == names


def test_unknown_methods_name_near_ones() -> None:
    assert "found 'doss'; did you mean dos" in refused(*DIGITS, "--methods", "cnn,doss")
    assert refused(*DIGITS, "--methods", "xyz").endswith("found 'xyz'")
    assert "at least one method, found none" in refused(*DIGITS, "--methods", ",")


# data


def test_a_folder_of_pictures(tmp_path: Path) -> None:
    folder_of(tmp_path / "pets", {"cat": 20, "dog": 14, "eel": 6}, shape=(8, 8, 3))
    options = ("--data", "pets", "--trials", "1", "--rounds", "1", "--methods", "all")
    found = json.loads(run(*options, "--batch-size", "8", "--k", "3", "--json"))
    assert found["setting"]["data"] == "pets"
    assert all(row["trials"] == 1 for row in found["methods"])
    assert found["trials"][0]["samples"] == [16, 11, 5]


def test_size_is_that_of_the_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    folder_of(Path("pets"), {"cat": 6, "dog": 6}, shape=(30, 20, 3))
    shapes = []

    def made_up(splits, setting, methods, seeds, **options):
        shapes.append(tuple(splits.train.x.shape))
        yield from (trial(method.name, seed) for method in methods for seed in seeds)

    monkeypatch.setattr(compare, "run_trials", made_up)
    for size in ("8", "20"):
        run("--data", "pets", "--trials", "1", "--size", size)
    assert shapes == [(12, 3, 8, 8), (12, 3, 20, 20)]


def test_balanced_data_is_compared_over_all_classes() -> None:
    x = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
    np.savez("even.npz", x=x, y=np.arange(40) % 2)
    table = run("--data", "even.npz", "--k", "0", "--trials", "2", "--rounds", "1")
    assert "minority" not in table
    assert "difference of all F1" in table


@pytest.mark.filterwarnings("ignore:class")
def test_a_class_with_one_sample_needs_test_data_and_then_leaves_nothing_out() -> None:
    folder_of(Path("pets") / "train", {"cat": 12, "eel": 1})
    options = ("--data", "pets", "--trials", "1", "--rounds", "1", "--methods", "cnn,smote,dos")
    assert refused(*options).endswith("or bring validation or test data of your own")
    folder_of(Path("pets") / "test", {"cat": 12, "eel": 2})
    assert "left out" not in run(*options)


def test_a_method_that_cannot_be_run_is_left_out_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "imblearn.over_sampling", None)
    table = run(*DIGITS, "--trials", "1", "--methods", "cnn,smote,dos")
    assert "smote: left out of 1 of 1 trials: SMOTE needs imbalanced-learn" in table
    (line,) = (line for line in table.splitlines() if line.startswith("SMOTE "))
    assert line.split() == ["SMOTE", "–", "–", "–", "–"]
    assert "smote" not in run(*DIGITS, "--trials", "1", "--methods", "cnn,dos")


def test_the_reason_of_a_trial_is_kept_in_the_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    def made_up(splits, setting, methods, seeds, **options):
        yield from (left_out(method.name, seed, "no luck") for method in methods for seed in seeds)

    monkeypatch.setattr(compare, "run_trials", made_up)
    table = run(*QUICK, "--out", "runs")
    assert table.count("left out of 2 of 2 trials: no luck") == 3
    found = json.loads(run(*QUICK, "--json"), parse_constant=pytest.fail)
    assert [row["left_out"] for row in found["methods"]] == ["2 of 2 trials: no luck"] * 3


# wrong use


@pytest.mark.parametrize(
    "arguments",
    [
        ("--trials", "0"),
        ("--rounds", "0"),
        ("--batch-size", "0"),
        ("--k", "-1"),
        ("--learning-rate", "-1"),
    ],
    ids=" ".join,
)
def test_numbers_out_of_range_are_exit_code_2(arguments: tuple[str, str]) -> None:
    run("--data", "digits", *arguments, code=2)


def test_data_must_be_named() -> None:
    run(code=2)


def test_unknown_model_and_protocol_are_refused() -> None:
    assert (
        "model must be one of auto, resnet32 or layers such as C6-C16-F400-F120, found 'vgg'"
        in refused(*QUICK, "--model", "vgg")
    )
    assert "did you mean exp:factor?" in refused(*QUICK, "--imbalance", "expp:3")


def test_wrong_use_is_one_line() -> None:
    command = [sys.executable, "-m", "deep_oversampling", "compare", *DIGITS, "--methods", "doss"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert result.stderr.startswith("dos: methods must be 'all', 'paper' or some of cnn")
    assert result.stderr.count("\n") == 1


def test_trials_of_two_machines_are_said_to_be_so(untrained: None) -> None:
    """The first is in the folder already; the second is run here, with torch 2."""
    setting = Setting(
        "Digits", compare.contents(load("digits")), "drop:4:0.9", "auto", 5, 1, 60, 0.01, 0.2
    )
    there = trial("dos", setting=setting, where={"torch": "1"})
    append_trial(Path("runs/trials.jsonl"), there)
    options = (*DIGITS, "--trials", "2", "--methods", "dos", "--out", "runs")
    found = json.loads(run(*options, "--json"))
    assert found["where_differs"] == {"torch": ["1", "2"]}


def test_two_runs_can_be_joined(trained: list[tuple[str, int]], tmp_path: Path) -> None:
    run(*QUICK[:-4], "--methods", "cnn", "--trials", "1", "--out", "a")
    run(*QUICK[:-4], "--methods", "cnn", "--trials", "1", "--seed", "1", "--out", "b")
    joined = tmp_path / "both" / "trials.jsonl"
    joined.parent.mkdir()
    joined.write_text("".join((tmp_path / d / "trials.jsonl").read_text() for d in ("a", "b")))
    assert trained == [("cnn", 0), ("cnn", 1)]
    assert "2 trials" in run(*QUICK[:-4], "--methods", "cnn", "--trials", "2", "--out", "both")
    assert len(trained) == 2


def test_a_warning_is_one_line(tmp_path: Path) -> None:
    folder_of(tmp_path / "set", {"a": 30, "b": 8}, (8, 8))
    options = ["--data", "set", "--methods", "dos", "--rounds", "1", "--trials", "1", "--k", "7"]
    command = [sys.executable, "-m", "deep_oversampling", "compare", *options]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert result.stderr.startswith("dos: class 'b' has 6 sample(s), so k=5")
    assert result.stderr.count("\n") == 1
