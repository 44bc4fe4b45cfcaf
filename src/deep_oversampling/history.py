"""What a training did: losses of every round, the embeddings' spread, measures on validation."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from torch import Tensor

from .moments import Spread, moments_of

__all__ = ["History", "Mishap", "Round", "Spread", "spread"]


def spread(v: Tensor, y: Tensor, n: int) -> Spread:  # (m, d), (m,)
    """How compact the classes are in embeddings that are all at hand."""
    return moments_of(v, y, n).spread()


@dataclass(frozen=True)
class Round:
    """One pass over 𝒳 (single-task) or 𝒵′ (multi-task)."""

    task: str  # "single" or "multi"
    presented: int  # rows of the round: m, or Σ r_j m_j
    classifier_loss: float  # mean ℓ_g
    embedding_loss: float  # mean λℓ_f, 0 in single-task rounds
    seconds: float
    validation: dict[str, dict[str, float]] | None = None  # group -> measure -> value
    alive: float | None = None  # share of the outputs of f that tell samples apart, if looked at

    def scalars(self) -> dict[str, float]:
        """Every number under a name of its own, for a logger.

        >>> one = Round("multi", 60, 0.5, 0.1, 2.0, {"minority": {"f1": 0.8}})
        >>> one.scalars()
        {'classifier_loss': 0.5, 'embedding_loss': 0.1, 'seconds': 2.0, 'minority/f1': 0.8}
        """
        found = {
            "classifier_loss": self.classifier_loss,
            "embedding_loss": self.embedding_loss,
            "seconds": self.seconds,
        }
        if self.alive is not None:
            found["alive"] = self.alive
        for group, measures in (self.validation or {}).items():
            found |= {f"{group}/{name}": value for name, value in measures.items()}
        return found


@dataclass(frozen=True)
class Mishap:
    """Something that went wrong, and what was done about it."""

    round: int  # from 1 on
    found: str  # in words
    done: str  # in words
    rate: float = 1.0  # what the learning rate was multiplied by

    def __str__(self) -> str:
        return f"round {self.round}: {self.found}; {self.done}"


@dataclass
class History:
    """Rounds in the order they were trained.

    ``spreads[t]`` is the spread of the embeddings that multi-task round t starts from; the
    last entry is the one that training ended with. ``kept`` is the index of the round whose
    weights early stopping put back, ``mishaps`` what went wrong on the way.
    """

    rounds: list[Round] = field(default_factory=list)
    spreads: list[Spread] = field(default_factory=list)
    kept: int | None = None
    mishaps: list[Mishap] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Plain lists and numbers, ready for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, told: dict[str, Any]) -> History:
        """What `to_dict` made."""
        return cls(
            [Round(**one) for one in told["rounds"]],
            [Spread(**one) for one in told["spreads"]],
            told.get("kept"),
            [Mishap(**one) for one in told.get("mishaps", [])],
        )

    def __str__(self) -> str:
        lines = [f"{'round':>5}  {'task':<6}  {'presented':>9}  {'ℓ_g':>8}  {'λℓ_f':>8}"]
        for t, r in enumerate(self.rounds, 1):
            losses = f"{r.classifier_loss:8.4f}  {r.embedding_loss:8.4f}"
            lines.append(f"{t:>5}  {r.task:<6}  {r.presented:>9}  {losses}")
        if self.kept is not None:
            lines.append(f"the weights are those of round {self.kept + 1}, the best on validation")
        lines += map(str, self.mishaps)
        ratios = " → ".join(f"{s.ratio:.2f}" for s in self.spreads)
        return "\n".join([*lines, f"between/within variance of the embeddings: {ratios}"])
