"""``dos train`` is killed, stopped, starved of disk and started twice; it ends as if it had not."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from deep_oversampling import cli
from deep_oversampling.durable import read_checked, write_checked
from deep_oversampling.runs import Run
from trainings import NUMBERS, OPTIONS, After, call, finished, plant, refused, told

pytestmark = pytest.mark.usefixtures("ctrl_c_is_heard")


@pytest.fixture(autouse=True)
def orchard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(tmp_path, monkeypatch)


def stop_at(step: int, number: signal.Signals) -> pytest.MonkeyPatch:
    """That signal arrives, as if from outside, when so many steps have been taken."""
    from torch.optim import SGD

    patch, signalled = pytest.MonkeyPatch(), lambda: signal.raise_signal(number)
    after = After(step, signalled, SGD.step)
    patch.setattr(SGD, "step", lambda self, *some: after(self, *some))
    return patch


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["ctrl-C", "SIGTERM"]
)
def test_a_stopped_run_can_be_used_and_goes_on(number: signal.Signals, code: int) -> None:
    finished("--out", "whole")
    for step in (3, 26, 22):  # the first round, DOS, the baseline; two try a checkpoint out
        patch = stop_at(step, number)
        result = call()
        patch.undo()
        assert result.exit_code == code, result.output
        last = result.stderr.strip().splitlines()[-1]
        assert last.startswith("dos: stopped ")
        assert last.endswith("to go on: dos train --config r/config.toml --out r")
    opened = Run.open("r")
    assert opened.record.status == "stopped after round 5 of 6 of the baseline, which is left out"
    opened.network(device="cpu")
    said = CliRunner().invoke(cli.app, last.split("to go on: dos ")[1].split())
    assert said.exit_code == 0, said.output
    assert "DOS: 6 rounds were done before; going on" in said.output
    assert told("r") == told("whole")
    assert not Path("r/unfinished").exists()
    assert "(--overwrite)" in refused()


def test_what_cannot_go_on_is_refused_by_name(tmp_path: Path) -> None:
    patch = stop_at(12, signal.SIGTERM)
    call()
    patch.undo()
    kept = sorted(path.name for path in Path("r/unfinished/dos").iterdir())
    assert "rounds 3 instead of 4" in refused("--rounds", "4")
    assert "learning_rate 0.01 instead of 0.5" in refused("--learning-rate", "0.5")
    assert "initial weights" in refused("--seed", "1")
    assert "patience None instead of 2" in refused("--patience", "2")
    (tmp_path / "fruit" / "pear" / "0.png").unlink()
    words = refused()
    assert "training samples" in words or "validation samples" in words
    assert sorted(path.name for path in Path("r/unfinished/dos").iterdir()) == kept
    finished("--overwrite")
    assert not Path("r/unfinished").exists()


def test_what_an_earlier_release_began_goes_on() -> None:
    """It had no word for what has come since, and did as is done by default."""
    finished("--out", "whole")
    patch = stop_at(12, signal.SIGTERM)
    call()
    patch.undo()
    path = Path("r/unfinished/task")
    begun = json.loads(read_checked(path) or "")
    del begun["schedule"], begun["weight_decay"]
    write_checked(path, json.dumps(begun).encode())
    assert "schedule 'constant' instead of 'cosine'" in refused("--schedule", "cosine")
    finished()
    assert told("r") == told("whole")


def test_k_is_not_chosen_again() -> None:
    patch = stop_at(300, signal.SIGTERM)  # after nine candidates
    assert call("--k", "auto").exit_code == 143
    patch.undo()
    said = finished("--k", "auto")
    assert "choosing k and r" not in said
    assert "were chosen on a part of the samples" in said
    assert len(json.loads(Path("r/run.json").read_text())["candidates"]) > 1


def test_stopped_before_training_it_leaves_nothing() -> None:
    patch = stop_at(3, signal.SIGTERM)  # while k is chosen
    result = call("--k", "auto")
    patch.undo()
    assert result.exit_code == 143
    assert result.stderr.strip() == "dos: stopped; what was kept before is as it was"
    assert not Path("r").exists()


def test_a_run_is_for_one_process_at_a_time() -> None:
    code = (
        "import sys; from pathlib import Path\n"
        "from deep_oversampling.locking import Lock\n"
        "Lock(Path(sys.argv[1]), of='it').take(); print('taken', flush=True); sys.stdin.read()"
    )
    patch = stop_at(12, signal.SIGTERM)
    call()
    patch.undo()
    with subprocess.Popen(
        [sys.executable, "-c", code, "r/unfinished/lock"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as other:
        assert other.stdout
        other.stdout.readline()
        assert "the run r must be used by one process at a time" in refused()
        assert "one process at a time" in refused("--overwrite")
        other.kill()  # and with it goes the lock, though its file is still there
    assert Path("r/unfinished/lock").exists()
    finished()


def test_early_stopping_goes_on() -> None:
    early = ["--patience", "1", "--k", "5"]
    finished(*early, "--out", "whole")
    patch = stop_at(24, signal.SIGTERM)
    assert call(*early).exit_code == 143
    patch.undo()
    finished(*early)
    assert told("r") == told("whole")
    history = json.loads(Path("r/run.json").read_text())["history"]
    assert all(history[method]["kept"] is not None for method in ("dos", "plain"))
    assert len(history["dos"]["rounds"]) < 6


PROGRAM = """
import os, signal, sys, threading, time
import deep_oversampling.runs.unfinished as unfinished
from deep_oversampling import cli
unfinished._MINUTES = 1e-6
where, left, later, only = sys.argv[1:5]
left, later, last = int(left), float(later), 0.0
del sys.argv[1:5]
function = getattr(os, where)
def killed(*arguments, **named):
    global left, last
    left -= str(arguments[-1]).endswith(only)
    before, last = last, time.perf_counter()
    if left == 0 and later:
        wait = later * (last - before)
        threading.Timer(wait, os.kill, (os.getpid(), signal.SIGKILL)).start()
    elif left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return function(*arguments, **named)
