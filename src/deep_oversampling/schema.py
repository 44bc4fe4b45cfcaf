"""What must hold of values that were read: small questions, put together for a document."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from typing import Any

__all__ = [
    "Holds",
    "is_count",
    "is_history",
    "is_number",
    "is_real",
    "is_text",
    "is_true_or_false",
    "is_whole",
    "list_of",
    "or_none",
    "table",
    "table_of",
]

Holds = Callable[[Any], bool]


def is_text(value: Any) -> bool:
    return isinstance(value, str)


def is_true_or_false(value: Any) -> bool:
    return isinstance(value, bool)


def is_whole(value: Any) -> bool:
    """A whole number that a tensor can hold; True is none."""
    return type(value) is int and -(2**63) <= value < 2**63


def is_count(value: Any) -> bool:
    return is_whole(value) and value >= 0


def is_number(value: Any) -> bool:
    """A finite one: JSON's 1e999 is read as infinity."""
    return is_real(value) and math.isfinite(value)


def is_real(value: Any) -> bool:
    """Any number, or NaN: a measure without samples, a loss that was lost."""
    return is_whole(value) or isinstance(value, float)


def or_none(holds: Holds) -> Holds:
    return lambda value: value is None or holds(value)


def list_of(holds: Holds) -> Holds:
    return lambda value: isinstance(value, list) and all(map(holds, value))


def table_of(holds: Holds, *, needs: Collection[str] = ()) -> Holds:
    """A table of any names, all of one kind; those it ``needs`` are among them."""

    def check(value: Any) -> bool:
        return (
            isinstance(value, dict) and set(needs) <= set(value) and all(map(holds, value.values()))
        )

    return check


def table(**columns: Holds) -> Holds:
    """A table with these names at least, each with a question of its own."""

    def check(value: Any) -> bool:
        return isinstance(value, dict) and all(
            name in value and holds(value[name]) for name, holds in columns.items()
        )

    return check


_measures = table_of(table_of(or_none(is_real)))  # group -> measure -> value
_losses = table(
    task=is_text,
    presented=is_count,
    classifier_loss=or_none(is_real),
    embedding_loss=or_none(is_real),
    seconds=lambda value: is_number(value) and value >= 0,
)
_spread = table(within=or_none(is_real), between=or_none(is_real))
_mishap = table(round=is_whole, found=is_text, done=is_text, rate=is_real)


def is_history(value: Any) -> bool:
    """As `History.to_dict` makes it."""
    fits = table(rounds=list_of(_is_round), spreads=list_of(_spread))(value)
    kept = fits and or_none(is_count)(value.get("kept"))
    return kept and or_none(list_of(_mishap))(value.get("mishaps"))


def _is_round(value: Any) -> bool:
    known = _losses(value) and or_none(_measures)(value.get("validation"))
    return known and or_none(is_real)(value.get("alive"))
