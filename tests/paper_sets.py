"""The paper's sets in tiny, generated, and trials on them made up or really run."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from deep_oversampling import InputError, Samples
from deep_oversampling.data import Splits
from deep_oversampling.metrics import MEASURES
from deep_oversampling.paper import figures, run
from deep_oversampling.rivals import compare
from deep_oversampling.rivals.trials import Setting
from some_trials import left_out, trial

SHAPES = {
    "mnist": (1, 28, 28),
    "mnist-back-rotation": (1, 28, 28),
    "svhn": (3, 32, 32),
    "cifar10": (3, 32, 32),
    "stl10": (3, 96, 96),
}
DIGITS = tuple("0123456789")


def pictures(shape: tuple[int, int, int], of_each: int, seed: int) -> Samples:
    y = torch.arange(10).repeat_interleave(of_each)
    generator = torch.Generator().manual_seed(seed)
    noise = torch.randint(50, (len(y), *shape), generator=generator)
    return Samples((noise + 20 * y.view(-1, 1, 1, 1)).to(torch.uint8), y, DIGITS)


class Shelf:
    """Stands in for `load`: which sets are there, and how often each was taken."""

    def __init__(self, missing: tuple[str, ...] = ()) -> None:
        self.missing, self.taken, self.of_each = missing, [], 20

    def load(self, name: str, **folders: object) -> Splits:
        self.taken.append(name)
        if name in self.missing:
            raise InputError(f"the set must have the file {name}/train.bin, found none")
        shape = SHAPES[name]
        train, test = pictures(shape, self.of_each, 0), pictures(shape, 3, 1)
        return Splits(name.upper(), train, validation=test, test=test)


class Trainings:
    """Stands in for `run_trials`: what was asked for; the numbers are made up from the seed."""

    def __init__(self) -> None:
        self.done: list[tuple[str, str, int]] = []
        self.settings: list[Setting] = []
        self.looks: list[str] = []
        self.stop_after: int | None = None
        self.left_out: dict[str, str] = {}
        self.values: dict[str, float] = {}  # method -> every measure, near enough

    def look(self, splits: object, setting: Setting, device: object) -> dict[str, Any]:
        self.looks.append(f"{setting.data} {setting.imbalance}")
        return made_up_look(splits, setting, device)

    def run(self, splits, setting, methods, seeds, **options) -> Iterator:
        self.settings.append(setting)
        for method in methods:
            for seed in seeds:
                if self.stop_after is not None and len(self.done) >= self.stop_after:
                    raise KeyboardInterrupt
                self.done.append((f"{setting.data} {setting.imbalance}", method.name, seed))
                if reason := self.left_out.get(method.name):
                    yield left_out(method.name, seed, reason, setting=setting)
                    continue
                value = self.values.get(method.name, 0.5) + 0.01 * seed
                yield made_up(method.name, seed, value, setting=setting)


def made_up(method: str, seed: int, value: float, **others: object):
    minority = () if others["setting"].imbalance == "none" else (0, 4, 5, 6)
    measures = dict.fromkeys(MEASURES, (value,) * 10)
    values = {"minority": minority, "samples": (20,) * 10, "measures": measures}
    values["where"] = {"torch": "2", "hardware": "a machine"}
    return trial(method, seed, **{**values, "seconds": 2.0 if method == "dos" else 1.0, **others})


def made_up_look(splits: object, setting: Setting, device: object) -> dict[str, Any]:
    """Two rounds, a curve of three points and ten embeddings."""
    points = [[round(0.1 * j, 1), round((-1) ** j * 0.05 * j, 2)] for j in range(10)]
    seen = {"within": [0.9, 0.5], "curve": [[0.0, 1.0], [0.5, 0.8], [1.0, 0.1]]}
    seen |= {"before": points, "after": points[::-1]}
    return {
        "minority": [0, 4, 5, 6],
        "labels": list(range(10)),
        "methods": dict.fromkeys(("cnn", "ros", "dos"), seen),
    }


@pytest.fixture
def shelf(monkeypatch: pytest.MonkeyPatch) -> Shelf:
    shelf = Shelf()
    monkeypatch.setattr(run, "load", shelf.load)
    return shelf


@pytest.fixture
def trainings(monkeypatch: pytest.MonkeyPatch, shelf: Shelf, tmp_path: Path) -> Trainings:
    trainings = Trainings()
    monkeypatch.setattr(compare, "run_trials", trainings.run)
    monkeypatch.setattr(run, "look", trainings.look)
    monkeypatch.setattr(figures, "draw_figures", lambda stored, out: None)  # it takes its time
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    return trainings