setattr(os, where, killed)
cli.main()
"""


def killed_at(
    where: str, times: int, later: float = 0, *, only: str = "", folder: str = "r"
) -> int:
    """The exit code of a process that is killed just before such a call.

    Or ``later``, by a share of the time between the two calls before: in seconds, a fast machine
    would be done by then. ``only`` is how the name of the file must end that the call is about.
    0 times: it is not killed.
    """
    options = ["train", *OPTIONS, "--rounds", "12", "--out", folder]
    command = [sys.executable, "-c", PROGRAM, where, str(times), str(later), only, *options]
    return subprocess.run(command, capture_output=True).returncode


@pytest.mark.slow
def test_killed_at_many_moments_it_ends_as_if_nothing_had_happened() -> None:
    assert killed_at("fsync", 0, folder="whole") == 0
    shutil.rmtree(os.environ["DOS_CACHE"])  # so that it is filled anew
    kills = [killed_at("rename", 1)]  # the cache is decoded and has not got its name yet
    kills += [killed_at("replace", times) for times in (1, 2, 3)]  # the settings, a checkpoint
    kills += [killed_at("fsync", times) for times in (1, 3, 4, 5)]  # first that of the settings
    kills += [killed_at("unlink", times, only=".checkpoint") for times in (1, 2, 3)]
    draw = random.Random(0)
    kills += [killed_at("fsync", draw.randint(4, 8), draw.random()) for _ in range(12)]
    assert kills == [-signal.SIGKILL] * 23
    while killed_at("fsync", 30) == -signal.SIGKILL:  # until no checkpoint is left to be written
        kills.append(-signal.SIGKILL)
    assert len(kills) > 23
    assert told("r") == told("whole")
    assert not list(Path("r").glob("**/*.checkpoint"))


@pytest.mark.slow
def test_killed_while_the_results_get_their_names() -> None:
    """What is trained is not trained again, and the files are written once more."""
    assert killed_at("fsync", 0, folder="whole") == 0
    results = [*NUMBERS, "run.json", "story.json", "report.html", "config.toml"]
    kills = [killed_at("replace", 1, only=name) for name in results]
    assert kills == [-signal.SIGKILL] * len(results)
    assert killed_at("fsync", 0) == 0
    assert told("r") == told("whole")
    assert killed_at("fsync", 0) == 1  # it is finished
