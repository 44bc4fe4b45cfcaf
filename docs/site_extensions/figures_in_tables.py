"""Cells of tables that hold figures are marked, so that they are not broken into two lines."""

from __future__ import annotations

import re

from docutils import nodes
from sphinx.application import Sphinx

FIGURES = re.compile(r"[-−+]?[.\d][^a-zA-Z]{0,24}(, p [=<] [.\d]+)?|–")


def mark(app: Sphinx, doctree: nodes.document) -> None:
    for cell in doctree.findall(nodes.entry):
        if FIGURES.fullmatch(cell.astext().strip()):
            cell["classes"].append("figures")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("doctree-read", mark)
    return {"parallel_read_safe": True}
