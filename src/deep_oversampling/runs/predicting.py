"""Pictures in, classes out, as calibrated as the validation samples allow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from ..data.pictures.folders import pictures_below
from ..data.pictures.picture import MOST_BYTES, Unreadable, read_picture
from ..data.pictures.workers import in_parallel, processors
from ..data.splits import Skipped
from ..errors import InputError
from ..network import Network, embed, logits_of
from ..reading import read_plain
from .folder import Run

__all__ = ["Predictions", "find_pictures", "predict_files"]

_AT_ONCE, _VALUES = 256, 1 << 26  # pictures in memory, and values of them all


@dataclass(frozen=True, eq=False)
class Predictions:
    """Of those files that hold a picture, in order."""

    files: tuple[str, ...]
    probabilities: NDArray[np.float32]  # (files, n)
    embeddings: NDArray[np.float32] | None  # (files, d)
    skipped: tuple[Skipped, ...]


def find_pictures(paths: Sequence[Path | str]) -> Iterator[str]:
    """The files that are named, and all pictures below the folders that are."""
    for path in paths:
        if Path(path).is_dir():
            yield from pictures_below(Path(path))
        else:
            yield str(path)


def predict_files(
    run: Run,
    paths: Sequence[Path | str],  # files, and folders of any depth
    *,
    network: Network | None = None,  # of the run, where it is at hand
    raw: bool = False,  # as the network says, without the temperature
    embeddings: bool = False,
) -> Predictions:
    """P(C|x) of every picture; what cannot be read is named and left out."""
    shape = run.record.input_shape
    if len(shape) != 3 or shape[0] not in (1, 3) or run.dtype != torch.uint8:
        raise InputError(
            "pictures can be given to a model that was trained on pictures, found one for samples "
            f"of shape {tuple(shape)} and type {run.record.input_dtype}; store yours like those "
            "and use dos evaluate"
        )
    channels, height, width = shape
    at_once = max(1, min(_AT_ONCE, _VALUES // (channels * height * width)))
    network = run.network() if network is None else network
    temperature = 1.0 if raw else run.record.temperature

    def read(file: str) -> NDArray[np.uint8] | str:
        try:
            return read_picture(read_plain(file, MOST_BYTES), height, width, grey=channels == 1)
        except (OSError, Unreadable) as error:
            return str(error.strerror if isinstance(error, OSError) else error)

    files, skipped = [], []
    p = [np.zeros((0, len(run.record.classes)), np.float32)]
    v: list[NDArray[np.float32]] = []
    batch: list[NDArray[np.uint8]] = []

    def flush() -> None:
        x = torch.from_numpy(np.stack(batch))
        p.append((logits_of(network, x) / temperature).softmax(1).cpu().numpy())
        if embeddings:
            v.append(embed(network, x).float().cpu().numpy())
        batch.clear()

    everything = list(find_pictures(paths))
    for file, found in zip(everything, in_parallel(read, everything, processors()), strict=True):
        if isinstance(found, str):
            skipped.append(Skipped(file, found))
            continue
        files.append(file)
        batch.append(found)
        if len(batch) == at_once:
            flush()
    if batch:
        flush()
    return Predictions(
        tuple(files), np.concatenate(p), np.concatenate(v) if v else None, tuple(skipped)
    )
