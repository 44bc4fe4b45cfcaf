"""What DOS did for the rare classes, in one honest sentence."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

import numpy as np

from .scores import Estimate, Scores, minority_mask
from .story import Story

__all__ = ["FEW", "headline", "number", "sentence", "signed"]

FEW = 20  # validation samples of a class below which its interval is rough


def headline(story: Story, scores: Scores) -> dict[str, Any]:
    """The sentence, and F1 of the rare and the frequent classes with intervals."""
    rare = minority_mask(story)
    groups = [("rare classes", rare), ("frequent classes", ~rare)]
    rows = [
        {
            "title": title,
            "classes": int(mask.sum()),
            **{method: asdict(scores.group(method, "f1", mask)) for method in scores.methods},
        }
        | ({"difference": asdict(scores.group_difference("f1", mask))} if scores.paired else {})
        for title, mask in groups
        if mask.any()
    ]
    return {"sentence": sentence(story, scores), "cautions": cautions(story), "groups": rows}


def sentence(story: Story, scores: Scores) -> str:
    """Says as much as the interval allows."""
    rare = minority_mask(story)
    mask = rare if rare.any() else ~rare
    who = _who(int(rare.sum()), len(rare))
    dos = scores.group("dos", "f1", mask)
    if math.isnan(dos.value):
        return f"There is no validation sample of {who}, so nothing can be said about them."
    if not scores.paired:
        return (
            f"With DOS, F1 of {who} is {number(dos.value)} (95 % interval {_span(dos)}); no plain "
            "network was trained beside it, so what DOS changed cannot be told."
        )
    plain = scores.group("plain", "f1", mask)
    change = scores.group_difference("f1", mask)
    moved = f"from {number(plain.value)} to {number(dos.value)}"
    size = f"{signed(change.value)} (95 % interval {signed(change.low)} to {signed(change.high)})"
    if change.low > 0:
        return f"DOS raised F1 of {who} {moved}: {size}."
    if change.high < 0:
        return f"DOS lowered F1 of {who} {moved}: {size}."
    return (
        f"F1 of {who} went {moved} with DOS: {size}. The interval contains 0, so these validation "
        "samples do not show that DOS changed it."
    )


def cautions(story: Story) -> list[str]:
    """What a reader should know before believing the intervals."""
    rare = minority_mask(story)
    found = [
        "The interval tells what other validation samples might have shown, not what another "
        "training would have: that takes several seeds."
    ]
    tested = np.bincount(story.labels, minlength=len(story.classes))[rare]
    if tested.size and tested.min() < FEW:
        found.append(
            f"Some rare classes have few validation samples, the least {tested.min()}: their "
            "intervals are rough, and a class that is always right gets one of no width."
        )
    return found


def number(value: float) -> str:
    """Three decimals without the leading zero; a dash for NaN."""
    if math.isnan(value):
        return "–"
    text = f"{value:.3f}"
    return text.removeprefix("0") if value < 1 else text


def signed(value: float) -> str:
    """With its sign, a true minus."""
    if math.isnan(value):
        return "–"
    text = number(abs(value))
    return text if text == ".000" else ("+" if value > 0 else "−") + text


def _span(estimate: Estimate) -> str:
    return f"{number(estimate.low)} to {number(estimate.high)}"


def _who(rare: int, n: int) -> str:
    if rare == 0:
        return "all classes (the plan favours none)"
    return "the rare class" if rare == 1 else f"the {rare} rare classes"
