"""Shapes and defaults are comments beside the arguments; the API shows them below the signature.

    def embed(
        x: Tensor,  # (m, d)  the samples

gives `:param x: (m, d)  the samples`, and a field of a dataclass likewise; what stands beside the
result on a line of its own, `:returns:`.
"""

from __future__ import annotations

import ast
import inspect
import io
import re
import textwrap
import tokenize
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def comments(thing: Any) -> list[tuple[str, str]]:
    """(name, comment) of a function's arguments and result, "", or of a class's fields."""
    try:
        source = textwrap.dedent(inspect.getsource(thing))
        (definition,) = ast.parse(source).body
    except (OSError, TypeError, SyntaxError, ValueError):
        return []
    beside = {
        token.start[0]: token.string.removeprefix("#").strip()
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT and not token.string.startswith(("# type:", "# noqa"))
    }
    if isinstance(definition, ast.ClassDef):
        fields = [one for one in definition.body if isinstance(one, ast.AnnAssign)]
        named = [(one.target.id, one) for one in fields if isinstance(one.target, ast.Name)]
    elif isinstance(definition, ast.FunctionDef):
        arguments = definition.args
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        named = [(one.arg, one) for one in every if one.lineno != definition.lineno]
        if named and definition.returns:
            named.append(("", definition.returns))
    else:
        return []
    lines = [(name, node.end_lineno or node.lineno) for name, node in named]
    ends = [line for _, line in lines]
    return [(n, beside[end]) for n, end in lines if end in beside and ends.count(end) == 1]


def show(app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    if what == "class":
        entries = comments(thing)
        entries += [one for one in comments(thing.__init__) if one[0] not in {*dict(entries), ""}]
    elif what in ("function", "method"):
        entries = comments(inspect.unwrap(getattr(thing, "__func__", thing)))
    else:
        return
    if entries:
        fields = ((f"param {one}" if one else "returns", text) for one, text in entries)
        lines += ["", *(f":{field}: {_escaped(text)}" for field, text in fields), ""]


def _escaped(text: str) -> str:
    """Comments are no reStructuredText: a * or _ in them means itself."""
    return "".join(f"\\{c}" if c in "*_|\\`" else c for c in text)


ALIAS = r"~?[\w.]*TypeAliasForwardRef\('(\w+)'\)"
ARRAY = r"~numpy\.ndarray\[tuple\[.*?\], ~numpy\.dtype\[(.*?)\]\]"


def as_written(
    app: Sphinx, what: str, name: str, thing: Any, options: Any, signature: str | None, result: Any
) -> tuple[str, Any] | None:
    """ArrayLike and NDArray[…] by their names; Sphinx has what they stand for."""
    if not signature:  # a property, a field
        return None
    names = (re.sub(ALIAS, r"\1", text or "") for text in (signature, result))
    arguments, found = (re.sub(ARRAY, r"NDArray[\1]", text) for text in names)
    return arguments, found or None


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("autodoc-process-signature", as_written)
    app.connect("autodoc-process-docstring", show)
    return {"parallel_read_safe": True}
