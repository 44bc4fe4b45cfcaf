"""The page: words and pictures as HTML, numbers as JSON, style and script within."""

from __future__ import annotations

import base64
import hashlib
import json
import math
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from ..writing import jsonable, write_whole
from .checks import check_story
from .confusion import confusion
from .counts import counts
from .curves import curves
from .embedding import embedding
from .headline import headline, number, signed
from .pictures import mistakes, over_sampled
from .reliability import reliability
from .rounds import rounds
from .scores import Scores, score
from .story import Story

__all__ = ["render", "write_report"]

# in this order: each uses those before it
_SCRIPTS = ("tools.js", "charts.js", "table.js", "confusion.js", "embedding.js", "report.js")
_NAMES = {"plain": "plain", "dos": "DOS", "difference": "difference"}


def write_report(story: Story, path: Path | str) -> None:
    """Write the page, whole or not at all; it needs no other file and no network."""
    # a lone surrogate, as in a file name that is no UTF-8, cannot be written otherwise
    write_whole({Path(path): render(story).encode("utf-8", "replace")})


def render(story: Story) -> str:
    """The page as text: the same story, the same page."""
    check_story(story)
    scores = score(story)
    told = headline(story, scores)
    script = _script()
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return Template(_asset("page.html")).substitute(
        title=escape(story.title),
        digest=digest,  # the only script that the browser is allowed to run
        style=_asset("report.css"),
        sentence=escape(told["sentence"]),
        groups=_groups(told["groups"]),
        cautions="".join(f"<p>{escape(one)}</p>" for one in told["cautions"]),
        over_sampled=over_sampled(story),
        mistakes=mistakes(story),
        facts=_facts(story.facts),
        data=_embedded(figures(story, scores)),
        script=script,
    )


def figures(story: Story, scores: Scores) -> dict[str, Any]:
    """All that the script draws."""
    n = len(story.classes)
    return {
        "title": story.title,
        "classes": story.classes,
        "minority": sorted(story.minority),
        "methods": scores.methods,
        "validation": np.bincount(story.labels, minlength=n),
        "counts": counts(story),
        "scores": scores.table(),
        "confusion": confusion(story),
        "curves": curves(story),
        "reliability": reliability(story),
        "embedding": embedding(story),
        "rounds": rounds(story),
        "pictures": bool(story.over_sampled),
        "mistakes": any(story.mistakes.values()),
    }


def _embedded(data: dict[str, Any]) -> str:
    """JSON that cannot end the script element it stands in, nor start a comment there."""
    text = json.dumps(jsonable(data), separators=(",", ":"), allow_nan=False)  # all ASCII
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _script() -> str:
    """One function around all files: nothing of them is seen outside."""
    body = "\n".join(_asset(name) for name in _SCRIPTS)
    return f'(() => {{\n"use strict";\n{body}}})();\n'


def _asset(name: str) -> str:
    return files(__package__).joinpath("assets", name).read_text(encoding="utf-8")


def _groups(groups: list[dict[str, Any]]) -> str:
    return "".join(_group(group) for group in groups)


def _group(group: dict[str, Any]) -> str:
    """F1 of a group of classes: a card with a line for each method and for the difference."""
    shown = [name for name in _NAMES if name in group]
    rows = "".join(
        f'<tr class="{name}"><th scope="row"><i class="dot {name}"></i>{_NAMES[name]}</th>'
        f"<td>{_shown(name)(group[name]['value'])}</td>"
        f"<td>{_span(name, group[name])}</td></tr>"
        for name in shown
    )
    title = f"{group['title']} <small>({group['classes']})</small>"
    return (
        f'<table class="group"><caption>F1, {title}</caption><thead class="hidden"><tr>'
        '<th scope="col">method</th><th scope="col">F1</th><th scope="col">95 % interval</th>'
        f"</tr></thead><tbody>{rows}</tbody></table>"
    )


def _span(name: str, found: dict[str, float]) -> str:
    if math.isnan(found["low"]):
        return ""
    show = _shown(name)
    return f"{show(found['low'])} to {show(found['high'])}"


def _shown(name: str) -> Any:
    return signed if name == "difference" else number


def _facts(facts: dict[str, str]) -> str:
    return "".join(
        f'<tr><th scope="row">{escape(name)}</th><td><bdi>{escape(value)}</bdi></td></tr>'
        for name, value in facts.items()
    )
