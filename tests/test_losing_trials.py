"""A file of trials: torn, gone while it is written to, its writer killed; the rest is kept."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from deep_oversampling import InputError, cli
from deep_oversampling.rivals import compare
from deep_oversampling.rivals.trials import read_trials
from some_trials import trial

METHODS = ["cnn", "ros", "dos"]
QUICK = ["compare", "--data", "digits", "--imbalance", "drop:4:0.9", "--rounds", "1"]
QUICK += ["--trials", "3", "--methods", ",".join(METHODS), "--device", "cpu"]
PATH = Path("r/trials.jsonl")


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def compared() -> Result:
    return CliRunner().invoke(cli.app, [*QUICK, "--out", "r"])


def made_up(splits: object, setting: Any, methods: Any, seeds: Any, **options: Any) -> Any:
    for method in methods:
        yield from (trial(method.name, seed, setting=setting) for seed in seeds)


@pytest.mark.parametrize("line", ["{", "", "\0" * 20, "[" * 100_000])
def test_a_broken_line_is_named_and_its_trial_run_again(
    line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compare, "run_trials", made_up)
    assert compared().exit_code == 0
    first, _, *others = PATH.read_text().splitlines()
    PATH.write_text("\n".join([first, line, *others]))
    said = compared()
    assert said.stderr.splitlines()[0] == (
        f"dos: {PATH}, line 2 is broken and set aside; the others are kept"
    )
    assert len(read_trials(PATH)) == 9


@pytest.mark.parametrize("gone", ["r", "r/trials.jsonl"])
def test_a_file_that_vanishes_is_said(gone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the trials that follow would stand in a new one, without those from before."""

    def vanishing(*given: Any, **options: Any) -> Any:
        for number, one in enumerate(made_up(*given, **options)):
            if number == 1:
                shutil.rmtree(gone) if Path(gone).is_dir() else Path(gone).unlink()
            yield one

    monkeypatch.setattr(compare, "run_trials", vanishing)
    error = compared().exception
    assert isinstance(error, InputError)
    assert "r/trials.jsonl must stay where it is while a process is at work" in str(error)
    assert not PATH.exists()


def timeless(folder: str) -> dict[tuple[str, int], object]:
    lines = Path(folder, "trials.jsonl").read_text().splitlines()
    trials = [json.loads(line) for line in lines]
    return {(one["method"], one["seed"]): {**one, "seconds": 0} for one in trials}


@pytest.mark.slow
def test_a_comparison_that_is_killed_goes_on() -> None:
    """A real process, at moments of chance; the trials are those of one that never was."""

    def start(folder: str) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-m", "deep_oversampling", *QUICK, "--out", folder]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        return subprocess.Popen(command, env={**os.environ, "OMP_NUM_THREADS": "1"}, **quiet)

    assert start("whole").wait() == 0
    draw, kills = random.Random(0), 0
    for wanted in range(1, 9, 2):  # trials that are there
        process = start("r")
        while process.poll() is None and (
            not PATH.exists() or PATH.read_bytes().count(b"\n") < wanted
        ):
            time.sleep(0.01)
        time.sleep(draw.uniform(0, 0.3))
        process.kill()
        kills += process.wait() == -signal.SIGKILL
    assert kills >= 3
    assert start("r").wait() == 0
    assert timeless("r") == timeless("whole")
    assert len(timeless("r")) == 9
