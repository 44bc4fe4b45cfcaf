"""A cluster as a user begins it, ``ray start`` on each machine, with a token: docs/cluster.md."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from deep_oversampling.rivals.trials import read_trials
from deep_oversampling.workers import Here
from many_processes import free_port
from orders import COMPARE, compared, facts, until

pytest.importorskip("ray", reason="Ray is not installed")

pytestmark = pytest.mark.slow

RAY = str(Path(sys.executable).with_name("ray"))
WITHOUT_TOKEN = {
    "not asked for": {"RAY_AUTH_MODE": None},
    "not there": {"RAY_AUTH_TOKEN_PATH": "/nowhere"},
}


class Started:
    """Nodes in the foreground, each of which ends with its ``ray start``."""

    def __init__(self, folder: Path) -> None:
        self.address, self._folder = f"127.0.0.1:{free_port()}", folder
        self._nodes: list[subprocess.Popen[bytes]] = []  # the head is the first
        self.environment = os.environ | {
            "HOME": str(folder),  # where Ray keeps the token that it makes
            "OMP_NUM_THREADS": "1",
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            "RAY_ADDRESS": self.address,  # what "auto" is, if other clusters are here
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN_PATH": str(folder / ".ray" / "auth_token"),
            "RAY_USAGE_STATS_ENABLED": "0",
        }

    def generate_token(self) -> None:
        command, environment = [RAY, "get-auth-token", "--generate"], dict(self.environment)
        del environment["RAY_AUTH_TOKEN_PATH"]
        subprocess.run(command, check=True, capture_output=True, env=environment)

    def start(self, *options: str, **environment: str) -> None:
        log = self._folder / f"node-{len(self._nodes)}.txt"
        command = [RAY, "start", "--block", *options]
        with log.open("w") as written:
            self._nodes.append(
                subprocess.Popen(
                    command, stdout=written, stderr=written, env=self.environment | environment
                )
            )
        until(
            lambda: "Ray runtime started" in log.read_text() or self._nodes[-1].poll() is not None
        )
        assert self._nodes[-1].poll() is None, log.read_text()

    def command(
        self, address: str, *more: str, **other: str | None
    ) -> subprocess.CompletedProcess[str]:
        """``dos compare``, with some variables changed, or without them (None)."""
        changed = {**self.environment, **other}
        return subprocess.run(
            [sys.executable, "-m", "deep_oversampling", *COMPARE, "--ray", address, *more],
            capture_output=True,
            text=True,
            env={name: value for name, value in changed.items() if value is not None},
        )

    def end(self) -> None:
        for node in reversed(self._nodes):
            node.terminate()
            node.wait(30)


@contextmanager
def begun() -> Iterator[Started]:
    """A head without a CPU for tasks."""
    with tempfile.TemporaryDirectory(prefix="dos") as folder:  # short, as sockets are in it
        started = Started(Path(folder))
        try:
            started.generate_token()
            port, place = started.address.partition(":")[2], ["--temp-dir", f"{folder}/ray"]
            options = ["--head", f"--port={port}", "--node-ip-address=127.0.0.1", "--num-cpus=0"]
            started.start(*options, "--include-dashboard=false", *place)
            yield started
        finally:
            started.end()


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def head() -> Iterator[Started]:
    with begun() as started:
        yield started


@pytest.mark.parametrize("token", WITHOUT_TOKEN)
def test_without_its_token_the_command_is_refused(head: Started, token: str) -> None:
    refused = head.command(head.address, **WITHOUT_TOKEN[token])
    assert refused.returncode == 1
    told = f"dos: the Ray cluster at {head.address} must be given its token, found none, or another"
    assert refused.stderr.splitlines()[-1].startswith(told)  # after lines of Ray's own
    assert "Traceback" not in refused.stderr


def test_the_trials_are_those_of_one_process(head: Started) -> None:
    """By address and, as on a machine of the cluster, without."""
    head.start(f"--address={head.address}", "--num-cpus=2")
    for address, trials in ((head.address, "1"), ("auto", "2")):
        done = head.command(address, "--trials", trials)
        assert (done.returncode, done.stderr) == (0, "")
    assert facts(read_trials(Path("r/trials.jsonl"))) == facts(Here("cpu").run(compared()))


def test_a_node_with_another_release_is_named(tmp_path: Path) -> None:
    changes = 'import platform\nplatform.python_version = lambda: "3.0.0"\n'
    (tmp_path / "sitecustomize.py").write_text(changes)
    with begun() as head:
        path = os.pathsep.join([str(tmp_path), head.environment["PYTHONPATH"]])
        head.start(f"--address={head.address}", "--num-cpus=1", PYTHONPATH=path)
        refused = head.command(head.address)
    assert refused.returncode == 1
    told = "dos: every node must have the versions of the command, found on "
    assert refused.stderr.startswith(told)
    assert " python 3.0.0 instead of 3." in refused.stderr
    assert refused.stderr.count("\n") == 1
