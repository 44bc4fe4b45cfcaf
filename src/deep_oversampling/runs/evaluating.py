"""How well a run does on data, its classes matched by name."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ..data import Splits, fingerprint
from ..errors import InputError
from ..metrics import Report, measure
from ..network import Network, predict
from ..samples import Samples
from .folder import Run

__all__ = ["Evaluation", "choose_split", "evaluate"]


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Measures in the order of the run's classes; NaN for those that the data has none of."""

    classes: tuple[str, ...]
    minority: tuple[str, ...]
    counts: tuple[int, ...]
    report: Report

    @property
    def groups(self) -> dict[str, dict[str, float]]:
        """Means over the classes that the run's plan favours, the others, and all."""
        rare = [name in self.minority for name in self.classes]
        groups = {"minority": rare, "majority": [not one for one in rare]} if any(rare) else {}
        found = {name: self.report.mean(group) for name, group in groups.items()}
        return found | {"all": self.report.mean()}


def choose_split(run: Run, splits: Splits, wanted: str | None) -> tuple[Samples, str]:
    """The samples to evaluate on, and in words which they are.

    Left out: the test split, else the validation split, else what the run itself held out if
    these are its data, else all samples.
    """
    tested = wanted == "test" or (wanted is None and splits.test is not None)
    own = None if tested else _as_the_run_split(run, splits)
    whole = own or splits
    parts = {"test": whole.test, "validation": whole.validation, "train": whole.train}
    if wanted is None:
        wanted = next(name for name, part in parts.items() if part is not None)
        if wanted == "train":
            return splits.train, "all samples"
    samples = parts.get(wanted)
    if samples is None:
        there = ", ".join(name for name, part in parts.items() if part is not None)
        raise InputError(f"--split must be one that {splits.name} has ({there}), found {wanted!r}")
    return samples, f"{wanted}, as the run held it out" if own else wanted


def _as_the_run_split(run: Run, splits: Splits) -> Splits | None:
    """With the validation samples of the run, where it took them from these data."""
    if splits.validation is not None or not run.record.held_out:
        return None
    settings = run.settings
    try:
        split = splits.with_validation(settings.validation, seed=settings.seed)
    except InputError:  # too few samples to be split: others than the run's
        return None
    assert split.validation is not None
    same = fingerprint(split.validation) == run.record.fingerprints.get("validation")
    return split if same else None


def evaluate(run: Run, samples: Samples, network: Network | None = None) -> Evaluation:
    """Predict and measure; labels that the run does not know are refused."""
    record = run.record
    known = {name: j for j, name in enumerate(record.classes)}
    counts = samples.class_counts.tolist()
    there = [name for name, count in zip(samples.classes, counts, strict=True) if count]
    if strangers := [name for name in there if name not in known]:
        raise InputError(
            "every label must be one that the model knows "
            f"({', '.join(map(repr, record.classes[:20]))}), found "
            f"{', '.join(map(repr, strangers[:20]))}; leave those samples out, or train again"
        )
    shape = tuple(samples.x.shape[1:])
    if shape != tuple(record.input_shape) or samples.x.dtype != run.dtype:
        raise InputError(
            f"samples must be as those trained on, {tuple(record.input_shape)} of "
            f"{record.input_dtype}, found {shape} of {samples.x.dtype}; convert them"
        )
    theirs = torch.tensor([known.get(name, 0) for name in samples.classes])
    y = theirs[samples.y.cpu()]
    p = predict(run.network() if network is None else network, samples.x).cpu()
    per_class = torch.bincount(y, minlength=len(known)).tolist()
    minority, classes = tuple(record.minority), tuple(record.classes)
    return Evaluation(classes, minority, tuple(per_class), measure(p, y))
