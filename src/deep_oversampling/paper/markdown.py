"""Tables of Markdown, and words that all of them share."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..rivals import METHODS
from .settings import SETS

__all__ = ["NAMES", "measure_names", "method_title", "plain", "set_title", "table"]

NAMES = {"precision": "Pr", "recall": "Re", "f1": "F1", "auprc": "AUPRC"}


def measure_names(measures: Sequence[str]) -> list[str]:
    return [NAMES[measure] for measure in measures]


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a Markdown table, and an empty one after them."""
    lines = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    return [*lines, *(f"| {' | '.join(row)} |" for row in rows), ""]


def method_title(method: str, k: int | None = None) -> str:
    """As a table has it; DOS stands out, and has its k where there are several."""
    title = METHODS[method].title + ("" if k is None else f", k = {k}")
    return f"**{title}**" if method == "dos" else title


def set_title(name: str, found: str | None = None) -> str:
    """As the data calls itself, which may be "re-created", else as the paper does."""
    return plain(found) if found else SETS[name].title


def plain(text: str) -> str:
    """What a file says, as words: it can be no tag, link, column or line of its own.

    >>> plain("a|b <script>")
    'a\\\\|b \\\\<script\\\\>'
    """
    return re.sub(r"([\\`*\[\]<>|&])", r"\\\1", " ".join(text.split()))
