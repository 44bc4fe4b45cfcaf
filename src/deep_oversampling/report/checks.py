"""A story must hold together before it is stored or told: shapes, ranges, names."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np

from ..errors import InputError
from ..schema import is_history
from ..writing import jsonable
from .story import Story

__all__ = ["METHODS", "check_story"]

METHODS = ("plain", "dos")  # as they stand beside each other
_ROUNDING = 1e-3  # of half precision


def check_story(story: Story) -> None:
    """Raise `InputError` at the first thing that does not fit the rest."""
    n, t = len(story.classes), len(story.labels)
    _must(n >= 1, "a story must have one or more classes", "none")
    texts = [story.title, *story.classes, *story.facts, *story.facts.values()]
    wrong = [text for text in texts if not isinstance(text, str)]
    _must(not wrong, "title, classes and facts must be text", wrong[:1])
    for name in ("counts", "presented", "k"):
        array = getattr(story, name)
        _whole_numbers(name, array)
        _must(array.shape == (n,), f"{name} must have one for each of {n} classes", array.shape)
        _must(bool((array >= 0).all()), f"{name} must not be negative", array.min())
    _classes("minority", np.asarray(story.minority, np.int64), n)
    _must(len(set(story.minority)) == len(story.minority), "minority must name a class once", "two")
    _must(t >= 1, "a story must have one or more validation samples", "none")
    _classes("labels", story.labels, n)
    _check_probabilities(story, t, n)
    _check_moments(story, n)
    _check_pictures(story, n)
    for name in ("histories", "mistakes"):
        _methods(name, getattr(story, name))
    for method, history in story.histories.items():
        _must(
            is_history(jsonable(history)),
            "a history must be History.to_dict()",
            f"another thing for {method}",
        )


def _check_probabilities(story: Story, t: int, n: int) -> None:
    _methods("probabilities", story.probabilities)
    _must("dos" in story.probabilities, "probabilities must have those of dos", "none")
    for method, p in story.probabilities.items():
        _must(p.shape == (t, n), f"probabilities of {method} must have shape {(t, n)}", p.shape)
        fits = bool(np.isfinite(p).all()) and p.min() >= 0 and p.max() <= 1 + _ROUNDING
        _must(fits, f"probabilities of {method} must be finite, 0 to 1", "others")


def _check_moments(story: Story, n: int) -> None:
    s = len(story.moment_labels)
    _classes("moment_labels", story.moment_labels, n)
    for moment in story.moments:
        _must(isinstance(moment.title, str), "the title of a moment must be text", moment.title)
        fits = moment.points.shape == (s, 2) and bool(np.isfinite(moment.points).all())
        _must(
            fits,
            f"a moment must have a finite point for each of {s} moment_labels, shape {(s, 2)}",
            f"{moment.points.shape} at {moment.title!r}",
        )


def _check_pictures(story: Story, n: int) -> None:
    for one in story.over_sampled:
        _label("over_sampled", one.label, n)
        for image, name, weight in ((one.image, one.name, one.weight), *one.neighbours):
            _picture(image, name)
            _must(0 <= weight <= 1 + _ROUNDING, "a weight must be between 0 and 1", weight)
    for mistakes in story.mistakes.values():
        for mistake in mistakes:
            for label in (mistake.label, mistake.predicted):
                _label("mistakes", label, n)
            p = mistake.probability
            _must(0 <= p <= 1 + _ROUNDING, "a probability must be between 0 and 1", p)
            _picture(mistake.image, mistake.name)


def _picture(image: Any, name: Any) -> None:
    _must(isinstance(name, str), "the name of a sample must be text", name)
    if image is not None:
        fits = image.dtype == np.uint8 and image.size > 0
        fits = fits and (image.ndim == 2 or (image.ndim == 3 and image.shape[2] == 3))
        found = f"{image.dtype} of shape {image.shape}"
        _must(fits, "a picture must be uint8, (h, w) or (h, w, 3)", found)


def _label(name: str, label: Any, n: int) -> None:
    _must(isinstance(label, Integral), f"labels of {name} must be whole numbers", label)
    _must(0 <= label < n, f"labels of {name} must be classes, 0 to {n - 1}", label)


def _classes(name: str, values: Any, n: int) -> None:
    _whole_numbers(name, values)
    outside = values[(values < 0) | (values >= n)]
    _must(outside.size == 0, f"{name} must be classes, 0 to {n - 1}", outside[:1])


def _whole_numbers(name: str, values: Any) -> None:
    _must(np.issubdtype(values.dtype, np.integer), f"{name} must be whole numbers", values.dtype)


def _methods(name: str, given: dict[str, Any]) -> None:
    _must(set(given) <= set(METHODS), f"{name} must be keyed {' and '.join(METHODS)}", list(given))


def _must(holds: bool, rule: str, found: object) -> None:
    if not holds:
        raise InputError(f"{rule}, found {found}; the story cannot be told as it is")
