"""What must hold of a snapshot before a training goes on from it, whoever wrote the file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from .history import History
from .network import Network
from .optimizer_state import state_misfit
from .schema import is_real
from .seeding import Sittings
from .snapshots import Snapshot
from .training import Halfway

__all__ = ["Training", "misfit"]


@dataclass(frozen=True, eq=False)
class Training:
    """What is about to be trained, and may have been begun before."""

    network: Network
    optimizer: Callable[[Iterable[nn.Parameter]], Optimizer]
    steps: Sequence[int]  # of every round
    judged: tuple[str, str] | None = None  # group and measure that early stopping looks at


def misfit(snapshot: Snapshot, training: Training) -> str:
    """The first thing in it that cannot be of this training, in words; "" where all fits."""
    return next(_misfits(snapshot, training), "")


def _misfits(snapshot: Snapshot, training: Training) -> Iterator[str]:
    total, halfway = len(training.steps), snapshot.halfway
    if not 0 <= snapshot.rounds <= total:
        yield f"{snapshot.rounds} rounds of {total}"
    yield from _of_history(snapshot, training.judged)
    if (snapshot.start is None) != (halfway is None):
        yield (
            "the weights that a round began with, and no round"
            if snapshot.start
            else ("a round that was begun without the weights it began with")
        )
    if halfway:
        steps = training.steps[snapshot.rounds] if snapshot.rounds < total else 0
        yield from _of_halfway(halfway, steps)
    names = {name for name, _ in training.network.named_parameters()}
    own = training.network.state_dict()
    yield from _of_weights("weights", snapshot.weights, own, set() if halfway else names)
    for title, weights in (("start", snapshot.start), ("best", snapshot.best)):
        if weights:
            yield from _of_weights(title, weights, own, names)
    found = state_misfit(
        training.optimizer,
        training.network,
        snapshot.optimizer,
        snapshot.numbers,
        halfway=halfway is not None,
    )
    if found:
        yield found


def _of_history(snapshot: Snapshot, judged: tuple[str, str] | None) -> Iterator[str]:
    history: History = snapshot.history
    rounds, kept = history.rounds, history.kept
    if len(rounds) != snapshot.rounds:
        yield f"a history of {len(rounds)} rounds after {snapshot.rounds}"
    many = sum(one.task == "multi" for one in rounds)
    if len(history.spreads) != many:
        yield f"{len(history.spreads)} spreads of {many} rounds of DOS"
    if kept is not None and not 0 <= kept < len(rounds):
        yield f"{kept} as the best of {len(rounds)} rounds"
    if (kept is None) != (not snapshot.best):
        yield "a best round without its weights, or weights without the round"
    for mishap in history.mishaps:
        if not (0 < mishap.rate <= 1 and 1 <= mishap.round <= snapshot.rounds + 1):
            yield f"a mishap of round {mishap.round} with {mishap.rate:g} of the learning rate"
    for t, one in enumerate(rounds if judged else [], 1):
        group, measure = judged or ("", "")
        if one.task != "single" and not is_real((one.validation or {}).get(group, {}).get(measure)):
            yield f"no {measure} of the {group} after round {t}, which early stopping goes by"


def _of_halfway(halfway: Halfway, steps: int) -> Iterator[str]:
    if not 1 <= halfway.step <= steps:
        yield f"step {halfway.step} of a round of {steps}"
    losses = halfway.losses
    if losses.shape != (halfway.step, 1, 2) or not losses.is_floating_point():
        yield f"losses of shape {tuple(losses.shape)} after {halfway.step} steps"
    try:
        with Sittings(torch.Generator(), halfway.random).sit():
            pass
    except (RuntimeError, TypeError, KeyError):
        yield "states of the random generators that they cannot have"


def _of_weights(
    title: str, weights: Mapping[str, Tensor], own: Mapping[str, Tensor], finite: set[str]
) -> Iterator[str]:
    for name in sorted(own.keys() ^ weights.keys()):
        yield f"{'no' if name in own else 'unknown'} {title} {name!r:.80}"
    for name in sorted(own.keys() & weights.keys()):
        mine, found = own[name], weights[name]
        if found.shape != mine.shape or found.dtype != mine.dtype:
            yield (
                f"{title} {name!r} of shape {tuple(found.shape)} and {found.dtype} instead of "
                f"{tuple(mine.shape)} and {mine.dtype}"
            )
        elif name in finite and not bool(found.isfinite().all()):
            yield f"NaN or infinity in the {title} {name!r}"
