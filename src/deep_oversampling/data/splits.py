"""Training, validation and test samples of one source, kept apart."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Integral, Real

import torch

from ..errors import InputError
from ..samples import Samples
from ..seeding import streams
from ..views import View

__all__ = ["Skipped", "Splits", "hold_out"]


@dataclass(frozen=True)
class Skipped:
    """A file that could not be used, and why."""

    file: str
    reason: str


@dataclass(frozen=True, eq=False)
class Splits:
    """What a source holds. Choices are made on ``validation``; ``test`` is for the end."""

    name: str  # "MNIST-back-rotation (re-created)": what a table or report has to say
    train: Samples
    validation: Samples | None = None
    test: Samples | None = None
    skipped: tuple[Skipped, ...] = ()
    files: tuple[str, ...] = ()  # of pictures, in the order they are stored in

    def file_of(self, samples: Samples, row: int) -> str:
        """The file of a sample of one of the splits, or of a subset of it; else its row."""
        if not self.files or not isinstance(samples.x, View):
            return f"row {row}"
        return self.files[int(samples.x.rows[row])]

    def with_validation(self, share: float = 0.1, *, seed: int = 0) -> Splits:
        """The same, with a share of the training samples to validate on where there are none."""
        if self.validation is not None:
            return self
        train, validation = hold_out(self.train, share, seed=seed)
        return replace(self, train=train, validation=validation)


def hold_out(samples: Samples, share: float = 0.1, *, seed: int = 0) -> tuple[Samples, Samples]:
    """Split off a share of every class, at least one sample, at random: (the rest, held out)."""
    if not isinstance(share, Real) or not 0 < share < 1 or not isinstance(seed, Integral):
        raise InputError(
            "share must lie between 0 and 1 and the seed be a whole number, found "
            f"share={share!r}, seed={seed!r}"
        )
    if isinstance(samples.x, View) and len(samples.x.rows.unique()) < len(samples):
        raise InputError(
            "samples must be distinct to be split, found copies, of which some would be held out "
            "and others trained on; hold out first and copy afterwards"
        )
    alone = [samples.classes[j] for j in (samples.class_counts == 1).nonzero().flatten().tolist()]
    if alone:
        raise InputError(
            "every class must have two samples or more to be split, found a single one of "
            f"{', '.join(map(repr, alone))}; add samples, leave the class out, or bring "
            "validation or test data of your own"
        )
    generator = streams(int(seed))("validation")
    held = torch.zeros(len(samples), dtype=torch.bool)
    y = samples.y.cpu()
    for j, count in enumerate(samples.class_counts.tolist()):
        rows = (y == j).nonzero().flatten()
        take = min(max(1, round(share * count)), count - 1)
        if count:
            held[rows[torch.randperm(count, generator=generator)[:take]]] = True
    return samples.subset((~held).nonzero().flatten()), samples.subset(held.nonzero().flatten())
