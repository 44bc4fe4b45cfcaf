"""Folders of pictures for the tests: the class is in the brightness, the rest is noise."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image


def pixels(value: int, shape: tuple[int, ...] = (6, 5, 3), seed: int = 0) -> NDArray[np.uint8]:
    noise = np.random.default_rng(seed).integers(0, 10, shape)
    return (noise + value).astype(np.uint8)


def save(path: Path, value: int, shape: tuple[int, ...] = (6, 5, 3), seed: int = 0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels(value, shape, seed)).save(path)
    return path


def folder_of(
    root: Path, counts: dict[str, int], shape: tuple[int, ...] = (6, 5, 3), suffix: str = "png"
) -> Path:
    """root/CLASS/0.png, …; the j-th class is 40·j bright."""
    for j, (name, count) in enumerate(counts.items()):
        for i in range(count):
            save(root / name / f"{i}.{suffix}", 40 * j, shape, seed=1000 * j + i)
    return root
