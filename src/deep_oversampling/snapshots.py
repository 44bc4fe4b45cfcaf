"""All that a training needs to go on, as bytes and back."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from .errors import InputError
from .history import History
from .schema import is_history, is_real, is_text, is_whole, or_none, table, table_of
from .training import Halfway

__all__ = ["Snapshot", "Unfit", "pack", "unpack"]

_VERSION = 1
_KINDS = {"weights", "optimizer", "start", "best", "halfway", "random"}  # of tensors


class Unfit(InputError):
    """A checkpoint that no training can go on from, though its checksum is right."""


@dataclass(eq=False)
class Snapshot:
    """All that a training needs to go on."""

    rounds: int  # finished
    history: History
    weights: dict[str, Tensor]
    optimizer: dict[str, Tensor]  # "3.momentum_buffer": of the fourth parameter
    numbers: dict[str, float] = field(default_factory=dict)  # of its state that are no tensors
    halfway: Halfway | None = None  # within the round that follows
    start: dict[str, Tensor] | None = None  # the weights that it started from
    best: dict[str, Tensor] = field(default_factory=dict)  # of the best round, to stop early with
    begun: str = ""  # a digest of the weights that the training began with

    @property
    def whole(self) -> dict[str, Tensor]:
        """The weights after the last round that is finished."""
        return self.start or self.weights


def pack(snapshot: Snapshot, settings: dict[str, Any]) -> bytes:
    tensors = {f"weights.{name}": t for name, t in snapshot.weights.items()}
    tensors |= {f"optimizer.{name}": t for name, t in snapshot.optimizer.items()}
    tensors |= {f"start.{name}": t for name, t in (snapshot.start or {}).items()}
    tensors |= {f"best.{name}": t for name, t in snapshot.best.items()}
    halfway = snapshot.halfway
    if halfway:
        tensors |= {"halfway.losses": halfway.losses.cpu().contiguous()}
        tensors |= {f"random.{name}": t for name, t in halfway.random.items()}
    about = {
        "version": _VERSION,
        "settings": settings,
        "begun": snapshot.begun,
        "rounds": snapshot.rounds,
        "step": halfway.step if halfway else None,
        "history": snapshot.history.to_dict(),
        "numbers": snapshot.numbers,
    }
    content: bytes = save(tensors, {"about": json.dumps(about)})
    return content


def unpack(content: bytes, path: Path) -> tuple[Snapshot, dict[str, Any]]:
    """With the settings it was made by; ``path`` is for the error that says what is wrong."""
    try:
        size = int.from_bytes(content[:8], "little")
        about = json.loads(json.loads(content[8 : 8 + size])["__metadata__"]["about"])
        if not _is_about(about):
            raise ValueError("values are missing, or of another type than they must be")
        if about["version"] > _VERSION:
            raise InputError(
                f"{path} must be a checkpoint that this release can read, found version "
                f"{about['version']} instead of {_VERSION}; use the release that wrote it"
            )
        return _snapshot(about, load(content)), about["settings"]
    except InputError:
        raise
    except (SafetensorError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise Unfit(
            f"{path} must be a checkpoint of a training, found: {error!r:.200}; get an undamaged "
            "copy, or delete it to begin anew"
        ) from None


_is_about = table(
    **dict.fromkeys(("version", "rounds"), is_whole),
    step=or_none(is_whole),
    settings=lambda value: isinstance(value, dict),
    begun=is_text,
    numbers=table_of(is_real),
    history=is_history,
)


def _snapshot(about: dict[str, Any], tensors: dict[str, Tensor]) -> Snapshot:
    parts: dict[str, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        kind, _, rest = name.partition(".")
        parts.setdefault(kind, {})[rest] = tensor
    if unknown := parts.keys() - _KINDS:
        raise ValueError(f"unknown tensors {min(unknown)!r:.80}")
    halfway = None
    if about["step"] is not None:
        halfway = Halfway(about["step"], parts["halfway"]["losses"], parts["random"])
    return Snapshot(
        about["rounds"],
        History.from_dict(about["history"]),
        parts["weights"],
        parts.get("optimizer", {}),
        about["numbers"],
        halfway,
        parts.get("start"),
        parts.get("best", {}),
        about["begun"],
    )
