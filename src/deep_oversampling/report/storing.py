"""A story in two files, JSON for words and safetensors for arrays: reading runs no code."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from ..errors import InputError
from ..reading import MOST_WORDS, Migrations, migrated, parse_json, read_plain
from ..writing import jsonable, write_whole
from .checks import check_story
from .story import Mistake, Moment, OverSampled, Story

__all__ = ["load_story", "save_story"]

_FORMAT = "deep-oversampling story"
_VERSION = 1
_MIGRATIONS: Migrations = {}  # no other version was ever written
_MOST_NUMBERS = 1 << 30  # bytes
_ARRAYS = {"counts": np.int64, "presented": np.int64, "k": np.int64, "labels": np.int64}
_WORDS, _NUMBERS = "story.json", "story.safetensors"

Arrays = dict[str, NDArray[Any]]


def save_story(story: Story, folder: Path | str) -> None:
    """Write both files; what was there before stays if that fails.

    The first names the checksum of the second, so files of two runs are never read as one.
    """
    check_story(story)
    folder, arrays = Path(folder), _arrays(story)
    numbers = save({name: np.ascontiguousarray(array) for name, array in arrays.items()})
    document = {
        "format": _FORMAT,
        "version": _VERSION,
        "sha256": hashlib.sha256(numbers).hexdigest(),
        "title": story.title,
        "classes": story.classes,
        "minority": story.minority,
        "methods": list(story.probabilities),
        "histories": story.histories,
        "moments": [moment.title for moment in story.moments],
        "over_sampled": [
            {"label": one.label, "members": [m[1:] for m in _members(one)]}
            for one in story.over_sampled
        ],
        "mistakes": {
            method: [[m.label, m.predicted, m.probability, m.name] for m in mistakes]
            for method, mistakes in story.mistakes.items()
        },
        "facts": story.facts,
    }
    words = json.dumps(jsonable(document), ensure_ascii=False, indent=1, allow_nan=False)
    # a lone surrogate, as in a file name that is no UTF-8, cannot be written otherwise
    encoded = words.encode("utf-8", "replace")
    write_whole({folder / _NUMBERS: numbers, folder / _WORDS: encoded})


def load_story(folder: Path | str) -> Story:
    """The story in a folder; `InputError` where it is damaged, or newer than this program."""
    folder = Path(folder)
    document = _read_words(folder / _WORDS)
    arrays = _read_numbers(folder / _NUMBERS, document.get("sha256"))
    try:
        story = _story(document, arrays)
        check_story(story)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise _damaged(folder, error) from None
    return story


def _read_words(path: Path) -> dict[str, Any]:
    try:
        document = parse_json(read_plain(path, MOST_WORDS))
    except OSError as error:
        raise InputError(
            f"{path} must be a story that can be read: {error}; name the folder of a run"
        ) from None
    except ValueError as error:
        raise _damaged(path, error) from None
    if not isinstance(document, dict) or document.get("format") != _FORMAT:
        raise InputError(f"{path} must be a story, found another JSON file; name a run's folder")
    version = document.pop("version", None)
    current = migrated(document, version, _VERSION, _MIGRATIONS)
    if current is None:
        raise InputError(
            f"{path} must be of version {_VERSION} or older, found {version!r:.80}; a newer "
            "deep-oversampling wrote it, so update this one"
        )
    return current


def _read_numbers(path: Path, checksum: Any) -> Arrays:
    try:
        data = read_plain(path, _MOST_NUMBERS)
        if hashlib.sha256(data).hexdigest() != checksum:
            raise _damaged(path, f"it is not the file that {_WORDS} was written with")
        arrays: Arrays = load(data)
    except (OSError, SafetensorError) as error:
        raise _damaged(path, error) from None
    return arrays


def _arrays(story: Story) -> Arrays:
    arrays: Arrays = {name: getattr(story, name).astype(kind) for name, kind in _ARRAYS.items()}
    arrays["moment_labels"] = story.moment_labels.astype(np.int64)
    for method, p in story.probabilities.items():
        arrays[f"probabilities/{method}"] = p.astype(np.float32)
    for i, moment in enumerate(story.moments):
        arrays[f"moment/{i}"] = moment.points.astype(np.float32)
    images: dict[str, Any] = {
        f"over_sampled/{i}/{j}": member[0]
        for i, one in enumerate(story.over_sampled)
        for j, member in enumerate(_members(one))
    }
    images |= {
        f"mistake/{method}/{i}": mistake.image
        for method, mistakes in story.mistakes.items()
        for i, mistake in enumerate(mistakes)
    }
    return arrays | {name: image for name, image in images.items() if image is not None}


def _members(one: OverSampled) -> tuple[tuple[Any, str, float], ...]:
    """The sample itself first, as in 𝒩(x)."""
    return ((one.image, one.name, one.weight), *one.neighbours)


def _story(document: dict[str, Any], arrays: Arrays) -> Story:
    over_sampled = []
    for i, one in enumerate(document["over_sampled"]):
        (name, weight), *others = one["members"]
        neighbours = tuple(
            (arrays.get(f"over_sampled/{i}/{j}"), n, w) for j, (n, w) in enumerate(others, 1)
        )
        image = arrays.get(f"over_sampled/{i}/0")
        over_sampled.append(OverSampled(one["label"], image, name, weight, neighbours))
    mistakes = {
        method: tuple(
            Mistake(label, predicted, p, arrays.get(f"mistake/{method}/{i}"), name)
            for i, (label, predicted, p, name) in enumerate(found)
        )
        for method, found in document["mistakes"].items()
    }
    return Story(
        title=document["title"],
        classes=tuple(document["classes"]),
        minority=tuple(document["minority"]),
        **{name: arrays[name] for name in _ARRAYS},
        probabilities={m: arrays[f"probabilities/{m}"] for m in document["methods"]},
        histories=document["histories"],
        moments=tuple(
            Moment(title, arrays[f"moment/{i}"]) for i, title in enumerate(document["moments"])
        ),
        moment_labels=arrays["moment_labels"],
        over_sampled=tuple(over_sampled),
        mistakes=mistakes,
        facts=document["facts"],
    )


def _damaged(path: Path, reason: object) -> InputError:
    return InputError(
        f"{path} must be as save_story wrote it, found it damaged: {reason}; run the training "
        "again, or take another copy"
    )
