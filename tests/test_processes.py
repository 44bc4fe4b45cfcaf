"""Trials in several processes: killed, stopped and orphaned ones; nothing lost, nothing twice."""

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from deep_oversampling import DOSError, InputError
from deep_oversampling.rivals.trials import read_trials
from deep_oversampling.workers import Here, Processes
from orders import COMPARE, compared, digits, facts, until

pytestmark = pytest.mark.slow  # each process loads torch

COMMAND = [sys.executable, "-m", "deep_oversampling", *COMPARE, "--processes", "2"]
TRIALS = Path("r/trials.jsonl")


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


def lines() -> int:
    return TRIALS.read_text().count("\n") if TRIALS.exists() else 0


def children(pid: int) -> list[int]:
    """Of a process, with theirs."""
    listed = subprocess.run(["ps", "-eo", "pid=,ppid="], capture_output=True, text=True).stdout
    pairs = [tuple(map(int, line.split())) for line in listed.splitlines()]
    direct = [child for child, parent in pairs if parent == pid]
    return direct + [one for child in direct for one in children(child)]


def alive(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def begun() -> subprocess.Popen[str]:
    """A comparison at work, in a group of its own."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(COMMAND, text=True, start_new_session=True, **pipes)


@pytest.fixture(scope="module")
def alone() -> list[dict[str, Any]]:
    """The same trials by a process that nobody disturbs."""
    return facts(Here("cpu").run(compared()))


def goes_on_to(whole: list[dict[str, Any]]) -> None:
    subprocess.run(COMMAND, check=True, capture_output=True)
    assert lines() == len(whole)  # nothing twice
    assert facts(read_trials(TRIALS)) == whole


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["ctrl-C", "SIGTERM"]
)
@pytest.mark.usefixtures("ctrl_c_is_heard")
def test_a_signal_to_all_processes_is_one_line_and_the_command_goes_on(
    number: signal.Signals, code: int, alone: list[dict[str, Any]]
) -> None:
    with begun() as command:
        until(lines)
        workers = children(command.pid)
        os.killpg(command.pid, number)  # as a terminal and a batch system do
        _, said = command.communicate()
    done = lines()
    assert command.returncode == code, said
    assert said == f"dos: stopped; {done} trials are in {TRIALS}; the same command goes on there\n"
    assert done < len(alone)
    assert len(workers) >= 2
    until(lambda: not any(map(alive, workers)), 10)
    goes_on_to(alone)


def test_workers_end_with_a_command_that_is_killed(alone: list[dict[str, Any]]) -> None:
    with begun() as command:
        until(lines)
        workers = children(command.pid)
        command.kill()
        command.communicate()
    assert len(workers) >= 2
    until(lambda: not any(map(alive, workers)), 10)
    goes_on_to(alone)


def test_a_worker_that_is_killed_is_replaced(
    caplog: pytest.LogCaptureFixture, alone: list[dict[str, Any]]
) -> None:
    with Processes(2) as place:
        trials = place.run(compared())
        found = [next(trials)]
        lost = next(worker for worker in place._workers if worker.cell)
        lost.process.kill()
        cell = str(lost.cell)
        found += trials
        assert len(place._workers) == 2
        assert all(map(alive, [worker.process.pid for worker in place._workers]))
        assert lost not in place._workers
    assert facts(found) == alone
    assert caplog.messages == [f"a worker was lost (signal 9); {cell} is run again"]
    assert place._workers == []


def killed() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_cell_that_kills_its_workers_ends_it(caplog: pytest.LogCaptureFixture) -> None:
    order = replace(digits("cnn"), source=killed)
    told = r"finish cnn with seed 0, found that 3 ended over it, the last by signal 9; if memory"
    with Processes(1) as place, pytest.raises(DOSError, match=told):
        list(place.run(order))
    assert len(caplog.messages) == 2


def test_what_a_worker_refuses_is_refused_and_the_others_end() -> None:
    order = digits("cnn", seeds=(0, 1, 2))
    other = replace(order, setting=replace(order.setting, contents="c0ffee"))
    with Processes(2) as place:
        with pytest.raises(InputError, match="every node must find the same data"):
            list(place.run(other))
        assert not any(worker.cell for worker in place._workers)
        assert facts(place.run(order)) == facts(Here("cpu").run(order))  # and it can go on


def test_notes_are_told_once(caplog: pytest.LogCaptureFixture) -> None:
    order = digits("dos", seeds=(0, 1, 2))
    order = replace(order, setting=replace(order.setting, k=40))  # more than a rare class has
    with Processes(2) as place:
        list(place.run(order))
    assert len(caplog.messages) == len(set(caplog.messages))
    assert any("so k=" in message for message in caplog.messages)
