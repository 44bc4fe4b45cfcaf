"""Ctrl-C and SIGTERM: ``dos compare`` keeps its trials, a second signal is not asked for twice."""

import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from typer.testing import CliRunner, Result

from deep_oversampling import InputError, cli
from deep_oversampling.cli.signals import Signals
from deep_oversampling.locking import Lock
from deep_oversampling.rivals import compare
from deep_oversampling.rivals.trials import read_trials
from some_trials import trial

BOTH = pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["ctrl-C", "SIGTERM"]
)


pytestmark = pytest.mark.usefixtures("ctrl_c_is_heard")


@pytest.fixture(autouse=True)
def own_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ctrl_c_is_heard: None
) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    assert before == {number: signal.getsignal(number) for number in before}


def compared(*more: str) -> Result:
    command = ["compare", "--data", "digits", "--imbalance", "drop:4:0.9", "--rounds", "1"]
    return CliRunner().invoke(cli.app, [*command, "--trials", "2", "--methods", "cnn,ros", *more])


def signalled_after(times: int, number: signal.Signals, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trials are made up, and a signal arrives when so many are done."""
    done: list[Any] = []

    def made_up(splits, setting, methods, seeds, **options):
        for method in methods:
            for seed in seeds:
                if len(done) == times:
                    signal.raise_signal(number)
                done.append((method, seed))
                yield trial(method.name, seed, setting=setting)

    monkeypatch.setattr(compare, "run_trials", made_up)


@BOTH
def test_a_stopped_comparison_says_how_to_go_on(
    number: signal.Signals, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    signalled_after(3, number, monkeypatch)
    result = compared("--out", "r")
    assert result.exit_code == code, result.output
    told = "dos: stopped; 3 trials are in r/trials.jsonl; the same command goes on there"
    assert result.stderr.splitlines()[-1] == told
    assert len(read_trials(Path("r/trials.jsonl"))) == 3
    signalled_after(99, number, monkeypatch)
    assert compared("--out", "r").exit_code == 0
    assert len(read_trials(Path("r/trials.jsonl"))) == 4


def test_without_a_folder_nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    signalled_after(1, signal.SIGTERM, monkeypatch)
    result = compared()
    assert (result.exit_code, result.stderr.splitlines()[-1]) == (
        143,
        "dos: stopped; without a folder (--out) nothing is kept",
    )


def test_two_comparisons_do_not_write_into_one_file(monkeypatch: pytest.MonkeyPatch) -> None:
    signalled_after(99, signal.SIGTERM, monkeypatch)
    Path("r").mkdir()
    with Lock(Path("r/trials.jsonl"), of="it", keep=True):
        result = compared("--out", "r")
    assert isinstance(result.exception, InputError)
    assert "r/trials.jsonl must be used by one process at a time" in str(result.exception)
    assert compared("--out", "r").exit_code == 0


def test_a_small_network_is_compared_by_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    signalled_after(99, signal.SIGTERM, monkeypatch)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    found: list[int] = []
    monkeypatch.setattr(torch, "set_num_threads", found.append)
    compared()
    assert found == [1]


@BOTH
def test_the_first_asks_and_the_second_ends(number: signal.Signals, code: int) -> None:
    asked: list[str] = []
    with Signals() as signals:
        with signals.asking(lambda: asked.append("please")):
            signal.raise_signal(number)
            assert asked == ["please"]
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(number)
        assert signals.exit_code == code
    assert asked == ["please"]


@BOTH
def test_who_does_not_want_to_be_asked_is_interrupted(number: signal.Signals, code: int) -> None:
    with Signals() as signals, pytest.raises(KeyboardInterrupt):
        signal.raise_signal(number)
    assert signals.exit_code == code


def test_what_was_told_to_ignore_a_signal_does(monkeypatch: pytest.MonkeyPatch) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with Signals():
            signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)


def test_other_threads_have_no_signals() -> None:
    def enter() -> None:
        with Signals() as signals:
            codes.append(signals.exit_code)

    codes: list[int] = []
    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert codes == [130]
