"""A look inside one training of each kind: what the figures need and no trial keeps.

The same training as that of the trials with this seed; only looked at between its rounds.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from sklearn.decomposition import PCA
from torch import Tensor

from ..data import Splits
from ..history import spread
from ..network import Network, embed, predict
from ..rivals import METHODS
from ..rivals.compare import Entry, begun, entries_of, options_of
from ..rivals.trials import Setting
from ..stages import Member, Stage, train_members
from .experiments import LOOKED_AT

__all__ = ["look"]

_POINTS = 500  # test embeddings that are drawn
_STEPS = 50  # of a precision-recall curve


def look(splits: Splits, setting: Setting, device: torch.device) -> dict[str, Any]:
    """Plain numbers, ready for JSON: the labels drawn, and what was seen of each method."""
    (entry,) = entries_of(splits, setting, [0], device)
    minority = entry.plan.minority.nonzero().flatten().tolist()
    shown = _shown(entry.test.y)
    return {
        "minority": minority,
        "labels": entry.test.y[shown].tolist(),
        "methods": {name: _seen(name, entry, setting, minority, shown) for name in LOOKED_AT},
    }


def _seen(
    name: str, entry: Entry, setting: Setting, minority: list[int], shown: Tensor
) -> dict[str, Any]:
    member = begun(METHODS[name], entry, setting)
    within: list[float] = []  # in-class over between-class variance, after each round
    before: list[list[float]] = []

    def watched(stages: Iterator[Stage]) -> Iterator[Stage]:
        for t, stage in enumerate(stages):
            if t == setting.rounds:  # the first round that over-samples
                before.extend(_plane(member.network, entry, shown))
            yield stage
            found = spread(embed(member.network, entry.train.x), entry.train.y, entry.train.n)
            within.append(_rounded(1 / found.ratio if found.ratio else 0.0))

    train_members(
        [Member(member.network, watched(member.stages), member.rng)],
        **options_of(METHODS[name], setting),
    )
    p = predict(member.network, entry.test.x)
    return {
        "within": within,
        "curve": _curve(p[:, minority], entry.test.y, minority),
        "before": before,
        "after": _plane(member.network, entry, shown),
    }


def _shown(y: Tensor) -> Tensor:
    """Test samples from end to end."""
    return torch.arange(0, len(y), -(-len(y) // _POINTS), device=y.device)


def _plane(network: Network, entry: Entry, shown: Tensor) -> list[list[float]]:
    """Embeddings in the plane of their two largest variances, as long as 1 at most."""
    v = embed(network, entry.test.x[shown]).cpu().double().numpy()
    flat = torch.from_numpy(PCA(2, svd_solver="full").fit_transform(v))
    flat = flat / flat.abs().max().clamp(min=1e-12)
    return [[_rounded(a), _rounded(b)] for a, b in flat.tolist()]


def _curve(p: Tensor, y: Tensor, classes: list[int]) -> list[list[float]]:  # (m, minority), (m,)
    """Recall and precision, the best at that recall or more, averaged over the classes."""
    recalls = torch.linspace(0, 1, _STEPS, dtype=torch.float64)
    total = torch.zeros(_STEPS, dtype=torch.float64)
    for column, j in enumerate(classes):
        hit = (y == j)[p[:, column].argsort(descending=True, stable=True)].cpu().double()
        found = hit.cumsum(0)
        precision = found / torch.arange(1, len(hit) + 1)
        best = precision.flip(0).cummax(0).values.flip(0)  # at this recall or more
        first = torch.searchsorted(found / found[-1].clamp(min=1), recalls - 1e-9)
        total += best[first.clamp(max=len(best) - 1)]
    means = total / max(1, len(classes))
    return [
        [_rounded(r), _rounded(v)] for r, v in zip(recalls.tolist(), means.tolist(), strict=True)
    ]


def _rounded(value: float) -> float:
    return round(float(value), 4)
