"""Trials as the tasks of a Ray cluster; one whose node is lost is run again elsewhere."""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, Self

from ..errors import DOSError, InputError
from ..rivals.trials import Trial
from .cells import Cell, Order, Outcome, cells_of, run_cell
from .place import tell

__all__ = ["RayCluster"]

log = logging.getLogger(__name__)

_RETRIES = 5  # of a task whose worker or node was lost
_PATIENCE = 5.0  # seconds until an address must answer
_SETTINGS = b"\x04"  # the kind of the frame that both sides of HTTP/2, which Ray speaks, begin with
_GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0" + _SETTINGS + bytes(5)
_LOOK = 10.0  # seconds of silence after which it is asked whether any node could do the work


class RayCluster:
    """A cluster that is running, by its address or "auto", or one of this machine's: "local"."""

    def __init__(self, address: str, *, gpus_per_task: float = 0.0) -> None:
        self.address, self.gpus = address, gpus_per_task
        self.device = "cuda" if gpus_per_task else "cpu"
        self._told: set[str] = set()
        self._ray: Any = None

    def __enter__(self) -> Self:
        self._ray = _ray()
        self._connect()
        return self

    def __exit__(self, *_: object) -> None:
        self._disconnect()

    def _connect(self) -> None:
        _check_answers(self.address)
        options: dict[str, Any] = {}
        if self.address == "local":
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
            options = {"include_dashboard": False}
        try:
            with _handlers_kept(), nullcontext() if options else _soon_tired():
                self._ray.init(
                    self.address,
                    log_to_driver=False,  # workers hand back what they have to say
                    logging_level=logging.ERROR,
                    **options,
                )
        except (ConnectionError, RuntimeError, ValueError, self._ray.exceptions.RayError) as error:
            if "AuthenticationError" in f"{error!r} {error.__cause__}":
                raise _other_token(self.address) from None
            raise _no_cluster(self.address, " ".join(str(error).split()).rstrip(".")) from None

    def _disconnect(self) -> None:
        with _muted():
            self._ray.shutdown()

    def run(self, order: Order) -> Iterator[Trial]:
        if not self._ray.is_initialized():  # the order before was given up
            self._connect()
        task = self._ray.remote(num_cpus=1, num_gpus=self.gpus, max_retries=_RETRIES)(run_cell)
        at_work = {task.remote(cell): cell for cell in cells_of(order, self.device, threads=1)}
        try:
            while at_work:
                done, _ = self._ray.wait(list(at_work), timeout=_LOOK)
                if not done:
                    self._look_for_nodes()
                for reference in done:
                    outcome = self._outcome(reference, at_work.pop(reference))
                    tell(outcome.notes, self._told)
                    yield from outcome.trials
        finally:
            if at_work:  # what nobody waits for ends with the connection; Ray 2.60 was seen to
                self._disconnect()  # abort the command where tasks were cancelled one by one

    def _outcome(self, reference: Any, cell: Cell) -> Outcome:
        errors = self._ray.exceptions
        try:
            found = self._ray.get(reference)
        except errors.RayTaskError as error:  # what the worker raised
            if isinstance(error.cause, DOSError):
                raise error.cause from None
            raise
        except errors.RayError as error:
            first = str(error).strip().partition("\n")[0]
            raise DOSError(
                f"a worker must live to finish {cell}, found that {_RETRIES + 1} were lost over "
                f"it: {first}; if memory is short, take larger nodes. Finished trials are kept"
            ) from None
        assert isinstance(found, Outcome)
        return found

    def _look_for_nodes(self) -> None:
        """A node may come, so this is no error; but whoever waits in vain must know."""
        nodes = [node["Resources"] for node in self._ray.nodes() if node["Alive"]]
        fits = [one for one in nodes if one.get("CPU", 0) >= 1 and one.get("GPU", 0) >= self.gpus]
        if not fits:
            wanted = f"a CPU and {self.gpus:g} GPUs" if self.gpus else "a CPU"
            tell(
                [
                    f"a task needs {wanted}, but no node of the {len(nodes)} in the cluster has "
                    "them; waiting for one (ctrl-C ends it)"
                ],
                self._told,
            )


def _ray() -> Any:
    try:
        import ray
    except ImportError:
        raise InputError(
            "a cluster needs Ray; install it with pip install 'deep-oversampling[ray]', or use "
            "the cores of this machine (--processes)"
        ) from None
    return ray


def _check_answers(address: str) -> None:
    """Ray itself would try for minutes."""
    if address in ("auto", "local"):
        return
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit() or "/" in host:
        raise InputError(
            f"the address of a Ray cluster must be HOST:PORT, auto or local, found {address!r}"
        )
    try:
        with socket.create_connection((host, int(port)), timeout=_PATIENCE) as connection:
            connection.sendall(_GREETING)
            reply = connection.recv(9)
    except (OSError, OverflowError) as error:
        raise _no_cluster(address, str(error)) from None
    if reply[3:4] != _SETTINGS and os.environ.get("RAY_USE_TLS") != "1":  # which hides the greeting
        raise _no_cluster(address, "a server of another kind")


def _no_cluster(address: str, found: str) -> InputError:
    return InputError(
        f"a Ray cluster with the versions of this machine must answer at {address}, found: "
        f"{found}; start one with ray start --head, or begin one here with --ray local"
    )


def _other_token(address: str) -> InputError:
    return InputError(
        f"the Ray cluster at {address} must be given its token, found none, or another one; copy "
        "~/.ray/auth_token from its first machine, or name a copy of it in RAY_AUTH_TOKEN_PATH, "
        "and set RAY_AUTH_MODE=token in the environment of this command"
    )


@contextmanager
def _soon_tired() -> Iterator[None]:
    """Ray would try for 20 seconds, with a line of its own for each."""
    seconds = "RAY_gcs_server_port_wait_time_s"
    with_limit = seconds in os.environ
    os.environ.setdefault(seconds, f"{_PATIENCE:.0f}")
    try:
        yield
    finally:
        if not with_limit:
            del os.environ[seconds]


@contextmanager
def _muted() -> Iterator[None]:
    """Of tasks that are given up Ray's own threads may tell stderr that they failed."""
    sys.stderr.flush()
    stderr = os.dup(2)
    with Path(os.devnull).open("wb") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)


@contextmanager
def _handlers_kept() -> Iterator[None]:
    """Ray puts a handler of SIGTERM in place of ours."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        with suppress(ValueError):  # in another thread there is none to keep
            signal.signal(signal.SIGTERM, before)
