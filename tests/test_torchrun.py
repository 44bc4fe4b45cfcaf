"""``dos train`` under torchrun: as on one process; a process that is killed is started again."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from deep_oversampling.runs import Run
from trainings import NUMBERS, OPTIONS, finished, plant, told

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("ctrl_c_is_heard")]

# what happens in one process, the first time it is started, after so many steps
PROGRAM = """
import os, signal, sys
from torch.optim import SGD
import deep_oversampling.runs.unfinished as unfinished
from deep_oversampling import cli
unfinished._MINUTES = 1e-6
rank, left, act = sys.argv[1], int(sys.argv[2]), sys.argv[3]
del sys.argv[1:4]
chosen = os.environ["RANK"] == rank and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0"
step = SGD.step
def counted(self, *some):
    global left
    left -= 1
    if left == 0 and chosen and act == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if left == 0 and chosen and act == "stop":
        os.kill(os.getppid(), signal.SIGTERM)
    return step(self, *some)
SGD.step = counted
if act == "differ" and chosen:
    sys.argv += ["--seed", "1", "--no-baseline"]
if act == "damage" and chosen:
    import deep_oversampling.cli.loading as loading
    from deep_oversampling import InputError
    def fails(*_, **__):
        raise InputError("there must be data on this machine")
    loading.load_shown = fails
cli.main()
"""


@pytest.fixture(autouse=True)
def orchard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(tmp_path, monkeypatch)
    Path("program.py").write_text(PROGRAM)


def launched(
    *happens: str, processes: int = 2, restarts: int = 0, out: str = "r"
) -> subprocess.CompletedProcess[str]:
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    launcher += ["--nproc-per-node", str(processes), "--max-restarts", str(restarts)]
    command = [*launcher, "program.py", *(happens or ("", "0", "")), "train", *OPTIONS[:-1], out]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.run(command, capture_output=True, text=True, env=environment)


def tensors(folder: str) -> dict[str, Any]:
    return {f"{n}/{k}": t for n in NUMBERS[:2] for k, t in load_file(f"{folder}/{n}").items()}


def test_the_first_process_speaks_and_all_train_the_same_run() -> None:
    finished("--out", "alone")
    done = launched()
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("run: r\n") == done.stdout.count("1 rare class is over-sampled") == 1
    assert done.stderr.count("DOS 6/6") == 1
    assert "1 rare class" in Path("r/logs/process-1.txt").read_text()
    assert sorted(p.name for p in Path("r").iterdir()) == sorted(
        ["logs", *(p.name for p in Path("alone").iterdir())]
    )
    alone, shared = tensors("alone"), tensors("r")
    assert alone.keys() == shared.keys()
    for name, tensor in alone.items():
        torch.testing.assert_close(shared[name], tensor, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("rank", ["0", "1"])
def test_a_killed_process_is_started_again_and_the_run_ends_the_same(rank: str) -> None:
    assert launched(out="whole").returncode == 0
    killed = launched(rank, "27", "kill", restarts=1)  # in the second round of DOS
    assert killed.returncode == 0, killed.stderr
    assert "rounds were done before; going on" in killed.stderr
    assert told("r") == told("whole")
    assert not Path("r/unfinished").exists()


def test_a_killed_process_ends_the_job_with_a_word_and_one_alone_goes_on() -> None:
    finished("--out", "alone")
    killed = launched("1", "27", "kill")
    assert killed.returncode != 0
    assert "dos: every process of a training must stay until its end" in killed.stderr
    assert "Traceback" not in killed.stderr.partition("torch/distributed")[0]
    assert "rounds were done before; going on" in finished()
    for name, tensor in tensors("alone").items():
        torch.testing.assert_close(tensors("r")[name], tensor, rtol=1e-4, atol=1e-5)


def test_a_job_that_is_asked_to_stop_keeps_its_run() -> None:
    stopped = launched("1", "27", "stop")
    assert stopped.returncode != 0
    assert "to go on: dos train --config r/config.toml --out r" in stopped.stderr
    status = json.loads(Path("r/run.json").read_text())["status"]
    assert status == "stopped after round 4 of 6"
    Run.open("r").network(device="cpu")
    assert "DOS: 4 rounds were done before; going on" in finished()


def test_what_differs_and_what_fails_is_told_once() -> None:
    other = launched("1", "0", "differ")
    assert other.returncode != 0
    line = "dos: all processes of a training must be given the same, found that process 1 differs "
    assert other.stderr.count(f"{line}from process 0: baseline False not True, seed 1 not 0,") == 1
    damaged = launched("1", "0", "damage")
    assert damaged.stderr.count("dos: process 1: there must be data on this machine") == 1
    first = launched("0", "0", "damage")
    assert first.stderr.count("dos: there must be data on this machine") == 1
    assert not Path("r/run.json").exists()
