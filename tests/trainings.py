"""A small ``dos train``, what it leaves behind, and something that happens in the midst of it."""

import json
from pathlib import Path
from typing import Any

import pytest
from safetensors.numpy import load_file
from typer.testing import Result

import commands
from commands import called
from deep_oversampling.runs import unfinished
from picture_files import folder_of

COUNTS = {"apple": 30, "pear": 20, "plum": 6}
OPTIONS = ["fruit", "--rounds", "3", "--batch-size", "9", "--device", "cpu", "--out", "r"]
NUMBERS = ["model.safetensors", "baseline.safetensors", "story.safetensors"]


def plant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pictures, and folders of the test's own."""
    monkeypatch.setenv("DOS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("DOS_DATA", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(unfinished, "_MINUTES", 1e-6)  # a checkpoint between all steps
    folder_of(tmp_path / "fruit", COUNTS, (16, 16, 3))


def call(*more: str) -> Result:
    return called("train", *OPTIONS, *more)


def finished(*more: str) -> str:
    result = call(*more)
    assert result.exit_code == 0, result.output + repr(result.exception)
    return result.output


def refused(*more: str) -> str:
    return commands.refused("train", *OPTIONS, *more)


def timeless(value: Any) -> Any:
    """Without what a clock says, and what is made of it."""
    if isinstance(value, dict):
        return {k: timeless(v) for k, v in value.items() if k not in ("seconds", "time", "sha256")}
    return [timeless(one) for one in value] if isinstance(value, list) else value


def told(folder: str) -> dict[str, Any]:
    """All that a run leaves: weights, numbers and words."""
    words = {
        name: json.loads(Path(folder, name).read_text()) for name in ("run.json", "story.json")
    }
    numbers = {name: load_file(f"{folder}/{name}") for name in NUMBERS}
    plain = {n: {k: a.tolist() for k, a in some.items()} for n, some in numbers.items()}
    return {**{name: timeless(one) for name, one in words.items()}, **plain}


class After:
    """Calls something when it has been called so many times."""

    def __init__(self, times: int, act: Any, then: Any) -> None:
        self._left, self._act, self._then = times, act, then

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        self._left -= 1
        if self._left == 0:
            self._act()
        return self._then(*arguments, **named)
