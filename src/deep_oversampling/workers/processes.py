"""Trials in several processes of this machine; one that is killed is replaced."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import get_context, parent_process, resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Self

import torch

from ..errors import DOSError, InputError
from ..rivals.trials import Trial
from .cells import Cell, Order, Outcome, cells_of, run_cell
from .place import tell

__all__ = ["Processes"]

log = logging.getLogger(__name__)

_DEATHS = 3  # of workers over one cell: then it is the cell


@dataclass(eq=False)
class _Worker:
    process: SpawnProcess
    connection: Connection
    cell: Cell | None = None  # that it is at work on

    def give(self, cell: Cell) -> None:
        self.cell = cell
        with suppress(OSError):  # it is dead; whoever waits for it finds that out
            self.connection.send(cell)

    def end(self) -> str:
        """Kill it, if it lives, and say how it ended."""
        self.process.kill()
        self.process.join()
        self.connection.close()
        code = self.process.exitcode or 0
        return f"signal {-code}" if code < 0 else f"exit code {code}"


class Processes:
    """So many processes, each with its share of the cores and its own copy of the data."""

    device = "cpu"

    def __init__(self, count: int) -> None:
        if count < 1:
            raise InputError(f"there must be one process or more, found {count}")
        self.count = count
        self._workers: list[_Worker] = []
        self._told: set[str] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        while self._workers:
            self._workers.pop().end()

    def run(self, order: Order) -> Iterator[Trial]:
        share = max(1, (os.cpu_count() or 1) // self.count)
        threads = min(torch.get_num_threads(), share)
        waiting, deaths = deque(cells_of(order, self.device, threads)), Counter[Cell]()
        try:
            while self._hand_out(waiting):
                for worker in self._ready():
                    outcome = self._outcome(worker, waiting, deaths)
                    if outcome:
                        tell(outcome.notes, self._told)
                        yield from outcome.trials
        finally:  # what nobody waits for any more is not computed
            for worker in [one for one in self._workers if one.cell]:
                self._workers.remove(worker)
                worker.end()

    def _hand_out(self, waiting: deque[Cell]) -> bool:
        """Give every idle worker a cell; whether any is at work."""
        idle = sum(not worker.cell for worker in self._workers)
        for _ in range(min(self.count - len(self._workers), len(waiting) - idle)):
            with _unheard():
                self._workers.append(_started())
        for worker in self._workers:
            if waiting and not worker.cell:
                worker.give(waiting.popleft())
        return any(worker.cell for worker in self._workers)

    def _ready(self) -> list[_Worker]:
        busy = {worker.connection: worker for worker in self._workers if worker.cell}
        return [busy[connection] for connection in wait(list(busy)) if connection in busy]

    def _outcome(
        self, worker: _Worker, waiting: deque[Cell], deaths: Counter[Cell]
    ) -> Outcome | None:
        """None where the worker has died: its cell is run again, by another."""
        cell, worker.cell = worker.cell, None
        assert cell
        try:
            found = worker.connection.recv()
        except (EOFError, OSError):
            self._workers.remove(worker)
            self._died(cell, worker.end(), deaths)
            waiting.appendleft(cell)
            return None
        if isinstance(found, Exception):
            raise found
        assert isinstance(found, Outcome)
        return found

    def _died(self, cell: Cell, how: str, deaths: Counter[Cell]) -> None:
        deaths[cell] += 1
        if deaths[cell] == _DEATHS:
            raise DOSError(
                f"a worker must live to finish {cell}, found that {_DEATHS} ended over it, the "
                f"last by {how}; if memory is short, take fewer processes. Finished trials are kept"
            )
        log.warning("a worker was lost (%s); %s is run again", how, cell)


def _started() -> _Worker:
    context = get_context("spawn")  # a fork would copy threads that hold locks
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(theirs,), daemon=True)
    process.start()
    theirs.close()  # so that the end of the process is the end of what can be read from it
    return _Worker(process, ours)


@contextmanager
def _unheard() -> Iterator[None]:
    """What is started here never hears ctrl-C and SIGTERM: whoever started it decides."""
    if sys.platform == "win32":  # there is no mask that it could inherit
        yield
        return
    resource_tracker.ensure_running()  # else it comes with the first process, and lifts the mask
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _work(connection: Connection) -> None:
    """Cell after cell, for as long as there is somebody who asks."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    while True:
        try:
            cell = connection.recv()
        except EOFError:
            return
        try:
            connection.send(run_cell(cell))
        except Exception as error:
            connection.send(_portable(error))


def _portable(error: Exception) -> Exception:
    """Ours can be sent; of another, which may hold anything, its words."""
    if isinstance(error, DOSError):
        return error
    return DOSError(f"{type(error).__name__} in a worker: {error}")


def _end_with_parent() -> None:
    parent = parent_process()
    if parent:
        parent.join()
        os._exit(1)  # in the midst of a training: nobody would hear of it
