"""A cell: the trials that one worker runs at a time, and what it must know to run them."""

from __future__ import annotations

import logging
import platform
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch

from ..data import Splits
from ..errors import InputError
from ..rivals import METHODS
from ..rivals.compare import by_training, contents, versions
from ..rivals.missing import Missing, batches, run_missing
from ..rivals.trials import Setting, Trial

__all__ = ["Cell", "Order", "Outcome", "cells_of", "run_cell"]

Source = Callable[[], Splits]  # it is sent to workers, so it must be one that can be pickled

_PACKAGE = __name__.partition(".")[0]
_LOADED: dict[str, Splits] = {}  # fingerprint -> what this worker has loaded last


@dataclass(frozen=True, eq=False)
class Order:
    """Trials of one setting that are to be run."""

    splits: Splits
    setting: Setting
    missing: Missing
    source: Source  # how a worker loads the same data


@dataclass(frozen=True, eq=False)
class Cell:
    """Methods that share one training, and seeds that may be stacked."""

    source: Source
    setting: Setting
    methods: tuple[str, ...]
    seeds: tuple[int, ...]
    device: str
    threads: int
    versions: dict[str, str] = field(default_factory=versions)  # of whoever wants it to be run

    def __str__(self) -> str:
        return f"{', '.join(self.methods)} with seed {', '.join(map(str, self.seeds))}"


@dataclass(frozen=True)
class Outcome:
    """What a worker hands back: it writes no file and says nothing itself."""

    trials: list[Trial]
    notes: list[str]


def cells_of(order: Order, device: str, threads: int) -> list[Cell]:
    """As small as they may be: of one seed on the CPU, of all seeds on a GPU, which stacks them."""
    at_once = 1 if device == "cpu" else len(order.missing)
    return [
        Cell(
            order.source, order.setting, tuple(m.name for m in group), tuple(seeds), device, threads
        )
        for methods, seeds in batches(order.missing, at_once)
        for group in by_training(methods)
    ]


def run_cell(cell: Cell) -> Outcome:
    """In a worker. Other versions and other data than those of the command are refused."""
    _check_versions(cell.versions)
    torch.set_num_threads(cell.threads)
    notes: list[str] = []
    with _noting(notes):
        missing = {seed: [METHODS[name] for name in cell.methods] for seed in cell.seeds}
        trials = list(run_missing(_splits(cell), cell.setting, missing, device=cell.device))
    return Outcome(trials, notes)


def _check_versions(wanted: dict[str, str]) -> None:
    """The same releases; torch for the CPU and for a GPU may be together in a cluster."""
    found = versions()
    other = [n for n in found if found[n].partition("+")[0] != wanted[n].partition("+")[0]]
    if other:
        difference = ", ".join(f"{name} {found[name]} instead of {wanted[name]}" for name in other)
        raise InputError(
            f"every node must have the versions of the command, found on {platform.node()} "
            f"{difference}; install the same there, or take the node out"
        )


def _splits(cell: Cell) -> Splits:
    wanted = cell.setting.contents
    if wanted not in _LOADED:
        _LOADED.clear()  # the one before, as memory may not hold both
        splits = cell.source()
        if (found := contents(splits)) != wanted:
            raise InputError(
                f"every node must find the same data, found on {platform.node()} another "
                f"{cell.setting.data} (its fingerprint is {found} instead of {wanted}); put the "
                "same files under the same path there"
            )
        _LOADED[wanted] = splits
    return _LOADED[wanted]


@contextmanager
def _noting(notes: list[str]) -> Iterator[None]:
    """What would be warned of or logged, instead of a line on a terminal far away."""
    handler, log = _Noted(notes), logging.getLogger(_PACKAGE)
    log.addHandler(handler)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("default")
            yield
    finally:
        log.removeHandler(handler)
    notes += [str(one.message) for one in caught]


class _Noted(logging.Handler):
    def __init__(self, notes: list[str]) -> None:
        super().__init__(logging.WARNING)
        self._notes = notes

    def emit(self, record: logging.LogRecord) -> None:
        self._notes.append(record.getMessage())
