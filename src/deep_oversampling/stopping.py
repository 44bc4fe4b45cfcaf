"""Early stopping: stages that end when validation gets no better, and the best weights."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Integral

import torch
from torch import Tensor

from .errors import InputError
from .history import History
from .metrics import MEASURES
from .network import Network
from .plan import Plan
from .samples import Samples
from .stages import Stage
from .training import weights_of

__all__ = ["EarlyStopping", "until_no_better"]

_GROUPS = ("minority", "majority")


@dataclass(frozen=True)
class EarlyStopping:
    """End a training when ``patience`` rounds of DOS in a row were no better than the best.

    The network gets the weights of the best round. The single-task rounds before DOS are not
    counted: they are where it starts from. Measures are those of the validation samples, so they
    must not be the samples that the result is reported on.

    >>> EarlyStopping(patience=5, measure="auprc")
    EarlyStopping(patience=5, measure='auprc', group='minority')
    """

    patience: int = 3
    measure: str = "f1"  # precision, recall, f1 or auprc, the mean over the group's classes
    group: str = "minority"  # or "majority": the classes that the plan favours, or the others

    def __post_init__(self) -> None:
        if not isinstance(self.patience, Integral) or self.patience < 1:
            raise InputError(f"patience must be a whole number ≥ 1, found {self.patience!r}")
        for name, value, known in (
            ("measure", self.measure, MEASURES),
            ("group", self.group, _GROUPS),
        ):
            if value not in known:
                raise InputError(f"{name} must be one of {', '.join(known)}, found {value!r}")

    def check(self, plan: Plan, validation: Samples | None) -> None:
        """What it looks at must be there."""
        if validation is None:
            raise InputError(
                "early stopping must have validation samples to look at, found none; pass "
                "fit(…, validation=…), samples that are neither trained nor tested on"
            )
        group = plan.minority if self.group == "minority" else ~plan.minority
        counts = torch.bincount(validation.y.cpu(), minlength=len(group))[: len(group)]
        if not bool(counts[group].any()):
            raise InputError(
                f"early stopping must have validation samples of the {self.group}, found none of "
                f"the {int(group.sum())} class(es) that the plan counts to it; add some, "
                "pass EarlyStopping(group=…), or do without"
            )


def until_no_better(
    stages: Iterator[Stage],
    network: Network,
    history: History,
    stop: EarlyStopping,
    best: dict[str, Tensor],  # weights of the best round, filled here; not empty: it goes on
) -> Iterator[Stage]:
    """The same stages, but no more of them than help; at the end, the best weights."""
    if _goes_on(network, history, stop, best):  # a training may be over when it is taken up again
        for stage in stages:
            yield stage  # it goes on when that was trained, judged and written into the history
            if not _goes_on(network, history, stop, best):
                break
    if best:
        network.load_state_dict(best)


def _goes_on(
    network: Network, history: History, stop: EarlyStopping, best: dict[str, Tensor]
) -> bool:
    """Whether the last round was the best, or those since are not too many; the best is kept."""
    t = len(history.rounds) - 1
    if t < 0 or history.rounds[t].task == "single":
        return True
    if history.kept is None or _score(history, t, stop) > _score(history, history.kept, stop):
        history.kept = t
    if history.kept == t:
        best.update(weights_of(network))
    return t - history.kept < stop.patience


def _score(history: History, t: int, stop: EarlyStopping) -> float:
    scores = history.rounds[t].validation
    assert scores is not None  # check has seen to it
    return scores[stop.group][stop.measure]
