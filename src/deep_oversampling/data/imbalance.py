"""Protocols that make data imbalanced: how many samples of each class stay, and which.

A protocol decides on numbers alone, from the class counts, and never sees test data; one
function, `draw`, then picks the samples.
"""

from __future__ import annotations

import difflib
import math
from abc import ABC, abstractmethod
from dataclasses import MISSING, dataclass, fields
from numbers import Integral, Real
from typing import ClassVar

import torch
from torch import Generator, Tensor

from ..errors import InputError
from ..samples import Samples

__all__ = [
    "AsItIs",
    "DropFromClasses",
    "GaussianDeletion",
    "ImbalanceProtocol",
    "LongTailed",
    "Step",
    "draw",
    "drop_from_classes",
    "parse_protocol",
]

_ROUNDING = 1e-9  # 49.999999999 samples are 50
_NARROWEST = 0.02  # σ at which the second class keeps exp(−1250), nothing


@dataclass(frozen=True)
class ImbalanceProtocol(ABC):
    """How many samples of each class stay; as text, ``parse_protocol`` reads it back."""

    name: ClassVar[str]

    @abstractmethod
    def quota(self, counts: Tensor, generator: Generator) -> dict[int, int]:
        """How many samples stay of the classes that are drawn from; the others stay whole."""

    def kept(self, counts: Tensor, generator: Generator) -> Tensor:  # (n,) -> (n,)
        """How many samples of each class stay: at least one, where there is one."""
        kept = counts.cpu().clone()
        for j, number in self.quota(counts, generator).items():
            kept[j] = number
        return kept

    def __str__(self) -> str:
        values = [(getattr(self, field.name), field.default) for field in fields(self)]
        return ":".join([self.name, *(_text(v) for v, default in values if v != default)])


@dataclass(frozen=True)
class AsItIs(ImbalanceProtocol):
    """Everything stays: the paper's third experiment."""

    name = "none"

    def quota(self, counts: Tensor, generator: Generator) -> dict[int, int]:
        return {}


@dataclass(frozen=True)
class DropFromClasses(ImbalanceProtocol):
    """The share p of some classes, drawn at random, goes: the paper's second experiment.

    >>> str(DropFromClasses(classes=4, p=0.99))
    'drop:4:0.99'
    """

    name = "drop"

    classes: int
    p: float

    def __post_init__(self) -> None:
        whole = isinstance(self.classes, Integral) and self.classes > 0
        _check("classes", self.classes, whole, "a whole number, 1 or more")
        _check("p", self.p, 0 <= _number(self.p) < 1, "a number in [0, 1)")

    def quota(self, counts: Tensor, generator: Generator) -> dict[int, int]:
        if self.classes >= len(counts):
            raise InputError(
                f"classes must be fewer than the {len(counts)} classes of the data, so that some "
                f"stay whole, found {self.classes}; reduce fewer, as drop:1:{_text(self.p)}"
            )
        reduced = sorted(torch.randperm(len(counts), generator=generator)[: self.classes].tolist())
        have = counts.tolist()
        return {j: min(have[j], max(1, round(have[j] * (1 - self.p)))) for j in reduced}


@dataclass(frozen=True)
class GaussianDeletion(ImbalanceProtocol):
    """A share of all samples goes, more of it from class to class: the first experiment (R12).

    The classes are put in a random order, so that none is always the rarest. Of the class at
    place i = 0 … n−1 the share exp(−i²/2σ²) stays, σ such that the overall reduction is reached.
    """

    name = "gaussian"

    reduction: float

    def __post_init__(self) -> None:
        _check("reduction", self.reduction, 0 <= _number(self.reduction) < 1, "a number in [0, 1)")

    def quota(self, counts: Tensor, generator: Generator) -> dict[int, int]:
        counts = counts.cpu()
        order = torch.randperm(len(counts), generator=generator)
        order = order[counts[order] > 0]  # a class without samples has no place
        have = counts[order].double()
        m, least = int(have.sum()), int(have[0]) + len(have) - 1
        total = round((1 - self.reduction) * m)
        if total < least:
            raise InputError(
                f"the reduction must be at most {math.floor(1e4 * (1 - least / m)) / 1e4} for "
                f"these classes, found {self.reduction}: class {int(order[0])} was drawn to stay "
                f"whole, with {int(have[0])} of {m} samples, and every other class keeps one; "
                "choose a smaller reduction, or drop:classes:p"
            )
        if total == m:
            return {}
        number = _whole(_gaussian(have, total), total)
        return dict(zip(order.tolist(), number.tolist(), strict=True))


@dataclass(frozen=True)
class LongTailed(ImbalanceProtocol):
    """Exponentially fewer from class to class, the last ``factor`` times rarer than the first.

    >>> LongTailed(100).kept(torch.full((10,), 5000), torch.Generator()).tolist()
    [5000, 2997, 1796, 1077, 645, 387, 232, 139, 83, 50]
    """

    name = "exp"

    factor: float

    def __post_init__(self) -> None:
        _check_factor(self.factor)

    def quota(self, counts: Tensor, generator: Generator) -> dict[int, int]:
        have = counts.tolist()
        last = max(len(have) - 1, 1)
        shares = (self.factor ** (-j / last) for j in range(len(have)))
        return {j: _at_most(have[j], max(have) * share) for j, share in enumerate(shares)}


