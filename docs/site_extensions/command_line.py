"""`{dos-commands}`: a section for every command of `dos`, from the program itself."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import typer
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from deep_oversampling.cli import app as dos


def commands(command: Any, context: Any) -> Iterator[tuple[Any, Any]]:
    """All that can be typed, with the words that lead there."""
    for name, sub in getattr(command, "commands", {}).items():
        inner = sub.context_class(sub, info_name=name, parent=context)
        if hasattr(sub, "commands"):
            yield from commands(sub, inner)
        else:
            yield sub, inner


class DosCommands(SphinxDirective):
    def run(self) -> list[nodes.Node]:
        root = typer.main.get_command(dos)
        top = root.context_class(root, info_name="dos")
        return [self.section(command, context) for command, context in commands(root, top)]

    def section(self, command: Any, context: Any) -> nodes.section:
        path = context.command_path
        section = nodes.section(ids=[nodes.make_id(path)], names=[path])
        section += nodes.title(path, path)
        self.state.document.note_explicit_target(section)
        usage = command.get_usage(context).removeprefix("Usage: ")
        section += nodes.literal_block(usage, usage, language="text")
        for paragraph in re.split(r"\n\s*\n", command.help or ""):
            section += self.paragraph(paragraph)
        records = [found for one in command.params if (found := one.get_help_record(context))]
        entries = nodes.definition_list(classes=["options"])
        for option, text in records:
            item = nodes.definition_list_item()
            item += nodes.term("", "", nodes.literal(option, option))
            item += nodes.definition("", *[nodes.paragraph(text, text)] * bool(text))
            entries += item
        if records:
            section += entries
        return section

    def paragraph(self, text: str) -> nodes.Node:
        if text.startswith("dos "):
            return nodes.literal_block(text, text, language="text")
        content = nodes.paragraph()
        for i, part in enumerate(text.replace("``", "`").split("`")):
            content += nodes.literal(part, part) if i % 2 else nodes.Text(part)
        return content


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("dos-commands", DosCommands)
    return {"parallel_read_safe": True}
