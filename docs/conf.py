"""The site: these markdown pages as they are, with what they link to and the API beside them.

Furo and not the pydata theme: fifteen pages without folders need one list of them beside the text,
and Furo's wide tables scroll in a box of their own.
"""

import re
import sys
from itertools import compress
from pathlib import Path

from sphinx.application import Sphinx

sys.path.insert(0, str(Path(__file__).parent / "site_extensions"))

from deep_oversampling import __version__ as release  # noqa: F401  Sphinx reads it

project = "deep-oversampling"
author = "The deep-oversampling authors"
project_copyright = author

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.linkcode",
    "source_pages",  # files outside docs/ that a page links to, and all modules, as pages
    "command_line",  # the commands of `dos`, from the program itself
    "argument_comments",  # the shapes beside the arguments
    "figures_in_tables",  # .947 / .969 stays on one line
]
exclude_patterns = ["_build", "site_extensions"]
myst_heading_anchors = 3  # readings.md#r5, as on GitHub
highlight_language = "text"  # what is to be typed is no Python
nitpicky = True
nitpick_ignore_regex = [
    # Other projects' names: their inventories are not at hand where the network is not.
    (r"py:.*", r"(?!deep_oversampling).*"),
]

linkcheck_ignore = [r"code/.*"]  # pages of source_pages, which only the HTML has

default_role = "py:obj"  # `Samples` in a docstring
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True  # optimizer=sgd, as it is written
autodoc_type_aliases = {name: name for name in ("ArrayLike", "Loss", "Objective", "Progress")}
autodoc_use_type_comments = False
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 70
python_trailing_comma_in_multi_line_signatures = False
add_module_names = False
toc_object_entries_show_parents = "hide"

html_theme = "furo"
html_title = "deep-oversampling"
html_static_path = ["site_extensions/site.css"]
html_css_files = ["site.css"]
html_copy_source = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#2f6db5", "color-brand-content": "#2f6db5"},
    "dark_css_variables": {"color-brand-primary": "#8ab8ee", "color-brand-content": "#8ab8ee"},
}

from source_pages import source_of as linkcode_resolve  # noqa: E402, F401


def setup(app: Sphinx) -> None:
    app.connect("source-read", leave_out_missing)


def leave_out_missing(app: Sphinx, page: str, source: list[str]) -> None:
    """results.md is generated: a page of the contents that is not there is left out of them."""
    if page == "index":
        lines = source[0].splitlines()
        there = (
            not re.fullmatch("[a-z]+", one) or Path(app.srcdir, f"{one}.md").exists()
            for one in lines
        )
        source[0] = "\n".join(compress(lines, there))
