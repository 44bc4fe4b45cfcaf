"""Before the first round: what is trained on, by which plan, with which network; all checked."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.optim import SGD

from ..augmentation import Augmentation, CropAndFlip
from ..checkpoint import start_from
from ..checks import check_augment, check_outputs
from ..data import Splits
from ..data.load import check_size
from ..duration import choose_rounds
from ..errors import InputError
from ..fitting import fit_many
from ..network import Network, Normalize, pick_device
from ..plan import Plan, default_k, default_tau
from ..samples import Samples
from ..selection import Candidate, select
from ..stopping import EarlyStopping
from ..zoo import choose_model, make_network
from .settings import Settings
from .without_gpu import NOTE, settled

__all__ = ["PIECES", "Task", "prepare"]

PIECES = 0.5  # of pictures, where they are asked for

_COLOURED, _CROPPED = 3, 32  # channels and pixels from which on pictures count as photographs
_FEW = 10  # samples of a class that tell little
_SMALL = ("lenet", "mlp")  # networks that pieces do no good to (docs/safe.md)
_RESIDUAL = ("resnet18", "resnet32")  # the kind that gains by them
_LONG = 32  # rounds of DOS in which they gained, and τ = 1; in 8 it did harm (docs/modern.md)


@dataclass(frozen=True, eq=False)
class Task:
    """All that a training starts from."""

    settings: Settings  # with nothing left open that the data decides
    splits: Splits
    train: Samples
    validation: Samples
    plan: Plan
    network: Network  # with its initial weights
    augment: Augmentation | None
    device: torch.device
    candidates: tuple[Candidate, ...] = ()  # for k = "auto", the best first
    notes: tuple[str, ...] = ()  # what a reader should know

    @property
    def rounds(self) -> int:
        assert self.settings.rounds is not None
        return self.settings.rounds

    @property
    def presented(self) -> int:
        """Σ r_j m_j: the rows of a multi-task round."""
        return int(self.plan.rows(self.train.class_counts).sum())

    @property
    def stop(self) -> EarlyStopping | None:
        """Of both trainings, each by itself."""
        return _stop(self.settings, self.plan)

    @property
    def options(self) -> dict[str, Any]:
        """What both trainings are given, alike."""
        return _options(self.settings, self.augment, self.device)

    @property
    def form(self) -> dict[str, Any]:
        """What DOS is given, and plain training is not."""
        return _form(self.settings)


def prepare(
    settings: Settings,
    splits: Splits,
    chosen: Sequence[Candidate] = (),  # for k = "auto", where it was chosen before
) -> Task:
    """Settle everything; only k = "auto" takes long, as it trains every candidate."""
    x = splits.train.x
    if not x.is_floating_point() and x.dtype != torch.uint8:
        raise InputError(f"samples must be floats or uint8, found {x.dtype}; store them as float32")
    check_size(splits, settings.size)
    device, held = pick_device(settings.device), splits.validation is None
    splits = splits.with_validation(settings.validation, seed=settings.seed)
    train, validation = splits.train, splits.validation
    assert validation is not None
    shape = tuple(train.x.shape[1:])
    settings, modest = settled(settings, shape)
    notes = [NOTE] if modest else []
    notes += [f"{settings.validation:.0%} of every class is held out to validate on"] * held
    few = [name for name, m in zip(train.classes, validation.class_counts, strict=True) if m < _FEW]
    if few:
        notes.append(
            f"fewer than {_FEW} validation samples, so their measures are rough: {_some(few)}"
        )
    augment = settings.augment
    if augment is None:
        augment = len(shape) == 3 and shape[0] == _COLOURED and min(shape[1:]) >= _CROPPED
        if augment:
            notes.append("pictures are shifted and mirrored at random (not with --no-augment)")
    pieces = bool(settings.pieces)
    for option in ("augment", "pieces"):
        if getattr(settings, option) and len(shape) != 3:
            raise InputError(
                f"{option} must be of pictures, found samples of shape {shape}; leave --{option} "
                "out"
            )
    k = default_k(augmented=augment and not pieces) if settings.k is None else settings.k
    batch_size = min(settings.batch_size or 60, len(train))
    rounds = settings.rounds or choose_rounds(len(train), batch_size)
    model = choose_model(shape) if settings.model == "auto" else settings.model
    if pieces and model in _SMALL:
        notes.append(
            f"pieces are for residual networks: {model} is mostly better without (or say --model "
            "resnet32)"
        )
    if pieces and rounds < _LONG and settings.margin > default_tau(pieces):
        notes.append(
            f"pieces with such a margin do harm in short trainings: T = {rounds} is little (say "
            f"--rounds {_LONG} or more, or leave --tau out)"
        )
    by_default = settings.k is None and not k
    cautious = settings.k is None and not pieces if settings.cautious is None else settings.cautious
    settings = replace(
        settings,
        model=model,
        batch_size=batch_size,
        rounds=rounds,
        augment=augment,
        k=k,
        cautious=cautious,
        tau=settings.margin if pieces else settings.tau,  # whatever the default will be one day
    )
    changed = CropAndFlip(max(1, min(shape[1:]) // 8)) if augment else None
    network = make_network(
        settings.model,
        shape,
        train.n,
        normalize=Normalize.of(train.x),
        seed=settings.seed,
        pretrained=settings.pretrained,
    )
    if settings.weights:
        left = start_from(network, settings.weights)
        rest = f"; new: {', '.join(left)}" if left else ""
        notes.append(f"weights from {Path(settings.weights).name}{rest}")
    # what a training would refuse is told before candidates are trained, and a folder is cleared
    check_outputs(network, train, validation)
    check_augment(changed, train)
    rare = _plan(train.class_counts, 1, 1.0, pieces=pieces, names=train.classes)  # whatever k is
    if stop := _stop(settings, rare):
        stop.check(rare, validation)
    r_times, candidates = 1.0, list(chosen)
    if isinstance(k, str) and not chosen:
        options = _options(settings, changed, device) | _form(settings)
        train_all = partial(fit_many, rounds=rounds, **options)
        candidates = select(
            lambda: network,
            train,
            partial(_plan, pieces=pieces),
            train_all,
            seed=settings.seed,
            batch_size=batch_size,
        )
    if isinstance(k, str):
        k, r_times = candidates[0].k, candidates[0].r_times
        chose = f"k = {k} was" if pieces else f"k = {k} and r = {r_times:g}/R were"
        notes.append(f"{chose} chosen on a part of the samples")
    counts = train.class_counts
    plan = _plan(counts, k, r_times, pieces=pieces, names=train.classes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the note says it in one line
        fitted = plan.fitted_to(counts, train.classes)
    fitted = fitted.cautious() if cautious else fitted
    fewer = [train.classes[j] for j in (fitted.k < plan.k).nonzero().flatten().tolist()]
    if fewer:
        notes.append(f"fewer than {k} neighbours in their class: {_some(fewer)}")
    margin = settings.margin if bool((counts != counts[0]).any()) else 0.0  # else it is a constant
    if margin:
        notes.append(f"rare classes have a margin, τ = {margin:g}")
    if by_default and bool(fitted.minority.any()):
        notes.append(
            "rare classes are over-sampled without neighbours, which do harm where pictures are "
            "shifted and mirrored (else say --k 5)"
        )
        if settings.pieces is None and model in _RESIDUAL and rounds >= _LONG:
            notes.append(
                f"in so long a training {model} may gain by pieces of neighbours: --pieces"
            )
    if not (bool(fitted.k.any()) or bool((fitted.r != 1).any()) or margin):
        notes.append("no class is rare: nothing is over-sampled, and this is plain training")
        settings = replace(settings, baseline=False)  # it would be the same once more
    return Task(
        settings,
        splits,
        train,
        validation,
        fitted,
        network,
        changed,
        device,
        tuple(candidates),
        tuple(notes),
    )


def _plan(
    counts: Tensor, k: int, r_times: float, *, pieces: bool, names: Sequence[str] | None = None
) -> Plan:
    if pieces:  # r follows from the counts alone
        return Plan.in_part(counts, k, names=names)
    return Plan.automatic(counts, k, r_times=r_times, names=names)


def _stop(settings: Settings, plan: Plan) -> EarlyStopping | None:
    if settings.patience is None:
        return None
    group = "minority" if bool(plan.minority.any()) else "majority"
    return EarlyStopping(settings.patience, group=group)


def _some(names: list[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def _options(
    settings: Settings, augment: Augmentation | None, device: torch.device
) -> dict[str, Any]:
    rate, decay = settings.learning_rate, settings.weight_decay
    return {
        "batch_size": settings.batch_size,
        "optimizer": partial(SGD, lr=rate, momentum=0.9, weight_decay=decay),
        "schedule": None if settings.schedule == "constant" else settings.schedule,
        "augment": augment,
        "device": device,
    }


def _form(settings: Settings) -> dict[str, Any]:
    return {"pieces": PIECES if settings.pieces else 0.0, "tau": settings.margin}
