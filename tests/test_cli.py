"""The command ``dos``, as a user types it."""

import json
import logging
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from deep_oversampling import InputError, __version__, cli, demo

METHODS = ["cnn", "random_oversampling", "dos"]
MEASURES = ["precision", "recall", "f1", "auprc"]
QUICK = ["demo", "--trials", "2", "--rounds", "1"]


def run(*arguments: str) -> str:
    result = CliRunner().invoke(cli.app, arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_json_holds_every_measure_of_every_method_and_group() -> None:
    found = json.loads(run(*QUICK, "--json"))
    assert list(found) == METHODS
    for groups in found.values():
        assert list(groups) == ["minority", "majority"]
        for measured in groups.values():
            assert sorted(measured) == sorted([*MEASURES, *(f"{m}_sd" for m in MEASURES)])
            assert all(0 <= measured[m] <= 1 for m in MEASURES)


def test_table_shows_what_the_json_says() -> None:
    found, table = json.loads(run(*QUICK, "--json")), run(*QUICK)
    for groups in found.values():
        for measured in groups.values():
            for m in MEASURES:
                text = f"{measured[m]:.3f} ± {measured[f'{m}_sd']:.3f}"
                assert text.replace("0.", ".") in table
    assert max(map(len, table.splitlines())) <= 80
    for title in ("CNN", "random over-sampling", "DOS", "minority", "majority"):
        assert title in table


def test_seed_decides_the_demo() -> None:
    same, again = (
        demo.run_demo(trials=1, rounds=1, seed=3),
        demo.run_demo(trials=1, rounds=1, seed=3),
    )
    other = demo.run_demo(trials=1, rounds=1, seed=4)
    assert same == again != other


def test_trials_are_the_seeds_that_follow() -> None:
    both = demo.run_demo(trials=2, rounds=1, seed=3)["dos"]["majority"]["f1"]
    single = [demo.run_demo(trials=1, rounds=1, seed=s)["dos"]["majority"]["f1"] for s in (3, 4)]
    assert both == pytest.approx(sum(single) / 2)


def test_version() -> None:
    assert run("--version").strip() == f"deep-oversampling {__version__}"


def test_help_names_the_commands() -> None:
    assert "demo" in run("--help")


@pytest.mark.parametrize(
    "arguments", [["nonsense"], ["demo", "--trials", "0"], ["demo", "--seed", "x"]]
)
def test_wrong_use_is_exit_code_2_without_a_traceback(arguments: list[str]) -> None:
    command = [sys.executable, "-m", "deep_oversampling", *arguments]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 2
    assert "Traceback" not in result.stderr
    assert "Usage" in result.stderr


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--k", "many"], "k must be a whole number ≥ 0 or 'auto', found 'many'"),
        (["--k", "-2"], "k must be 0 or more, found -2"),
        (["--model", "alexnet"], "model must be auto or one of"),
        (["--model", "lennet"], "found 'lennet'; did you mean lenet?"),
        (["--pretrained"], "--pretrained is for models of timm, found 'auto'; choose timm:NAME"),
        (["--learning-rate", "0"], "learning_rate must be above 0"),
        (["--weight-decay", "-1"], "weight_decay must be 0 or more, found -1"),
        (["--schedule", "linear"], "schedule must be 'constant' or 'cosine', found 'linear'"),
        (["--validation", "1.5"], "validation must be a share between 0 and 1"),
    ],
)
def test_options_that_never_can_be_are_wrong_use(options: list[str], words: str) -> None:
    """Told before the data is looked for."""
    result = CliRunner(env={"COLUMNS": "200"}).invoke(cli.app, ["train", "nowhere", *options])
    assert result.exit_code == 2
    assert words in result.stderr
    assert "nowhere" not in result.stderr


def test_known_errors_are_one_line_and_exit_code_1(monkeypatch, capsys) -> None:
    def fail() -> None:
        raise InputError("x must be y, found z")

    monkeypatch.setattr(cli, "app", fail)
    with pytest.raises(SystemExit) as caught:
        cli.main()
    assert caught.value.code == 1
    assert capsys.readouterr().err == "dos: x must be y, found z\n"


def test_unexpected_errors_are_one_line_too_and_a_traceback_if_asked(monkeypatch, capsys) -> None:
    def fail() -> None:
        raise KeyError("a\nb")

    monkeypatch.setattr(cli, "app", fail)
    for level, traceback in ((logging.NOTSET, False), (logging.DEBUG, True)):
        monkeypatch.setattr(logging.getLogger("deep_oversampling"), "level", level)
        with pytest.raises(SystemExit) as caught:
            cli.main()
        assert caught.value.code == 1
        said = capsys.readouterr().err
        assert said.splitlines()[-1].startswith("dos: KeyError: ")
        assert ("Traceback" in said) is traceback
