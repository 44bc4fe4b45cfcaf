"""The documentation holds: snippets run, commands and names exist, links lead somewhere.

That the site can be built from it, and that its links hold there too, is for `make docs`.
"""

import re
import runpy
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

import deep_oversampling
from deep_oversampling import Plan, cli, data, rivals
from deep_oversampling.losses import weighted_errors
from picture_files import folder_of

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = [*(ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "CHANGELOG"))]
PAGES += sorted(DOCS.glob("*.md"))
SNIPPETS = [
    pytest.param(code, id=f"{page.name}-{i}")
    for page in PAGES
    for i, code in enumerate(re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL))
]


@pytest.mark.parametrize("code", SNIPPETS)
def test_snippet_runs(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DOS_CACHE", str(tmp_path / "cache"))
    folder_of(tmp_path / "pictures", {"common": 40, "rare": 10}, (16, 16, 3))
    exec(compile(code, "snippet", "exec"), {})


def test_readme_has_snippets() -> None:
    assert any(p.id.startswith("README") for p in SNIPPETS)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_relative_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


def commands(command: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """What can be typed after ``dos``."""
    inner = getattr(command, "commands", None)
    if inner is None:
        yield words, command
    for name, one in (inner or {}).items():
        yield from commands(one, (*words, name))


COMMANDS = dict(commands(typer.main.get_command(cli.app)))
BLOCKS = re.compile(r"^```.*?\n(.*?)^```$", re.DOTALL | re.MULTILINE)
TYPED = [
    pytest.param(line, id=f"{page.name}: {line[:50]}")
    for page in PAGES
    for block in BLOCKS.findall(page.read_text())
    for line in block.splitlines()
    if line.startswith("dos ")
]


@pytest.mark.parametrize("line", TYPED)
def test_what_is_to_be_typed_exists(line: str) -> None:
    words = tuple(shlex.split(line, comments=True))[1:]
    named = [names for names in COMMANDS if words[: len(names)] == names]
    assert named, f"no command of that name: {line}"
    options = {option for one in COMMANDS[named[0]].params for option in one.opts}
    assert {word.partition("=")[0] for word in words if word.startswith("--")} <= options


def test_every_command_is_on_its_page() -> None:
    page = (DOCS / "commands.md").read_text()
    for words in COMMANDS:
        assert re.search(rf"`(dos )?{words[-1]}`|`dos {' '.join(words)}`", page), words


@pytest.mark.parametrize("package", [deep_oversampling, data, rivals], ids=lambda p: p.__name__)
def test_every_public_name_is_in_the_api(package: Any) -> None:
    page = (DOCS / "api.md").read_text()
    listed = set(re.findall(r"\.\. auto\w+:: (\w+)\n", page)) | set(re.findall(r"`(\w+)`", page))
    assert set(package.__all__) <= listed


def test_comments_beside_arguments_reach_the_api() -> None:
    comments = runpy.run_path(str(DOCS / "site_extensions" / "argument_comments.py"))["comments"]
    assert comments(weighted_errors) == [
        ("fx", "(b, d)     f(x), carries the gradient"),
        ("v", "(b, K, d)  neighbours, constant"),
        ("w", "(b, K)     weights, 0 where padded"),
        ("", "(b, K)"),
    ]
    assert dict(comments(Plan))["minority"] == "(n,)  bool"
    assert comments(len) == []
