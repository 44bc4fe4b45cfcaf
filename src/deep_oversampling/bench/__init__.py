"""Speed, measured side by side on generated data: what ``dos bench`` runs."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence

import torch

from ..errors import InputError
from . import cell, evaluation, fit, scaling, search, steps
from .records import Note, Part, Record
from .sizes import Sizes

__all__ = ["PARTS", "choose", "measure_part"]

PARTS: dict[str, Part] = {
    "steps": steps.figures,
    "fit": fit.figures,
    "search": search.figures,
    "evaluation": evaluation.figures,
    "scaling": scaling.figures,
    "cell": cell.figures,
}


def choose(names: Sequence[str]) -> list[str]:
    """The parts of these names, all where there are none."""
    for name in names:
        if name not in PARTS:
            near = difflib.get_close_matches(name.lower(), PARTS, n=2)
            hint = f"; did you mean {' or '.join(near)}?" if near else ""
            raise InputError(f"parts must be some of {', '.join(PARTS)}, found {name!r}{hint}")
    return list(dict.fromkeys(names)) or list(PARTS)


def measure_part(name: str, device: torch.device, sizes: Sizes) -> Iterator[Record | Note]:
    """One part; where memory does not suffice, the rest of it is left out, and said to be."""
    try:
        yield from PARTS[name](device, sizes)
    except torch.OutOfMemoryError:
        yield Note(name, f"out of memory on {device}: what is missing was left out")
