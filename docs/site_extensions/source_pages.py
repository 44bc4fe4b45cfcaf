"""Files of the repository that the pages link to, as pages of the site.

On GitHub `[plan.py](../src/deep_oversampling/plan.py)` shows the file; here it leads to a page with
the same text, so the site needs no address of the repository and has no broken link. Results
(JSON) stay what MyST makes of them, downloads.
"""

from __future__ import annotations

import inspect
import posixpath
import sys
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "deep_oversampling"
LANGUAGES = {".py": "python", ".toml": "toml", ".cff": "yaml", ".md": "markdown", "": "text"}


def page_of(file: Path) -> str:
    return f"code/{file.relative_to(ROOT).as_posix()}"


def link_to_pages(app: Sphinx, doctree: nodes.document) -> None:
    """Before Sphinx collects downloads: links to text files become links to their pages."""
    for download in list(doctree.findall(addnodes.download_reference)):
        docname = app.env.docname
        file = (Path(app.srcdir) / docname).parent.joinpath(download["reftarget"]).resolve()
        if download["reftarget"].startswith("/"):  # MyST has it from the top of docs/
            file = Path(app.srcdir, download["reftarget"].lstrip("/")).resolve()
        if file.suffix not in LANGUAGES or not file.is_relative_to(ROOT) or not file.is_file():
            continue
        app.env.source_pages.add(file)  # type: ignore[attr-defined]
        where = posixpath.relpath(f"{page_of(file)}.html", posixpath.dirname(docname) or ".")
        link = nodes.reference("", "", *download.children, internal=True, refuri=where)
        download.replace_self(link)


def start(app: Sphinx) -> None:
    app.env.source_pages = {  # type: ignore[attr-defined]
        file for file in PACKAGE.rglob("*.py") if file.stat().st_size
    }


def pages(app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    for file in sorted(app.env.source_pages):  # type: ignore[attr-defined]
        name = file.relative_to(ROOT).as_posix()
        code = app.builder.highlighter.highlight_block(
            file.read_text("utf-8"), LANGUAGES[file.suffix], linenos="inline", lineanchors="line"
        )
        body = f'<section class="source-page"><h1>{escape(name)}</h1>{code}</section>'
        yield page_of(file), {"title": name, "body": body}, "page.html"


def source_of(domain: str, info: dict[str, str]) -> str | None:
    """For sphinx.ext.linkcode: where an object of the API is written."""
    found: Any = sys.modules.get(info["module"])
    try:
        for part in info["fullname"].split("."):
            found = getattr(found, part)
        found = inspect.unwrap(found.fget if isinstance(found, property) else found)
        file = Path(inspect.getsourcefile(found) or "").resolve()
        line = inspect.getsourcelines(found)[1]
    except (AttributeError, TypeError, OSError):  # a field, a constant
        return None
    return f"{page_of(file)}.html#line-{line}" if file.is_relative_to(PACKAGE) else None


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("builder-inited", start)
    app.connect("doctree-read", link_to_pages, priority=400)
    app.connect("html-collect-pages", pages)
    return {"parallel_read_safe": False}
