"""A cell of a table: methods × seeds, trained, read out and measured."""

from __future__ import annotations

import time
from collections.abc import Iterator

import torch

from ..data import Splits
from ..rivals import METHODS
from ..rivals.compare import contents, run_trials
from ..rivals.trials import Setting as TrialSetting
from ..rivals.trials import Trial
from .material import BATCH, NEIGHBOURS, images
from .records import Note, Record, Setting, figure
from .sizes import Sizes

__all__ = ["figures"]

_PART = "cell"
_METHODS = tuple(METHODS[name] for name in ("cnn", "cnn-cl", "dos", "dos-lr", "dos-knn"))


def figures(device: torch.device, sizes: Sizes) -> Iterator[Record | Note]:
    """Seconds from samples in memory to the measures of all trials."""
    _run(_splits(200, 100, sizes), "none", 1, 2, device)  # libraries are loaded when first used
    splits = _splits(sizes.cell_train, sizes.cell_test, sizes)
    start = time.perf_counter()
    trials = _run(splits, "drop:4:0.99", sizes.cell_rounds, sizes.cell_seeds, device)
    seconds = time.perf_counter() - start
    for reason in {trial.left_out or trial.lost for trial in trials} - {""}:
        yield Note(_PART, reason)
    setting: Setting = {
        "methods": len(_METHODS),
        "seeds": sizes.cell_seeds,
        "train": sizes.cell_train,
        "T": sizes.cell_rounds,
    }
    whole = figure(_PART, "all trials", setting, seconds, "s")
    yield whole
    trainings = {method.training.name: method.name for method in _METHODS}  # each is done once
    training = sum(trial.seconds for trial in trials if trial.method in trainings.values())
    yield figure(_PART, "of it training", setting, training, "s", to=whole)
    rest = max(0.0, seconds - training)
    yield figure(_PART, "of it subsets, probes, measures", setting, rest, "s", to=whole)


def _splits(train: int, test: int, sizes: Sizes) -> Splits:
    shape = (1, sizes.side, sizes.side)
    parts = (images([m // 10] * 10, shape, seed=s) for s, m in enumerate((train, test)))
    return Splits("generated", next(parts), test=next(parts))


def _run(
    splits: Splits, imbalance: str, rounds: int, seeds: int, device: torch.device
) -> list[Trial]:
    setting = TrialSetting(
        data=splits.name,
        contents=contents(splits),
        imbalance=imbalance,
        model="auto",
        k=NEIGHBOURS,
        rounds=rounds,
        batch_size=BATCH,
        learning_rate=0.01,
        test_share=0.2,
    )
    return list(run_trials(splits, setting, _METHODS, range(seeds), device=device))
