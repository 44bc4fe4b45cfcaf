"""What happened round by round: losses, spread of the embeddings, validation F1."""

from __future__ import annotations

from typing import Any

from .checks import METHODS
from .story import Story

__all__ = ["rounds"]

Line = dict[str, Any]  # name, method, x, y


def rounds(story: Story) -> list[dict[str, Any]]:
    """Charts with something to draw: title, what it means, and lines over the rounds."""
    charts = [
        ("Classifier loss", "mean ℓ_g of a round", _losses(story, "classifier_loss")),
        ("Embedding loss", "mean λℓ_f of a round, DOS only", _losses(story, "embedding_loss")),
        ("Variance within classes", "grows with the embedding’s scale", _spreads(story, "within")),
        ("Class separation", "between over within, free of scale", _spreads(story, "ratio")),
        ("Validation F1", "mean over classes", _validation(story)),
    ]
    return [
        {"title": title, "about": about, "lines": lines}
        for title, about, lines in charts
        if any(y is not None for line in lines for y in line["y"])
    ]


def _histories(story: Story) -> list[tuple[str, list[Any], list[Any]]]:
    return [
        (method, story.histories[method]["rounds"], story.histories[method]["spreads"])
        for method in METHODS
        if method in story.histories
    ]


def _losses(story: Story, name: str) -> list[Line]:
    lines = []
    for method, done, _ in _histories(story):
        # the embedding loss of a single-task round is no loss of 0: there is none
        kept = [
            (t, one[name])
            for t, one in enumerate(done, 1)
            if name == "classifier_loss" or (one["task"] == "multi" and one[name] != 0)
        ]
        if kept:
            lines.append(_line("", method, kept))
    return lines


def _spreads(story: Story, name: str) -> list[Line]:
    """spreads[t] is what multi-task round t starts from, so it stands at the round before it."""
    lines = []
    for method, done, spreads in _histories(story):
        initial = sum(one["task"] == "single" for one in done)
        kept = [(initial + t, _spread(one, name)) for t, one in enumerate(spreads)]
        if kept:
            lines.append(_line("", method, kept))
    return lines


def _spread(one: dict[str, Any], name: str) -> float | None:
    if name == "within":
        return one["within"]  # type: ignore[no-any-return]
    known = one["within"] is not None and one["between"] is not None and one["within"] > 0
    return one["between"] / one["within"] if known else None


def _validation(story: Story) -> list[Line]:
    """Of rare and frequent classes; where a plan favours none there is one group, of all."""
    lines = []
    for method, done, _ in _histories(story):
        found = [(t, one["validation"]) for t, one in enumerate(done, 1) if one.get("validation")]
        split = any("minority" in groups for _, groups in found)
        names = {"minority": "rare", "majority": "frequent" if split else "all"}
        for group, name in names.items():
            kept = [(t, groups[group].get("f1")) for t, groups in found if group in groups]
            if kept:
                lines.append(_line(name, method, kept))
    return lines


def _line(name: str, method: str, points: list[tuple[int, float | None]]) -> Line:
    return {
        "name": name,
        "method": method,
        "x": [x for x, _ in points],
        "y": [y for _, y in points],
    }
