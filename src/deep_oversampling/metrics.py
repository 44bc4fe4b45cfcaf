"""Precision, recall, F1 and AUPRC of every class, and their means over groups of classes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from .errors import InputError

__all__ = ["AS_TRAINED", "MEASURES", "Report", "measure", "measure_all"]

MEASURES = ("precision", "recall", "f1", "auprc")
AS_TRAINED = "f1_as_trained"  # beside them, where the class counts of training are known


@dataclass(frozen=True, eq=False)
class Report:
    """Class-wise measures, in the usual meaning of the words; NaN for a class without samples."""

    precision: NDArray[np.float64]  # (n,)
    recall: NDArray[np.float64]  # (n,)
    f1: NDArray[np.float64]  # (n,)
    auprc: NDArray[np.float64]  # (n,)
    f1_as_trained: NDArray[np.float64] | None = None  # (n,)  see `measure`

    def mean(self, group: ArrayLike | None = None) -> dict[str, float]:
        """The mean of each measure over a group of classes (a mask or indices; default all)."""
        chosen = slice(None) if group is None else np.asarray(group)
        columns = {name: getattr(self, name)[chosen] for name in MEASURES}
        seen = {name: column[~np.isnan(column)] for name, column in columns.items()}
        return {name: float(c.mean()) if c.size else float("nan") for name, c in seen.items()}


def measure(
    probabilities: Tensor | NDArray[np.floating],  # (m, n)
    y: Tensor | NDArray[np.integer],  # (m,)
    *,
    trained: Tensor | None = None,  # (n,)  samples of each class in training
) -> Report:
    """Precision, recall and F1 from the confusion matrix of the argmax, AUPRC from P(C|x).

    They are computed where the probabilities are, and are those of scikit-learn. Test sets are
    often balanced where training is not: with the class counts of ``trained``, the F1 that would
    be found if the classes were as frequent as there is measured, too.

    >>> measure(np.array([[0.9, 0.1], [0.4, 0.6], [0.7, 0.3]]), np.array([0, 0, 1])).recall
    array([0.5, 0. ])
    """
    scores = _scores(probabilities)
    (report,) = measure_all(scores.unsqueeze(0), y)
    if trained is None:
        return report
    return replace(report, f1_as_trained=_f1_as(trained, scores.argmax(1), y, report.recall))


def _f1_as(
    trained: Tensor, predicted: Tensor, y: Any, recall: NDArray[np.float64]
) -> NDArray[np.float64]:
    """2 π_j recall_j / (π_j + what is taken for j), π the classes' shares of training."""
    labels, shares = torch.as_tensor(y).cpu().numpy(), trained.cpu().double().numpy()
    known = (labels >= 0) & (labels < len(shares))
    labels, found = labels[known], predicted.cpu().numpy()[known]
    weight = (shares / np.bincount(labels, minlength=len(shares)).clip(min=1))[labels]
    taken = np.bincount(found, weights=weight, minlength=len(shares))
    with np.errstate(invalid="ignore"):  # a class that nobody has and nobody is taken for
        return np.asarray(2 * shares * recall / (shares + taken))


def measure_all(
    probabilities: Tensor | NDArray[np.floating],  # (E, m, n)  of E networks
    y: Tensor | NDArray[np.integer],  # (m,) or (E, m)
    *,
    memory: int = 64 * 2**20,
) -> list[Report]:
    """`measure` for E networks at once.

    ``memory`` bounds the bytes of what is ranked at a time, a block of the E · n columns.
    """
    p = _scores(probabilities)
    truth = _labels(y, p)
    n = p.shape[2]
    predicted = p.argmax(2)
    support = _counts(truth, n)
    taken = _counts(predicted, n)
    hits = _counts(torch.where(predicted == truth, truth, n), n)
    found = torch.stack(
        [
            hits / taken.clamp(min=1),  # precision: 0 if nobody is taken for the class
            hits / support,
            2 * hits / (taken + support),
            _average_precision(p, truth, memory),
        ],
        dim=1,
    )  # (E, 4, n)
    found = found.masked_fill((support == 0).unsqueeze(1), torch.nan)
    return [Report(*columns) for columns in found.cpu().numpy()]


def _scores(values: Any) -> Tensor:
    """Where and as they are; only mps has no float64, so the CPU computes for it."""
    if isinstance(values, Tensor):
        return values.detach().cpu() if values.device.type == "mps" else values.detach()
    return torch.from_numpy(np.array(values, np.float64))


def _labels(values: Any, p: Tensor) -> Tensor:
    """y for every member, (E, m), on the device of p; n stands for a label outside 0 … n-1."""
    y = values.detach() if isinstance(values, Tensor) else torch.from_numpy(np.array(values))
    if p.ndim != 3 or p.shape[1] == 0 or y.shape not in (p.shape[1:2], p.shape[:2]):
        raise InputError(
            "probabilities must have a row for each of one or more samples, and y a label, found "
            f"shape {tuple(p.shape[1:])} and {tuple(y.shape)}"
        )
    if y.is_floating_point():
        raise InputError(
            f"labels must be integer class indices 0, 1, …, found {y.dtype}; convert them, y.long()"
        )
    if not bool(p.isfinite().all()):
        member, row = (~p.isfinite()).any(2).nonzero()[0].tolist()
        raise InputError(
            f"probabilities must be finite, found NaN or infinity for sample {row} of network "
            f"{member}; lower the learning rate"
        )
    n = p.shape[2]
    y = y.to(p.device).long().expand(p.shape[:2])
    return y.where((y >= 0) & (y < n), n)


def _counts(labels: Tensor, n: int) -> Tensor:  # (E, m) of 0 … n -> (E, n), those of n left out
    members = torch.arange(len(labels), device=labels.device).unsqueeze(1)
    counted = torch.bincount(
        (members * (n + 1) + labels).flatten(), minlength=len(labels) * (n + 1)
    )
    return counted.view(-1, n + 1)[:, :n].double()


def _average_precision(p: Tensor, truth: Tensor, memory: int) -> Tensor:  # (E, n)
    """Σ over thresholds of precision × gain in recall; equal scores pass a threshold together."""
    members, m, n = p.shape
    rank = torch.arange(1, m + 1, device=p.device)
    found = p.new_empty(members * n, dtype=torch.float64)
    step = max(1, memory // (64 * max(m, 1)))  # a ranked score takes about 64 bytes
    for columns in torch.arange(members * n, device=p.device).split(step):
        member, j = columns // n, columns % n
        scores, order = p[member, :, j].sort(dim=1, descending=True)  # (c, m)
        hit = truth[member].gather(1, order) == j.unsqueeze(1)
        tp = hit.cumsum(1)  # whole numbers: a sum of floats is not repeatable on a GPU
        last = torch.ones_like(hit)  # of its tie group: there the threshold is
        last[:, :-1] = scores[:, 1:] != scores[:, :-1]
        reached = (tp * last).cummax(1).values  # tp at the last threshold up to here
        gained = tp.clone()
        gained[:, 1:] -= reached[:, :-1]
        found[columns] = (gained * last * tp / rank.double()).sum(1) / tp[:, -1]
    return found.view(members, n)
