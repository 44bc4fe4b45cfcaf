"""Every Python snippet of the README and the documentation runs."""

import re
from pathlib import Path

import pytest

from picture_files import folder_of

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
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
