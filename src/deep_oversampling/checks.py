"""What a training is given, checked at the door: before the first round, not after hours."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from numbers import Integral, Real
from typing import Any

import torch
from torch import Tensor
from torch.optim import LBFGS, Optimizer

from .augmentation import Augmentation
from .engine import Engine
from .errors import DOSError, InputError
from .losses import Loss, entropy
from .network import Network, predict
from .objectives import each_row
from .peers import Peers
from .pieces import check_share
from .plan import Plan
from .resuming import Checkpoints
from .samples import Samples
from .stages import Schedule, turn
from .stopping import EarlyStopping

__all__ = [
    "check_apart",
    "check_asked",
    "check_augment",
    "check_each",
    "check_given",
    "check_loss",
    "check_numbers",
    "check_outputs",
    "check_pieces",
    "check_shared",
    "check_steps",
    "made_loss",
]

_DATASET = "; data.from_dataset(dataset) makes them of a torch dataset"
_WHOLE = (Integral, "a whole number", "")
_KINDS: dict[str, tuple[Any, str, str]] = {  # what it must be, in words, and a hint
    "network": (
        Network,
        "a Network",
        "; Network.from_model(model) splits a model at its last layer",
    ),
    "samples": (Samples, "Samples", _DATASET),
    "plan": (Plan, "a Plan", "; make one, such as Plan.automatic(counts), or leave it out"),
    "validation": (Samples, "Samples", _DATASET),
    "stop": (EarlyStopping, "an EarlyStopping", "; EarlyStopping() has defaults"),
    "engine": (Engine, "an Engine", "; Engine(compile=True) is one"),
    "checkpoint": (Checkpoints, "the path of a folder, or Checkpoints", ""),
    "optimizer": (Callable, "a function that makes one", "; lambda p: Adam(p, lr=1e-3) does"),
    "schedule": (Callable, "'cosine' or a function", "; lambda o: StepLR(o, 30) is one"),
    "on_round": (Callable, "a function of a round", "; JSONLines(path) is one"),
    **dict.fromkeys(("rounds", "initial_rounds", "batch_size", "approximate_above"), _WHOLE),
    "seed": _WHOLE,
    "pull": (Real, "a number", ""),
    "pull_limit": (Real, "a number, or None for no limit", ""),
}
_NAMED = 8  # classes, the first ones
_MISFITS = (RuntimeError, TypeError, ValueError, IndexError, AttributeError)


def check_asked(many: int, rounds: int, optimizer: object, *, recover: bool, kept: bool) -> None:
    """Of how many networks: some things are for one alone."""
    _check_kind("rounds", rounds)
    _check_kind("optimizer", optimizer)
    if recover and many > 1:
        raise InputError(
            f"recover is for the training of one network, found {many}; leave it out, or train "
            "them one after the other"
        )
    if kept and many > 1:
        raise InputError(
            f"a checkpoint folder is for the training of one network, found {many}; train them "
            "one after the other, each with a folder of its own"
        )


def check_given(**given: object) -> None:
    """Of what may be left out, each its kind."""
    for name, one in given.items():
        if one is not None:
            _check_kind(name, one)


def _check_kind(name: str, one: object) -> None:
    kind, wanted, hint = _KINDS[name]
    if not isinstance(one, kind):
        found = f"{one!r:.80}" if isinstance(one, Real | str | None) else type(one).__name__
        raise InputError(f"{name} must be {wanted}, found {found}{hint}")


def check_each(
    networks: Sequence[object],
    samples: Sequence[object],
    plans: Sequence[object],
    pulls: Sequence[object],
    seeds: Sequence[object],
) -> None:
    """Of everything one for each network, and of its kind."""
    asked = [one for one in plans if one is not None]
    every = {"network": networks, "samples": samples, "plan": asked, "pull": pulls, "seed": seeds}
    for name, given in every.items():
        for one in given:
            _check_kind(name, one)
    many, found = len(networks), [len(given) for given in (samples, plans, pulls, seeds)]
    if not many or set(found) != {many}:
        raise InputError(
            "there must be samples, a plan, a pull and a seed for each network, found "
            f"{found[0]}, {found[1]}, {found[2]} and {found[3]} for {many}"
        )


def check_apart(networks: Sequence[Network]) -> None:
    """Networks that share weights would train each other."""
    owners: dict[int, int] = {}
    for e, network in enumerate(networks):
        for tensor in (*network.parameters(), *network.buffers()):
            if owners.setdefault(id(tensor), e) != e:
                raise InputError(
                    "every network must have weights of its own, found some that are shared by "
                    f"network {owners[id(tensor)]} and {e}; use copy.deepcopy"
                )


def check_numbers(
    samples: Samples,
    rounds: int,
    initial_rounds: int | None,
    batch_size: int | None,
    pull: float,
    pull_limit: float | None,
) -> None:
    """Every number at the door."""
    if rounds < 1 or (initial_rounds or 0) < 0:
        raise InputError(
            "rounds must be at least 1 and initial_rounds at least 0, found "
            f"rounds={rounds}, initial_rounds={initial_rounds}"
        )
    if batch_size is not None and not 1 <= batch_size <= len(samples):
        raise InputError(
            f"batch_size must lie between 1 and the number of samples, found {batch_size} "
            f"for {len(samples)} samples; pass a smaller one or leave it out"
        )
    if not 0 <= pull < math.inf or not 0 <= (pull_limit or 0) < math.inf:
        raise InputError(
            "pull and pull_limit must be 0 or more and finite (pull_limit=None for no limit), "
            f"found pull={pull}, pull_limit={pull_limit}"
        )


def check_steps(optimizer: object, schedule: Schedule | None, rounds: int) -> None:
    """One that trains nothing: its schedule is taken through all rounds."""
    if not isinstance(optimizer, Optimizer) or isinstance(optimizer, LBFGS):
        raise InputError(
            "optimizer must make one that steps by gradients alone, such as SGD or Adam, found "
            f"that it makes {type(optimizer).__name__}"
        )
    if schedule is None:
        return
    try:
        made = schedule(optimizer)
        for _ in range(rounds):
            turn(made)
    except _MISFITS as error:
        raise InputError(
            f"schedule must make one that takes a step after each of the {rounds} rounds, initial "
            f"ones included, and needs nothing else, found: {error}"
        ) from error


def check_outputs(network: Network, samples: Samples, validation: Samples | None = None) -> None:
    """One sample of each through the network, so that misfits are told before the first round."""
    outputs = _outputs(network, samples, "samples")
    if outputs != samples.n:
        raise InputError(
            f"the network must have one output for each of the {samples.n} classes, found "
            f"{outputs}; change its classifier"
        )
    if validation is None:
        return
    named = validation.classes != tuple(map(str, range(validation.n)))  # not by their numbers
    if validation.n > samples.n or (named and validation.classes != samples.classes):
        raise InputError(
            f"validation must have the classes of the samples, {_some(samples.classes)}, found "
            f"{_some(validation.classes)}; Samples(x, y, classes=samples.classes) names them"
        )
    _outputs(network, validation, "validation samples")


def _some(classes: Sequence[str]) -> str:
    """The first of many."""
    return ", ".join(classes[:_NAMED]) + " …" * (len(classes) > _NAMED)


def _outputs(network: Network, samples: Samples, what: str) -> int:
    """How many the network has, of one sample."""
    try:
        return predict(network, samples.x[:1]).shape[1]
    except DOSError:
        raise
    except _MISFITS as error:
        raise InputError(
            f"the network must take {what} of shape {tuple(samples.x.shape[1:])} and type "
            f"{samples.x.dtype} (uint8 becomes float, other integers stay), found: {error}"
        ) from error


def check_loss(loss: Loss, samples: Samples) -> None:
    """A few rows through it, more than there are classes, so that no shape fits by chance."""
    labels = torch.arange(samples.n + 1, device=samples.y.device) % samples.n
    try:
        each_row(loss, torch.zeros(len(labels), samples.n, device=labels.device), labels)
    except DOSError:
        raise
    except _MISFITS as error:
        raise InputError(
            "a loss must take logits (b, n) and labels (b,), found that "
            f"{loss!r:.80} does not: {error}; those of rivals do when they are made: "
            "rivals.focal(), rivals.ldam(counts)"
        ) from error


def made_loss(
    make: Callable[[Tensor], Loss] | None,
    counts: Tensor,  # (n,)
) -> Loss:
    """ℋ, where nobody gives another."""
    try:
        return make(counts) if make else entropy
    except _MISFITS as error:
        raise InputError(
            "loss must make a loss from the class counts, as rivals.ldam does, found that "
            f"{make!r:.80} does not: {error}; of a loss that needs none: "
            "lambda counts: rivals.focal()"
        ) from error


def check_augment(augment: Augmentation | None, samples: Samples) -> None:
    """One sample through it, so that a misfit is told before the first round."""
    if augment is None:
        return
    draws = getattr(augment, "draws", None)
    if isinstance(augment, type) or not callable(augment) or not isinstance(draws, int):
        raise InputError(
            "augment must be an object such as CropAndFlip(), a function of a batch and of "
            f"uniform numbers with a number of draws, found {augment!r}"
        )
    x = samples.x[:1]
    found = augment(x, torch.zeros(1, draws, device=x.device))
    if not isinstance(found, Tensor) or (found.shape, found.dtype) != (x.shape, x.dtype):
        told = f"{tuple(found.shape)} of {found.dtype}" if isinstance(found, Tensor) else found
        raise InputError(
            f"augment must return a batch like the one it is given, {tuple(x.shape)} of {x.dtype}, "
            f"found {told!s:.80}"
        )


def check_pieces(
    pieces: float,
    tau: float,
    weighted: bool,
    samples: Samples,
    plan: Plan,
    *,
    used: bool = True,  # the loss, where it is another than cross-entropy, trains some rounds
) -> None:
    """Pieces are of pictures, and of neighbours, and weigh what they cover; τ is a margin."""
    check_share(pieces)
    if not isinstance(tau, Real) or not 0 <= tau < math.inf:
        raise InputError(
            f"tau must be a finite number of 0 or more, found {tau!r}; 1 adds log π to the logits"
        )
    if (tau or pieces) and not used:
        raise InputError(
            "a loss trains the rounds before those with a margin τ or pieces, so there must be "
            "some, found initial_rounds=0; leave the loss out, or tau and pieces"
        )
    if pieces and samples.x.ndim != 4:
        raise InputError(
            "pieces must be of pictures, shape (m, c, h, w), found samples of shape "
            f"{tuple(samples.x.shape)}; leave pieces out"
        )
    if pieces and not weighted:
        raise InputError(
            "pieces must have the weights of their areas, found weighted=False; leave one of them "
            "out"
        )
    if pieces and not bool(plan.k.any()):
        raise InputError(
            "pieces must be of neighbours, found k = 0 for all classes; give a k of 1 or more, or "
            "leave pieces out"
        )
    if pieces and plan.known:
        raise InputError(
            "pieces must have neighbours in every round, found a cautious plan; give it as it was "
            "made, such as Plan.in_part, or leave pieces out"
        )


def check_shared(
    peers: Peers,
    networks: Sequence[Network],
    batch_size: int,
    engine: Engine | None,
    device: torch.device,
) -> None:
    """What several processes can train together."""
    if peers.size == 1:
        return
    if device.type not in ("cpu", "cuda"):
        raise InputError(
            "processes can train together on CPUs and on GPUs that NCCL knows, found "
            f"{device.type}; use device='cpu'"
        )
    if len(networks) > 1:
        raise InputError(
            f"processes that train together must train one network, found {len(networks)}; give "
            "each process trainings of its own instead"
        )
    if batch_size < peers.size:
        raise InputError(
            "every process must have a row of every batch, found a batch_size of "
            f"{batch_size} for {peers.size} processes; start fewer or raise it"
        )
    if engine and engine.compile:
        raise InputError(
            "steps of several processes must not be compiled, found Engine(compile=True); leave it "
            "out"
        )
