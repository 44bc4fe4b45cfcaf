"""Run what is missing of an experiment and keep it, a line a trial."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import torch

from ..data import Splits, hold_out, load, mirrored_and_rotated
from ..data.cache import cache_folder, data_folder
from ..locking import Lock
from ..network import pick_device
from ..rivals import METHODS
from ..rivals.compare import contents, where
from ..rivals.missing import Missing, missing_trials
from ..rivals.trials import (
    Setting,
    Trial,
    append_header,
    append_trial,
    check_writable,
    read_headers,
)
from ..samples import Samples
from ..seeding import streams
from ..workers import Here, Order, Place
from .experiments import Experiment
from .looks import look
from .settings import LEARNING_RATE, QUICK, SCHEDULE, SETS, rates, rates_by_kind
from .store import (
    datasets_file,
    figures_folder,
    read_datasets,
    read_noting,
    read_stored,
    trials_file,
    write_json,
)

__all__ = ["Job", "Laboratory", "load_set"]

_TEST_SHARE = 0.2  # that of dos compare; the paper's sets have test samples of their own


@dataclass(frozen=True, eq=False)
class Job:
    """An experiment, and what of it is still to be run."""

    experiment: Experiment
    splits: Splits
    setting: Setting
    path: Path
    stored: list[Trial]
    missing: Missing
    notes: list[str]  # about lines of the file that could not be read

    @property
    def trials(self) -> int:
        """To be run."""
        return sum(map(len, self.missing.values()))


class Laboratory:
    """Loads every set once and moves it to the device once, however many experiments use it."""

    def __init__(
        self,
        out: Path,
        *,
        trials: int = 10,
        quick: bool = False,
        data_dir: Path | None = None,
        cache: Path | None = None,
        device: torch.device | str | None = None,  # of what is done in this process
        workers: Place | None = None,  # else trials are run in this process, too
    ) -> None:
        self.out, self.quick = out, quick
        self.data_dir, self.cache = data_folder(data_dir).absolute(), cache_folder(cache).absolute()
        self.seeds = range(min(trials, QUICK.trials) if quick else trials)
        self.place = pick_device(device)
        self.workers = workers or Here(device)
        self._loaded: dict[tuple[str, int], tuple[Splits, str]] = {}

    def job(self, experiment: Experiment) -> Job:
        """What is to be done; refused where the file holds trials of another setting."""
        splits, print_ = self._set(experiment.data, experiment.copies)
        setting = self._setting(experiment, splits.name, print_)
        path, notes = trials_file(self.out, experiment.name), list[str]()
        stored = read_noting(path, notes, setting)
        methods = [METHODS[name] for name in experiment.methods]
        missing = missing_trials(stored, methods, self.seeds)
        return Job(experiment, splits, setting, path, stored, missing, notes)

    def run(self, job: Job) -> Iterator[Trial]:
        """One trial after the other, each stored before the next begins."""
        if not job.trials:
            return
        check_writable(job.path)
        with Lock(job.path, of=str(job.path), keep=True) as lock:
            yield from self._run(job, lock)

    def _run(self, job: Job, lock: Lock) -> Iterator[Trial]:
        known = {(t.method, t.seed, t.left_out) for t in job.stored if t.left_out}
        last = read_headers(job.path)[-1:]
        for trial in self.workers.run(self._order(job)):
            lock.check_there()
            header = self._header(job, trial.where)  # a cluster may have several kinds of nodes
            if header not in last:
                append_header(job.path, header)
                last = [header]
            if (trial.method, trial.seed, trial.left_out) not in known:
                append_trial(job.path, trial)  # but a reason that stands there already
            yield trial

    def _order(self, job: Job) -> Order:
        of, copies = job.experiment.data, job.experiment.copies
        source = partial(load_set, of, copies, **self._from, device=self.workers.device)
        return Order(job.splits, job.setting, job.missing, source)

    def look_at(self, name: str) -> None:
        """Write down what a set is and how it is used: the paper's table of data sets."""
        splits, _ = self._set(name)
        used = asdict(SETS[name]) | {"rounds": self._rounds(name)}
        used |= {"rates": rates_by_kind(name)}
        facts = used | {
            "found": splits.name,
            "classes": splits.train.n,
            "train": len(splits.train),
            "test": 0 if splits.test is None else len(splits.test),
            "shape": list(splits.train.x.shape[1:]),
        }
        stored = read_datasets(self.out) | {name: facts}
        ordered = {name: stored[name] for name in SETS if name in stored}
        write_json(datasets_file(self.out), ordered)

    def look_into(self, experiment: Experiment) -> None:
        """One training of each kind, for the figures; not again if it is there."""
        splits, print_ = self._set(experiment.data)
        setting = self._setting(experiment, splits.name, print_)
        about = {"quick": self.quick, "setting": _plain(setting)}
        path = figures_folder(self.out) / f"{experiment.name}.json"
        there = read_stored(self.out).looks.get(experiment.name, {})
        if any(there.get(key) != value for key, value in about.items()):
            where_and_when = {"where": where(self.place), "date": _today()}
            write_json(path, about | where_and_when | look(splits, setting, self.place))

    def _set(self, name: str, copies: int = 1) -> tuple[Splits, str]:
        """With its fingerprint."""
        if (name, copies) not in self._loaded:
            if copies == 1:
                splits = load_set(name, **self._from, device=self.place)
            else:
                splits = _copied(self._set(name)[0], copies, few=self.quick)
            self._loaded[name, copies] = splits, contents(splits)
        return self._loaded[name, copies]

    @property
    def _from(self) -> dict[str, Any]:
        return {"quick": self.quick, "data_dir": self.data_dir, "cache": self.cache}

    def _rounds(self, name: str) -> int:
        return QUICK.rounds(name) if self.quick else SETS[name].rounds

    def _setting(self, experiment: Experiment, name: str, print_: str) -> Setting:
        of = SETS[experiment.data]
        return Setting(
            data=name,
            contents=print_,
            imbalance=experiment.imbalance,
            model=of.layers,
            k=experiment.k,
            rounds=self._rounds(experiment.data),
            batch_size=of.batch_size,
            learning_rate=LEARNING_RATE,
            schedule=SCHEDULE,
            rates=rates(experiment.data, experiment.imbalance, experiment.copies),
            test_share=_TEST_SHARE,
            plan=experiment.plan,
        )

    def _header(self, job: Job, where: dict[str, str]) -> dict[str, Any]:
        return {
            "experiment": job.experiment.name,
            "quick": self.quick,
            "date": _today(),
            "where": where,
            "setting": _plain(job.setting),
        }


