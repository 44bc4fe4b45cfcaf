"""Trials on a real Ray cluster, of which a node is killed; nothing lost, nothing twice."""

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from deep_oversampling import DOSError, InputError
from deep_oversampling.rivals.trials import read_trials
from deep_oversampling.workers import Here, RayCluster, ray_cluster
from orders import COMPARE, compared, digits, facts, until

pytest.importorskip("ray", reason="Ray is not installed")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),  # Ray's own
]

COMMAND = [sys.executable, "-m", "deep_oversampling", *COMPARE]
TRIALS = Path("r/trials.jsonl")


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A head without a CPU for tasks, so that what is killed is never the head."""
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
        for _ in range(2):
            cluster.add_node(num_cpus=1)
        yield cluster
        cluster.shutdown()


@pytest.fixture(scope="module")
def alone() -> list[dict[str, Any]]:
    """The same trials by this process."""
    return facts(Here("cpu").run(compared()))


def lines() -> int:
    return TRIALS.read_text().count("\n") if TRIALS.exists() else 0


def begun(address: str) -> subprocess.Popen[str]:
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([*COMMAND, "--ray", address], text=True, **pipes)


def without_lines_of_ray(said: str) -> list[str]:
    """Its threads may still write some of their own when a task has been given up."""
    return [line for line in said.splitlines() if not re.match(r"\[.*\] \w+\.cc:\d+: ", line)]


def test_what_ray_says_of_its_end_is_not_heard(
    cluster: Any, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    with RayCluster(cluster.address) as place:
        end = place._ray.shutdown
        monkeypatch.setattr(place._ray, "shutdown", lambda: (os.write(2, b"a task failed"), end()))
    os.write(2, b"heard")
    assert capfd.readouterr().err == "heard"


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["ctrl-C", "SIGTERM"]
)
@pytest.mark.usefixtures("ctrl_c_is_heard")
def test_a_stopped_run_goes_on(
    cluster: Any, alone: list[dict[str, Any]], number: signal.Signals, code: int
) -> None:
    with begun(cluster.address) as command:
        until(lines)
        command.send_signal(number)
        _, said = command.communicate()
    done = lines()
    assert command.returncode == code, said
    stopped = f"dos: stopped; {done} trials are in {TRIALS}; the same command goes on there"
    assert without_lines_of_ray(said) == [stopped]
    assert done < len(alone)
    with begun(cluster.address) as command:
        _, said = command.communicate()
    assert (command.returncode, said) == (0, "")
    assert lines() == len(alone)
    assert facts(read_trials(TRIALS)) == alone


def test_what_a_worker_refuses_is_refused(cluster: Any) -> None:
    order = digits("cnn", seeds=(0, 1))
    other = replace(order, setting=replace(order.setting, contents="c0ffee"))
    handler = signal.getsignal(signal.SIGTERM)
    with RayCluster(cluster.address) as place:
        assert signal.getsignal(signal.SIGTERM) == handler
        with pytest.raises(InputError, match="every node must find the same data"):
            list(place.run(other))
        assert facts(place.run(order)) == facts(Here("cpu").run(order))  # and it can go on


@pytest.mark.usefixtures("ctrl_c_is_heard")
def test_a_task_that_no_node_can_run_says_so(
    cluster: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_cluster, "_LOOK", 0.5)
    with RayCluster(cluster.address, gpus_per_task=2) as place:
        trials = place.run(digits("cnn"))
        timer = threading.Timer(3, lambda: signal.raise_signal(signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            next(trials)
    told = "a task needs a CPU and 2 GPUs, but no node of the 3 in the cluster has them; waiting"
    assert [message.startswith(told) for message in caplog.messages] == [True]


def killed() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_cell_that_kills_its_workers_ends_it(
    cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_cluster, "_RETRIES", 1)
    order = replace(digits("cnn"), source=killed)
    with (
        RayCluster(cluster.address) as place,
        pytest.raises(DOSError, match="finish cnn with seed 0, found that 2 were lost over it"),
    ):
        list(place.run(order))


def test_a_node_that_is_killed_loses_nothing(cluster: Any, alone: list[dict[str, Any]]) -> None:
    """The last test of this cluster: one node is left of two."""
    node = max(cluster.worker_nodes, key=lambda one: one.node_id)
    with begun(cluster.address) as command:
        until(lines)
        cluster.remove_node(node, allow_graceful=False)  # SIGKILL, and its workers with it
        assert lines() < len(alone)
        _, said = command.communicate()
    assert command.returncode == 0, said
    assert lines() == len(alone)
    assert facts(read_trials(TRIALS)) == alone
