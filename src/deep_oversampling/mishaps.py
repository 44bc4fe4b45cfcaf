"""Training that goes wrong: found when a round is over, told in words, tried once more slower."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from .errors import TrainingError
from .history import History, Mishap
from .memory import as_memory_allows
from .network import Network, has_batch_norm
from .views import View

__all__ = ["Examination", "leapt", "never_predicted", "slow_down", "slowed_before"]

_RATE = 0.1  # of the learning rate, the second time
_ROWS, _FEWEST = 256, 16  # samples that are looked at, and where they are very large
_VALUES = 2**22  # of such samples, and of those that are embedded at once
_NAMED = 5  # classes
_RATES = {"lr", "initial_lr", "max_lr", "min_lr"}  # of a group: some schedules keep theirs there
_BASES = {"base_lrs", "max_lrs"}  # of a schedule
_ALIKE = 1e-10  # variance per squared length: below, only rounding tells embeddings apart
_COLLAPSING = 0.01  # of what it was before the round; healthy training hardly lowers it at all
_EXPLODED = 1e4  # times the length from before the round, or 1 if that was less
_LEAP = 100  # times the loss of the round before, or 1 if that was less
_RISE = 10  # times the best loss of its task; half of the worst so far must be back as well
_VANISHED = 1 / 30  # of that length: ReLUs that are dead, so that the next rounds teach f nothing
_ALIVE = 0.6  # of the most outputs of f that told samples apart; the others are dead by now
_MANY = 8  # outputs of f; of fewer most may die by chance


class Examination:
    """Looks at the embeddings of some samples after a round, and compares with those before it."""

    def __init__(self, network: Network, x: Tensor | View) -> None:
        size = x.shape[1:].numel()
        most = max(_FEWEST, min(_ROWS, _VALUES // size))
        rows = torch.arange(0, len(x), -(-len(x) // most))
        self._at_once = max(1, _VALUES // size)
        self._x = x[rows.to(x.rows.device if isinstance(x, View) else x.device)]
        self._before = self._seen(network)
        # its averages lag behind the weights in the first steps, and scales mean nothing until then
        self._averages = has_batch_norm(network.embedder)

    def __call__(self, network: Network, loss: float, history: History) -> TrainingError | None:
        """Why training cannot go on with these weights and the mean ℓ_g of now, if it cannot."""
        now = self._seen(network)
        length, variance, alive = now
        if not math.isfinite(length):
            return TrainingError(
                "embeddings must be finite, found NaN or infinity when the round was over; lower "
                "the learning rate, the pull λ or its limit"
            )
        if variance <= _ALIKE:
            return TrainingError(
                f"embeddings must differ between samples, found all {len(self._x)} alike: the "
                "embedder has collapsed to one point; lower the learning rate or check that it "
                "uses its input"
            )
        if self._averages:
            self._before = now
            return None
        if variance < _COLLAPSING * self._before[1]:
            return TrainingError(
                "embeddings must differ between samples, found their variance at "
                f"{variance / self._before[1]:.0e} of that before the round: the embedder is "
                "collapsing to one point; lower the learning rate"
            )
        growth = length / max(1.0, self._before[0])
        if growth > _EXPLODED:
            return TrainingError(
                f"embeddings must not explode, found them {growth:.0e} times as long as before the "
                "round; lower the learning rate, or normalise the input"
            )
        if length < _VANISHED * self._before[0]:
            return TrainingError(
                f"embeddings must not vanish, found them {self._before[0] / length:.0f} times as "
                "short as before the round: the embedder is dying; lower the learning rate"
            )
        share = _share(alive)
        most = max([self.alive, *(one.alive or 0.0 for one in history.rounds)])
        dying = len(alive) >= _MANY and share < _ALIVE * most
        if dying and _learns_little(loss, history) and not _slowed(history):
            return TrainingError(
                f"outputs of f must differ between samples, found {1 - share:.0%} of them the same "
                f"for all {len(self._x)} where it had been {1 - most:.0%}: the embedder is dying; "
                "lower the learning rate"
            )
        self._before = now
        return None

    @property
    def alive(self) -> float:
        """The share of the outputs of f that told samples apart at the last look."""
        return _share(self._before[2])

    def _seen(self, network: Network) -> tuple[float, float, Tensor]:
        """How long they are, their variance per squared length, and which outputs differ (d,)."""
        with torch.inference_mode():
            parts = self._x.to(network.device).split(self._at_once)
            network.eval()
            v = torch.cat([as_memory_allows(network.embed, part) for part in parts])
        v = v.float().cpu().double()
        length = float(v.square().sum(1).mean())
        variance = float(v.var(0, correction=0).sum())
        alive = (v != v[0]).any(0)  # a ReLU that is dead says 0, whatever it sees
        return math.sqrt(length), variance / length if length else 0.0, alive


def _share(marks: Tensor) -> float:
    return float(marks.double().mean())


def leapt(loss: float, task: str, history: History) -> TrainingError | None:
    """Why the mean ℓ_g of a round is none to go on from, if it is not.

    A network may also be ruined in small steps, until it has forgotten nearly all it knew. A
    training that has been slowed down is left to itself then: it may still come back.
    """
    before = [one.classifier_loss for one in history.rounds]
    last = before[-1] if before else loss
    if loss > _LEAP * max(1.0, last):
        return TrainingError(
            f"the loss must not leap, found a mean of {loss:.3g} after {last:.3g} in the round "
            "before; lower the learning rate, the pull λ or its limit"
        )
    best = min((one.classifier_loss for one in history.rounds if one.task == task), default=loss)
    if _slowed(history) or loss <= max(_RISE * best, max(before, default=loss) / 2):
        return None
    return TrainingError(
        f"the loss must not rise again as it did, found a mean of {loss:.3g} where it had been "
        f"{best:.3g}; lower the learning rate, the pull λ or its limit"
    )


def _learns_little(loss: float, history: History) -> bool:
    """The loss has not been halved; of the first round nobody knows."""
    before = [one.classifier_loss for one in history.rounds]
    return bool(before) and loss > max(before) / 2


def slow_down(
    error: TrainingError,
    t: int,
    history: History,
    optimizer: Optimizer,
    scheduler: LRScheduler | None,
) -> Mishap | None:
    """Lower the learning rate and write it down; once in a training, and then never again."""
    if _slowed(history):
        return None
    _lower(_RATE, optimizer, scheduler)
    rates = sorted({float(group["lr"]) for group in optimizer.param_groups})
    told = ", ".join(f"{rate:g}" for rate in rates)
    done = (
        f"it is made again from the weights before it, with a tenth of the learning rate ({told})"
    )
    history.mishaps.append(Mishap(t + 1, str(error), done, _RATE))
    return history.mishaps[-1]


def _slowed(history: History) -> bool:
    return any(mishap.rate != 1 for mishap in history.mishaps)


def slowed_before(
    t: int, history: History, optimizer: Optimizer, scheduler: LRScheduler | None
) -> None:
    """As `slow_down` did it before round t + 1, in a process before this one."""
    for mishap in history.mishaps:
        if mishap.rate != 1 and mishap.round == t + 1:
            _lower(mishap.rate, optimizer, scheduler)


def _lower(rate: float, optimizer: Optimizer, scheduler: LRScheduler | None) -> None:
    for group in optimizer.param_groups:
        for name in _RATES & group.keys():
            group[name] *= rate
    todo = [scheduler] if scheduler else []
    while todo:
        one = todo.pop()
        if parts := getattr(one, "_schedulers", None):  # of one that is made of several
            todo += parts
        else:
            for name in _BASES & vars(one).keys():
                setattr(one, name, [base * rate for base in getattr(one, name)])


def never_predicted(
    p: Tensor,  # (m, n)
    y: Tensor,  # (m,)
    classes: Sequence[str],
    t: int,  # rounds that were trained
) -> list[Mishap]:
    """At most one: of all classes with samples that no sample is taken for."""
    n = p.shape[1]
    taken, there = (torch.bincount(one.cpu(), minlength=n) for one in (p.argmax(1), y))
    missed = ((there > 0) & (taken == 0)).nonzero().flatten().tolist()
    if not missed:
        return []
    names = ", ".join(repr(classes[j]) for j in missed[:_NAMED])
    more = f" and {len(missed) - _NAMED} more" if len(missed) > _NAMED else ""
    own = sum(there[missed].tolist())
    return [
        Mishap(
            t,
            f"never predicted: {names}{more}, though {own} of {len(y)} validation samples are of "
            "such a class",
            "nothing was done; try more rounds, more samples, a larger r (Plan) or another margin: "
            "a larger tau for rare classes, a smaller one for frequent ones",
        )
    ]
