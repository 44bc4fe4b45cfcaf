"""A run told on one self-contained HTML page."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from .story import Story

__all__ = ["load_story", "save_story", "write_report"]


def save_story(story: Story, folder: Path | str) -> None:
    (Path(folder) / "story.json").write_text(json.dumps({"title": story.title}))


def load_story(folder: Path | str) -> Story:
    title = json.loads((Path(folder) / "story.json").read_text())["title"]
    none = np.zeros(0, np.int64)
    return Story(title, (), (), none, none, none, none, {}, {})


def write_report(story: Story, path: Path | str) -> None:
    Path(path).write_text(f"<!doctype html><title>{story.title}</title>")
