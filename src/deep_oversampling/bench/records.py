"""Figures: what was measured, in which setting, and how it compares with another one."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import linear_regression
from typing import Any

import sklearn
import torch

from .. import __version__
from ..errors import InputError
from .sizes import Sizes

__all__ = [
    "Note",
    "Part",
    "Record",
    "Setting",
    "check_writable",
    "figure",
    "header",
    "in_words",
    "slope",
    "to_json",
    "write",
]

Setting = dict[str, int | float | str]


@dataclass(frozen=True)
class Record:
    """One figure."""

    part: str
    what: str
    setting: Setting
    value: float
    unit: str
    ratio: float | None = None  # value over that of another record
    ratio_to: str | None = None  # which one


@dataclass(frozen=True)
class Note:
    """What a part has to say beside figures: what it left out, and why."""

    part: str
    text: str


Part = Callable[[torch.device, Sizes], Iterator[Record | Note]]


def figure(
    part: str,
    what: str,
    setting: Setting,
    value: float,
    unit: str,
    to: Record | None = None,
) -> Record:
    """A record, rounded to four digits, and its ratio to another.

    >>> plain = figure("steps", "plain", {"E": 1}, 200.0, "µs/step")
    >>> dos = figure("steps", "DOS", {"E": 1}, 300.0, "µs/step", to=plain)
    >>> dos.ratio, dos.ratio_to
    (1.5, 'plain')
    >>> figure("steps", "plain", {"E": 4}, 50.0, "µs/step/trial", to=plain).ratio_to
    'E = 1'
    """
    value = _rounded(value)
    if to is None:
        return Record(part, what, setting, value, unit)
    other = {name: v for name, v in to.setting.items() if setting.get(name, v) != v}
    words = ([to.what] if to.what != what else []) + ([in_words(other)] if other else [])
    return Record(
        part, what, setting, value, unit, _rounded(value / to.value), ", ".join(words) or to.unit
    )


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")


def in_words(setting: Setting) -> str:
    """Words for themselves, numbers with their names.

    >>> in_words({"network": "LeNet", "E": 10})
    'LeNet, E = 10'
    """
    return ", ".join(
        value if isinstance(value, str) else f"{name} = {value:,}"
        for name, value in setting.items()
    )


def slope(x: Sequence[float], y: Sequence[float]) -> float:
    """Of the straight line through the points on logarithmic axes: the p of y ∝ xᵖ.

    >>> slope([1, 2, 4], [3, 12, 48])
    2.0
    """
    logs = (torch.tensor(column, dtype=torch.float64).log().tolist() for column in (x, y))
    return round(linear_regression(*logs).slope, 3)


def header(device: torch.device, threads: int, *, quick: bool) -> dict[str, Any]:
    """Where and with what."""
    gpu = torch.cuda.get_device_name(device) if device.type == "cuda" else None
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "quick": quick,
        "hardware": {
            "device": device.type,
            "gpu": gpu,
            "cpu": _cpu(),
            "cores": os.cpu_count(),
            "threads": threads,
        },
        "versions": {
            "deep-oversampling": __version__,
            "torch": str(torch.__version__),
            "python": platform.python_version(),
            "scikit-learn": sklearn.__version__,
        },
    }


def _cpu() -> str:
    """Its model, where the system tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return next(filter(None, models), platform.processor() or platform.machine())


def to_json(about: dict[str, Any], found: Sequence[Record | Note]) -> str:
    """One object: the header, the figures, the notes."""
    content = {
        "header": about,
        "records": [asdict(one) for one in found if isinstance(one, Record)],
        "notes": [asdict(one) for one in found if isinstance(one, Note)],
    }
    return json.dumps(content, indent=2, ensure_ascii=False)


def check_writable(path: Path) -> None:
    """Before minutes of measuring, not after."""
    part = _part(path)
    try:
        if path.is_dir():
            raise IsADirectoryError(f"{path} is a folder")
        path.parent.mkdir(parents=True, exist_ok=True)
        part.touch()
        part.unlink()
    except OSError as error:
        raise _not_writable(path, error) from None


def write(path: Path, text: str) -> None:
    """Whole or not at all: under another name, which is then changed."""
    part = _part(path)
    try:
        part.write_text(text + "\n", encoding="utf-8")
        part.replace(path)
    except OSError as error:
        raise _not_writable(path, error) from None
    finally:
        part.unlink(missing_ok=True)


def _part(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}.part")


def _not_writable(path: Path, error: OSError) -> InputError:
    return InputError(f"--out must name a file that can be written, found {str(path)!r}: {error}")
