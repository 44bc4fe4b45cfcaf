"""How much each class is over-sampled: the overloading k_j and the over-sampling size r_j.

This is the only place that treats minority and majority classes differently; afterwards only
the two vectors travel.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral, Real

import torch
from torch import Tensor

from .errors import InputError

__all__ = ["Plan", "default_k", "default_plan", "default_tau"]

_NAMED = 5  # classes in warnings, one each
_KNOWN = 0.6  # of the way from guessing to telling every sample's class: before it neighbours harm
_PART = 0.5  # q: half way between classes as they are and levelled ones, on a logarithmic scale


def default_k(augmented: bool) -> int:
    """Neighbours where nobody says how many: 5, within what the paper advises.

    0 where training sees changed copies of the samples: there neighbours do more harm than good,
    and over-sampling alone does none (docs/safe.md).
    """
    return 0 if augmented else 5


def default_tau(pieces: float) -> float:
    """τ of the margin where nobody says how much: none, or with pieces the q of `Plan.in_part`.

    That makes up for how classes are presented, and for no more. Long trainings that are judged
    evenly gain by a larger one, which does harm in short ones (docs/margin.md).
    """
    return _PART if pieces else 0.0


@dataclass(frozen=True, eq=False, init=False)
class Plan:
    """{k_j} and {r_j}: in-class neighbours and presentations per round, for each class.

    k_j = 0, r_j = 1 is plain training of class j; k_j = 0, r_j > 1 is random over-sampling. r_j may
    be a fraction: then some samples of the class, others in every round, are presented once more.
    ``minority`` marks the classes that the plan favours: by default those with more than the
    least k or r, so none where all classes are treated alike. With ``known`` there are neighbours
    in rounds alone that begin with a g that knows so much of the classes (`cautious`).

    >>> Plan(k=[0, 5], r=[1, 20])
    Plan(k=[0, 5], r=[1, 20])
    """

    k: Tensor  # (n,)  ≥ 0
    r: Tensor  # (n,)  ≥ 1, integers or, where one is a fraction, floats
    minority: Tensor  # (n,)  bool
    known: float  # within 0 and 1, from guessing to telling the class of every sample

    def __init__(
        self,
        k: Tensor | Sequence[int],
        r: Tensor | Sequence[float],
        minority: Tensor | Sequence[bool] | None = None,
        *,
        known: float = 0.0,
    ) -> None:
        k, r = _numbers("k", k, least=0, whole=True), _numbers("r", r, least=1, whole=False)
        if len(k) != len(r):
            raise InputError(
                f"k and r must name the same classes, found {len(k)} values of k and {len(r)} of r"
            )
        favoured = (k > k.min()) | (r > r.min()) if minority is None else _marks(minority, len(k))
        if not isinstance(known, Real) or not 0 <= known <= 1:
            raise InputError(f"known must be a share between 0 and 1, found {known!r}")
        fields = {"k": k, "r": r, "minority": favoured, "known": float(known)}
        for field, value in fields.items():
            object.__setattr__(self, field, value)

    def __repr__(self) -> str:
        told = f"k={self.k.tolist()}, r={[round(one, 2) for one in self.r.tolist()]}"
        return f"Plan({told}, known={self.known:.2g})" if self.known else f"Plan({told})"

    @classmethod
    def for_minority(
        cls,
        counts: Tensor,  # (n,)  samples per class
        minority: Sequence[int],
        k: int = 5,
        *,
        r_times: float = 1.0,
    ) -> Plan:
        """The paper's guideline: k_mjr = 0, k_mnr = k and r = r_times / R, rounded.

        R is the average minority count over the average majority count; the paper suggests r
        from [1/R, k/R], that is ``r_times`` from [1, k] (R13).

        >>> Plan.for_minority(torch.tensor([100, 5, 100, 15]), [1, 3], k=5)
        Plan(k=[0, 5, 0, 5], r=[1, 10, 1, 10])
        """
        counts = _checked_counts(counts)
        chosen = sorted(set(minority))
        if not chosen or chosen[0] < 0 or chosen[-1] >= len(counts) or len(chosen) == len(counts):
            raise InputError(
                f"minority must name some but not all of the classes 0 … {len(counts) - 1}, "
                f"found {list(minority)}; use Plan.uniform for balanced data"
            )
        _check_strength(k, r_times)
        favoured = torch.zeros(len(counts), dtype=torch.bool)
        favoured[chosen] = True
        ratio = counts[favoured].double().mean() / counts[~favoured].double().mean()  # R
        r = max(1, round(r_times / float(ratio)))
        return cls(torch.where(favoured, k, 0), torch.where(favoured, r, 1), favoured)

    @classmethod
    def uniform(cls, n: int, k: int = 5) -> Plan:
        """Balanced data, as the paper's third experiment: k for every class and r = 1.

        >>> Plan.uniform(3, k=5)
        Plan(k=[5, 5, 5], r=[1, 1, 1])
        """
        _check_strength(k, 1.0)
        return cls(torch.full((n,), k), torch.ones(n, dtype=torch.long))

    @classmethod
    def plain(cls, n: int) -> Plan:
        """No over-sampling at all: k = 0, r = 1.

        >>> Plan.plain(3)
        Plan(k=[0, 0, 0], r=[1, 1, 1])
        """
        return cls.uniform(n, k=0)

    @classmethod
    def automatic(
        cls,
        counts: Tensor,  # (n,)
        k: int = 5,
        *,
        r_times: float = 1.0,
        names: Sequence[str] | None = None,
    ) -> Plan:
        """A plan from the class counts alone.

        A class is a minority when it has **less than half the samples of the largest class**.
        It gets k neighbours and r_j = r_times · (mean majority count) / m_j, rounded: the
        paper's 1/R class by class, so that a long tail is levelled too. Without any minority
        the data count as balanced and the plan is uniform.

        >>> Plan.automatic(torch.tensor([100, 80, 20, 4]))
        Plan(k=[0, 0, 5, 5], r=[1, 1, 4, 22])
        >>> Plan.automatic(torch.tensor([100, 80, 60]))
        Plan(k=[5, 5, 5], r=[1, 1, 1])
        """
        counts = _checked_counts(counts, names)
        _check_strength(k, r_times)
        favoured = 2 * counts < counts.max()
        if not bool(favoured.any()):
            return cls.uniform(len(counts), k)
        level = r_times * counts[~favoured].double().mean() / counts.double()
        r = torch.where(favoured, level.round().clamp(min=1).long(), 1)
        return cls(torch.where(favoured, k, 0), r)

    @classmethod
    def in_part(
        cls,
        counts: Tensor,  # (n,)
        k: int = 5,
        *,
        q: float = _PART,
        names: Sequence[str] | None = None,
    ) -> Plan:
        """Classes levelled in part: one with a share π_j of the samples is presented ∝ π_j^q.

        So r_j = (m_max / m_j)^(1 − q): q = 0 levels all classes, q = 1 leaves them as they are. All
        have k neighbours; rare ones are those of `automatic`. With pieces of neighbours and a
        margin τ this is DOS for a network with batch norm and augmentation (docs/modern.md).

        >>> Plan.in_part(torch.tensor([100, 80, 20, 1]))
        Plan(k=[5, 5, 5, 5], r=[1.0, 1.12, 2.24, 10.0])
        """
        counts = _checked_counts(counts, names)
        _check_strength(k, 1.0)
        if not isinstance(q, Real) or not 0 <= q <= 1:
            raise InputError(f"q must be a number in [0, 1], found {q!r}")
        r = (counts.max() / counts.double()).pow(1 - q)
        return cls(torch.full_like(counts, k), r, 2 * counts < counts.max())

    def rows(self, counts: Tensor) -> Tensor:  # (n,) -> (n,)
        """r_j m_j, rounded: what a round presents of each class.

        >>> Plan(k=[0, 5], r=[1, 2.5]).rows(torch.tensor([100, 15])).tolist()
        [100, 38]
        """
        return (self.r.double() * counts.cpu()).round().long()

    def without_neighbours(self) -> Plan:
        """Random over-sampling with the same number of presentations: k = 0, r as it is."""
        return Plan(torch.zeros_like(self.k), self.r, self.minority)

    def cautious(self, known: float = _KNOWN) -> Plan:
        """The plan with neighbours in rounds alone that begin with a g that knows the classes.

        Where g still guesses, the neighbours of a rare sample teach it little but to name its class
        more often, and do more harm than good (docs/safe.md). What g ``known`` is the mean recall
        of the classes on the samples themselves: 0 is what guessing has, 1 is all. Other rounds
        over-sample without neighbours. A plan that has none is cautious as it is.

        >>> Plan(k=[0, 5], r=[1, 20]).cautious()
        Plan(k=[0, 5], r=[1, 20], known=0.6)
        """
        return Plan(self.k, self.r, self.minority, known=known) if bool(self.k.any()) else self

    def fitted_to(self, counts: Tensor, names: Sequence[str] | None = None) -> Plan:
        """The plan with k_j clamped to the m_j − 1 neighbours a class has, and said so (R8)."""
        counts = _checked_counts(counts, names)
        if len(counts) != len(self.k):
            raise InputError(
                f"the plan must name every class of the data, found a plan for {len(self.k)} "
                f"classes and data of {len(counts)}"
            )
        k = torch.minimum(self.k, counts - 1)
        small = (k < self.k).nonzero().flatten().tolist()
        for j in small[:_NAMED]:
            warnings.warn(
                f"class {_name(j, names)} has {int(counts[j])} sample(s), so k={int(k[j])} "
                f"in-class neighbours are used for it instead of {int(self.k[j])}",
                UserWarning,
                stacklevel=3,
            )
        if more := small[_NAMED:]:
            warnings.warn(
                f"{len(more)} more classes have fewer samples than neighbours were asked for, and "
                "the neighbours that they have are used",
                UserWarning,
                stacklevel=3,
            )
        return Plan(k, self.r, self.minority, known=self.known)


def default_plan(
    counts: Tensor, names: Sequence[str] | None, augmented: bool, pieces: bool
) -> Plan:
    """Where nobody gives one: pieces of neighbours go with classes levelled in part."""
    if pieces:
        return Plan.in_part(counts, names=names)
    return Plan.automatic(counts, default_k(augmented), names=names).cautious()


def _numbers(
    name: str, values: Tensor | Sequence[float], *, least: int, whole: bool
) -> Tensor:  # (n,)
    kind = "whole number" if whole else "number"
    try:
        found = torch.as_tensor(values)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must hold {kind}s: {error}") from None
    wrong = found.is_complex() or (whole and found.is_floating_point())
    if wrong or found.ndim != 1 or not bool(((found >= least) & found.isfinite()).all()):
        raise InputError(f"{name} must hold one {kind} ≥ {least} per class, found {found.tolist()}")
    return found.double().cpu() if bool((found != found.round()).any()) else found.long().cpu()


def _marks(minority: Tensor | Sequence[bool], n: int) -> Tensor:  # (n,)
    try:
        found = torch.as_tensor(minority)
    except (TypeError, ValueError):
        found = torch.empty(0)
    if found.dtype != torch.bool or found.shape != (n,):
        raise InputError(
            f"minority must say true or false of each of the {n} classes, found {minority!r:.80}; "
            "Plan.for_minority takes their numbers"
        )
    return found.cpu()


def _check_strength(k: int, r_times: float) -> None:
    if not isinstance(k, Integral) or k < 0:
        hint = "; DOSClassifier takes 'auto' as well" if isinstance(k, str) else ""
        raise InputError(f"k must be a whole number ≥ 0, found {k!r}{hint}")
    if not 1 <= r_times <= max(k, 1):
        hint = "; give a k of 1 or more as well" if k == 0 else ""  # it may be a default
        raise InputError(f"r_times must lie in [1, k] = [1, {max(k, 1)}], found {r_times}{hint}")


def _checked_counts(counts: Tensor, names: Sequence[str] | None = None) -> Tensor:
    counts = torch.as_tensor(counts).long().cpu()
    if counts.ndim != 1 or len(counts) < 2:
        raise InputError(f"there must be two or more classes, found class counts {counts.tolist()}")
    if bool((counts < 1).any()):
        empty = [_name(j, names) for j in (counts < 1).nonzero().flatten().tolist()]
        raise InputError(
            f"every class must have at least one sample, found none of {', '.join(empty)}; "
            "remove such classes from the labels or add samples"
        )
    return counts


def _name(j: int, names: Sequence[str] | None) -> str:
    return f"{names[j]!r}" if names else f"{j}"
