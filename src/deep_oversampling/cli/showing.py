"""Names from anywhere on a terminal: what it would act on, instead of showing it, is spelt out."""

from __future__ import annotations

import re
import shutil
import sys
from typing import TextIO

from rich.text import Text

__all__ = ["cell", "columns", "narrow", "no_formula", "say", "shown"]

_BOXES = 70  # columns that rich's boxes need: in fewer, names of options are cut off

# control characters, among them the escape that colours and moves; ends of lines; turns of the
# direction of writing, which let a name end with another one's extension
_ACTS = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def shown(text: str) -> str:
    r"""The text in one line, and nothing but text.

    >>> print(shown("a\x1b[31m\nb \u202egpj.exe"))
    a\x1b[31m\nb \u202egpj.exe
    """
    return _ACTS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def say(text: str, file: TextIO | None = None) -> None:
    """A line, whatever names are in it."""
    print(shown(text), file=file or sys.stdout)


def columns() -> int:
    """Of the terminal."""
    return shutil.get_terminal_size().columns


def narrow() -> bool:
    """Whether the terminal has too few columns for help in boxes."""
    return columns() < _BOXES


def no_formula(name: str) -> str:
    """With a ' before it where a spreadsheet would compute it; numbers are left as they are.

    >>> no_formula("=1+1"), no_formula("-1"), no_formula("pear")
    ("'=1+1", '-1', 'pear')
    """
    if not name.startswith(("=", "+", "-", "@", "\t", "\r")):
        return name
    try:
        float(name)
    except ValueError:
        return f"'{name}"
    return name


def cell(name: str, style: str = "") -> Text:
    """Of a table: rich would take [red] and :car: for more than words."""
    return Text(shown(name), style)