def load_set(
    name: str,
    copies: int = 1,
    *,
    quick: bool,
    data_dir: Path,
    cache: Path,
    device: torch.device | str,
) -> Splits:
    """A set as an experiment uses it."""
    splits = replace(load(name, data_dir=data_dir, cache=cache), validation=None)
    splits = _moved(_small(splits) if quick else splits, device)
    return splits if copies == 1 else _copied(splits, copies, few=quick)


def _moved(splits: Splits, device: torch.device | str) -> Splits:
    try:
        test = None if splits.test is None else splits.test.to(device)
        return replace(splits, train=splits.train.to(device), test=test)
    except torch.OutOfMemoryError:  # then each experiment moves what it needs
        return splits


def _plain(setting: Setting) -> dict[str, Any]:
    """As it is read again from a file: with lists in place of tuples."""
    found: dict[str, Any] = json.loads(json.dumps(asdict(setting)))
    return found


def _today() -> str:
    return datetime.now(UTC).date().isoformat()


def _small(splits: Splits) -> Splits:
    most = QUICK.values // splits.train.x.shape[1:].numel()
    test = None if splits.test is None else _some(splits.test, min(QUICK.test, most))
    train = _some(splits.train, min(QUICK.train, most))
    return replace(splits, name=f"{splits.name}, a part", train=train, test=test)


def _some(samples: Samples, size: int) -> Samples:
    """A share of every class, always the same one."""
    return hold_out(samples, size / len(samples))[1] if size < len(samples) else samples


def _copied(splits: Splits, times: int, *, few: bool) -> Splits:
    """Test images stay as they are; copies are made once, as every trial would turn them again."""
    train = _some(splits.train, len(splits.train) // times) if few else splits.train
    train = mirrored_and_rotated(train, times, generator=streams(0)("copies"))
    train = train.with_x(train.x[:])
    return replace(splits, name=f"{splits.name}, ten-fold", train=train)
