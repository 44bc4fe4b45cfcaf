"""Trials that a stopped run still lacks: only these are run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from ..data import Splits
from ..network import pick_device
from ..samples import Samples
from ..together import how_many
from . import compare
from .method import Method
from .trials import Setting, Trial

__all__ = ["Missing", "batches", "missing_trials", "run_missing"]

Missing = dict[int, list[Method]]  # seed -> methods


def missing_trials(
    found: Sequence[Trial], methods: Sequence[Method], seeds: Sequence[int]
) -> Missing:
    """What is not among those found; what was left out is tried again."""
    done = {(trial.method, trial.seed) for trial in found if not trial.left_out}
    return {s: [m for m in methods if (m.name, s) not in done] for s in seeds}


def run_missing(
    splits: Splits,
    setting: Setting,
    missing: Missing,
    *,
    device: torch.device | str | None = None,
) -> Iterator[Trial]:
    """Run them, as many seeds at once as the device has memory for."""
    at_once = how_many(len(missing), pick_device(device), _bytes(splits.train))
    for methods, seeds in batches(missing, at_once):
        yield from compare.run_trials(splits, setting, methods, seeds, device=device)


def batches(missing: Missing, at_once: int) -> Iterator[tuple[list[Method], list[int]]]:
    """Methods, and seeds that still lack just these, as many as can be trained at once."""
    alike: dict[tuple[str, ...], list[int]] = {}
    for seed, left in missing.items():
        alike.setdefault(tuple(method.name for method in left), []).append(seed)
    for seeds in alike.values():
        for start in range(0, len(seeds) if missing[seeds[0]] else 0, at_once):
            yield missing[seeds[0]], seeds[start : start + at_once]


def _bytes(samples: Samples) -> int:
    return len(samples) * samples.x.shape[1:].numel() * samples.x.dtype.itemsize
