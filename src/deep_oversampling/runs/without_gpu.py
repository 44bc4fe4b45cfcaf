"""What a run is without a GPU where nobody says: small enough to end in minutes on two cores."""

from __future__ import annotations

from dataclasses import replace

from ..network import pick_device
from .settings import Settings

__all__ = ["NOTE", "is_modest", "largest_side", "settled"]

_SIDE = 64  # pixels; measured beside others in docs/train.md

NOTE = (
    f"LeNet on pictures of {_SIDE} × {_SIDE}, to end in minutes without a GPU; --model resnet18 is "
    "the larger network on larger pictures, and takes hours; --size and --model choose anything"
)


def is_modest(settings: Settings) -> bool:
    """Whether network and size are left to this rule: on a CPU, with no word about either."""
    left_out = settings.model == "auto" and settings.size is None and settings.weights is None
    return left_out and pick_device(settings.device).type == "cpu"


def largest_side(settings: Settings) -> int | None:
    """That pictures are decoded to at most; None: what suits them."""
    return _SIDE if is_modest(settings) else None


def settled(settings: Settings, shape: tuple[int, ...]) -> tuple[Settings, bool]:
    """With the network and size of this rule, where these samples are what it has made."""
    if not is_modest(settings) or len(shape) != 3 or shape[1:] != (_SIDE, _SIDE):
        return settings, False
    return replace(settings, model="lenet", size=_SIDE), True
