"""Samples as HTML: what DOS over-sampled and from what, and the worst mistakes."""

from __future__ import annotations

import base64
import io
from html import escape
from typing import Any

from PIL import Image as Pillow

from .checks import METHODS
from .headline import number
from .story import Image, Mistake, OverSampled, Story

__all__ = ["data_uri", "mistakes", "over_sampled"]

_SIDE = 64  # pixels: larger pictures are reduced, smaller ones enlarged by the browser
_SAMPLES, _NEIGHBOURS, _MISTAKES = 24, 6, 12  # shown; a page with photographs stays small


def data_uri(image: Image) -> str:
    """A PNG file within the page."""
    picture = Pillow.fromarray(image)
    picture.thumbnail((_SIDE, _SIDE))
    file = io.BytesIO()
    picture.save(file, "PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()


def over_sampled(story: Story) -> str:
    """A row for every sample, its neighbours by falling weight."""
    shown = _spread_over_classes(story.over_sampled)
    rows = "\n".join(_over_sampled(story, one) for one in shown)
    left = len(story.over_sampled) - len(shown)
    more = f'<p class="note">… and {left} more.</p>' if left else ""
    return f'<div class="mixes">{rows}</div>{more}'


def mistakes(story: Story) -> str:
    """A column for each method that has any."""
    columns = []
    for method in (m for m in METHODS if m in story.mistakes):
        found = story.mistakes[method]
        cards = "".join(_mistake(story, one) for one in found[:_MISTAKES])
        body = f'<ul class="cards">{cards}</ul>' if cards else '<p class="note">None.</p>'
        title = "DOS" if method == "dos" else "plain"
        columns.append(f'<div><h3><i class="dot {method}"></i>{title}</h3>{body}</div>')
    return "\n".join(columns)


def _spread_over_classes(found: tuple[OverSampled, ...]) -> list[OverSampled]:
    """The first of every class, then the second of every class …, until there are enough."""
    seen: dict[int, int] = {}
    turns = []
    for place, one in enumerate(found):
        seen[one.label] = turn = seen.get(one.label, 0) + 1
        turns.append((turn, place))
    chosen = sorted(place for _, place in sorted(turns)[:_SAMPLES])
    return sorted((found[place] for place in chosen), key=lambda one: one.label)


def _over_sampled(story: Story, one: OverSampled) -> str:
    neighbours = sorted(one.neighbours, key=lambda member: -member[2])
    shown, rest = neighbours[:_NEIGHBOURS], neighbours[_NEIGHBOURS:]
    cells = "".join(_member(*member) for member in shown)
    if rest:
        weight = number(sum(member[2] for member in rest))
        cells += f'<li class="rest">{len(rest)} more<br>{weight}</li>'
    plus = '<span class="plus" aria-hidden="true">+</span>'
    mix = f'{plus}<ul class="cards">{cells}</ul>' if cells else ""  # none: the sample alone
    return (
        f'<div class="mix"><span class="name"><bdi>{escape(story.classes[one.label])}</bdi></span>'
        f'<ul class="cards own">{_member(one.image, one.name, one.weight)}</ul>'
        f"{mix}</div>"
    )


def _member(image: Image | None, name: str, weight: float) -> str:
    return f"<li>{_sample(image, name)}<span>{number(weight)}</span>{_weight_bar(weight)}</li>"


def _weight_bar(weight: float) -> str:
    return f'<i class="bar"><i style="width:{100 * weight:.0f}%"></i></i>'


def _mistake(story: Story, one: Mistake) -> str:
    true, taken = (escape(story.classes[j]) for j in (one.label, one.predicted))
    return (
        f"<li>{_sample(one.image, one.name)}"
        f'<span class="name" title="{true}"><bdi>{true}</bdi></span>'
        f'<span class="name wrong" title="taken for {taken}">→ <bdi>{taken}</bdi></span>'
        f"<span>{number(one.probability)}</span></li>"
    )


def _sample(image: Any, name: str) -> str:
    """The picture, or where there is none the sample's name."""
    title = escape(name)
    if image is None:
        return f'<span class="sample name" title="{title}"><bdi>{title}</bdi></span>'
    return f'<img src="{data_uri(image)}" alt="{title}" title="{title}">'