@dataclass(frozen=True)
class Step(ImbalanceProtocol):
    """The last ``share`` of the classes become ``factor`` times rarer than the largest class.

    >>> Step(10).kept(torch.full((4,), 50), torch.Generator()).tolist()
    [50, 50, 5, 5]
    """

    name = "step"

    factor: float
    share: float = 0.5

    def __post_init__(self) -> None:
        _check_factor(self.factor)
        _check("share", self.share, 0 < _number(self.share) < 1, "a number between 0 and 1")

    def quota(self, counts: Tensor, generator: Generator) -> dict[int, int]:
        have = counts.tolist()
        rare = math.floor(self.share * len(have) + 0.5)  # half a class counts as one
        rare = min(max(rare, 1), len(have) - 1)
        few = max(have) / self.factor
        return {j: _at_most(have[j], few) for j in range(len(have) - rare, len(have))}


_PROTOCOLS: dict[str, type[ImbalanceProtocol]] = {
    kind.name: kind for kind in (DropFromClasses, GaussianDeletion, LongTailed, Step, AsItIs)
}


def parse_protocol(text: str) -> ImbalanceProtocol:
    """A protocol from its name and numbers, as a command line has them.

    >>> parse_protocol("drop:4:0.99"), parse_protocol("step:10:0.3")
    (DropFromClasses(classes=4, p=0.99), Step(factor=10, share=0.3))
    """
    if not isinstance(text, str):
        raise InputError(f"an imbalance protocol must be text, as exp:100, found {text!r}")
    name, *values = text.strip().split(":")
    if name not in _PROTOCOLS:
        close = difflib.get_close_matches(name, _PROTOCOLS, 1)
        raise InputError(
            f"an imbalance protocol must be {', '.join(map(_usage, _PROTOCOLS))}, found {text!r}"
            + "".join(f"; did you mean {_usage(match)}?" for match in close)
        )
    allowed = fields(_PROTOCOLS[name])
    needed = sum(field.default is MISSING for field in allowed)
    try:
        numbers = [_parsed(value) for value in values]
    except ValueError:
        numbers = None
    if numbers is None or not needed <= len(numbers) <= len(allowed):
        raise InputError(f"this protocol is written {_usage(name)} in numbers, found {text!r}")
    return _PROTOCOLS[name](*numbers)


def draw(
    y: Tensor,  # (m,)
    quota: dict[int, int],
    generator: Generator,
) -> Tensor:  # (kept,)  rows, sorted
    """Pick at random the samples that stay: as many as the quota of their class says."""
    counts = torch.bincount(y.cpu())
    rows = y.cpu().argsort(stable=True).split(counts.tolist())  # of each class, in order
    keep = torch.ones(len(y), dtype=torch.bool)
    for j in sorted(quota):
        if j < len(rows):  # the last classes may have no sample
            shuffled = rows[j][torch.randperm(len(rows[j]), generator=generator)]
            keep[shuffled[quota[j] :]] = False
    return keep.nonzero().flatten()


def drop_from_classes(
    samples: Samples,
    p: float,
    *,
    generator: Generator,
    classes: int = 4,
) -> tuple[Tensor, list[int]]:  # kept rows, the classes that were drawn
    """`DropFromClasses` where the generator is given: the paper's protocol in one call."""
    quota = DropFromClasses(classes, p).quota(samples.class_counts, generator)
    return draw(samples.y, quota, generator), list(quota)


def _gaussian(have: Tensor, total: int) -> Tensor:  # (n,) -> (n,)
    """``have`` under a Gaussian over the places, at least one each, with this total: σ by halving.

    The total grows with σ from the first class and one of each other to everything.
    """
    place = torch.arange(len(have), dtype=torch.float64)

    def kept(sigma: float) -> Tensor:
        return (have * torch.exp(-((place / sigma) ** 2) / 2)).clamp(min=1)

    low, high = _NARROWEST, 1.0
    while float(kept(high).sum()) < total:
        high *= 2
    for _ in range(100):  # down to neighbouring floating-point numbers
        middle = (low + high) / 2
        low, high = (middle, high) if float(kept(middle).sum()) < total else (low, middle)
    return kept(high)


def _whole(parts: Tensor, total: int) -> Tensor:  # (n,) -> (n,)
    """The parts as whole numbers with this total: those that lose most by it are rounded up."""
    number = parts.floor().long()
    up = (parts - number).argsort(descending=True, stable=True)[: total - int(number.sum())]
    number[up] += 1
    return number


def _at_most(have: int, wanted: float) -> int:
    return min(have, max(1, math.floor(wanted + _ROUNDING)))


def _number(value: object) -> float:
    """NaN, which lies in no range, for what is no number."""
    return float(value) if isinstance(value, Real) else math.nan


def _check(name: str, value: object, holds: bool, must: str) -> None:
    if not holds:
        raise InputError(f"{name} must be {must}, found {value!r}")


def _check_factor(factor: object) -> None:
    _check("factor", factor, 1 <= _number(factor) < math.inf, "a finite number, 1 or more")


def _parsed(text: str) -> float:
    value = float(text)
    return int(value) if value.is_integer() else value


def _text(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else str(float(value))


def _usage(name: str) -> str:
    """``step:factor[:share]``, from the protocol's own fields."""
    parts = fields(_PROTOCOLS[name])
    optional = (f":{f.name}" if f.default is MISSING else f"[:{f.name}]" for f in parts)
    return name + "".join(optional)
