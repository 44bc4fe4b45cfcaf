"""k and r chosen on validation data, as the paper's parameter selection advises."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from .data.splits import hold_out
from .errors import TrainingError
from .history import History
from .metrics import measure
from .network import Network, predict
from .plan import Plan
from .samples import Samples

__all__ = ["Candidate", "candidates", "select"]

_KS = (3, 5, 10)  # the paper's range is [3, 10]
_SHARE = 0.2  # of every class, to validate on


@dataclass(frozen=True)
class Candidate:
    """A choice of k and r, and how it did: mean F1 over all classes of the validation data."""

    k: int
    r_times: float  # r = r_times / R
    f1: float = float("nan")


def candidates(
    counts: Tensor, plan: Callable[[Tensor, int, float], Plan]
) -> list[tuple[Candidate, Plan]]:
    """k from [3, 10], r from [1/R, k/R]; of those that make the same plan, the first."""
    found: dict[str, tuple[Candidate, Plan]] = {}
    for k in _KS:
        for r_times in (1.0, (1 + k) / 2, float(k)):
            with warnings.catch_warnings():  # of a k that is clamped; the one that is chosen warns
                warnings.simplefilter("ignore", UserWarning)
                made = plan(counts, k, r_times).fitted_to(counts)
            found.setdefault(repr(made), (Candidate(k, r_times), made))
    return list(found.values())


def select(
    make_network: Callable[[], Network],
    samples: Samples,
    plan: Callable[[Tensor, int, float], Plan],  # class counts, k, r_times
    train_all: Callable[..., list[History | TrainingError]],  # fit_many
    *,
    seed: int,
    batch_size: int | None = None,
) -> list[Candidate]:
    """Train every candidate on four fifths of the samples; the best on the rest comes first.

    All start from the same weights and see the same batches. A training that is lost has F1 0.
    """
    train, held_out = hold_out(samples, _SHARE, seed=seed)
    tried = candidates(train.class_counts, plan)
    network = make_network()
    networks = [copy.deepcopy(network) for _ in tried]
    batch_size = batch_size and min(batch_size, len(train))
    plans, seeds = [made for _, made in tried], [seed] * len(tried)
    outcomes = train_all(networks, train, plans, seeds=seeds, batch_size=batch_size)
    found = []
    for (candidate, _), network, outcome in zip(tried, networks, outcomes, strict=True):
        f1 = 0.0
        if not isinstance(outcome, TrainingError):
            f1 = measure(predict(network, held_out.x), held_out.y).mean()["f1"]
        found.append(Candidate(candidate.k, candidate.r_times, f1))
    return sorted(found, key=lambda one: -one.f1)  # of equals, the smallest k and r
