"""The folder of a run: filled file by file, opened again without running any code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from ..checkpoint import check_weights, load_weights, read_weights, save_weights
from ..errors import InputError
from ..network import Network, Normalize, pick_device
from ..zoo import is_own_code, is_trusted, make_network
from .places import BASELINE, CONFIG, MODEL, RECORD
from .record import Record, read_record, write_record
from .settings import Settings, read_settings

__all__ = ["Run", "save_run"]

_NORMALIZATION = ("normalize.mean", "normalize.std")


@dataclass(frozen=True)
class Run:
    """A run that was opened: its record is checked, its weights are read when asked for."""

    folder: Path
    record: Record

    @classmethod
    def open(cls, folder: Path | str) -> Run:
        folder = Path(folder)
        if not folder.is_dir():
            raise InputError(f"a run must be a folder, as dos train makes it, found no {folder}")
        record = read_record(folder / RECORD)
        if not (folder / MODEL).is_file():
            raise InputError(
                f"{folder} must hold the weights of its run, found no {MODEL}; train again, or get "
                "a whole copy"
            )
        return cls(folder, record)

    @property
    def settings(self) -> Settings:
        """Of its config.toml."""
        try:
            return Settings(**read_settings(self.folder / CONFIG))
        except TypeError:  # no data
            raise InputError(f"{self.folder / CONFIG} must name the data, found none") from None

    def network(
        self,
        *,
        model: str | None = None,  # FILE.py:FACTORY, where the run is of such a one
        baseline: bool = False,
        device: torch.device | str | None = None,
    ) -> Network:
        """The trained network. A Python file is run only where ``model`` names it, here and now."""
        said = self.record.model
        if model is None and not is_trusted(said):
            raise InputError(
                f"{self.folder} was trained with a model of your own, {said}, and no code that a "
                "run names is run unasked; name it again, if you trust it: --model "
                f"{said}"
            )
        path = self.folder / (BASELINE if baseline else MODEL)
        weights = read_weights(path)
        shape, n = tuple(self.record.input_shape), len(self.record.classes)
        normalize = _normalization(weights, shape, path)
        make = partial(make_network, model or said, shape, n, normalize=normalize)
        if not is_own_code(model or said):
            _check_without_memory(make, weights, path)
        network = make()
        load_weights(network, path)
        network.to(pick_device(device))
        return network.eval()

    @property
    def has_baseline(self) -> bool:
        return (self.folder / BASELINE).is_file()

    @property
    def dtype(self) -> torch.dtype:
        """Of the samples it was trained on."""
        dtype: torch.dtype = getattr(torch, self.record.input_dtype)
        return dtype


def _check_without_memory(
    make: Callable[[], Network], weights: Mapping[str, Tensor], path: Path
) -> None:
    """A damaged record may ask for a network of any size."""
    with torch.device("meta"):
        try:
            empty = make()
        except InputError:  # some of timm's read numbers while they are made; if it is something
            return  # else, it is said when the network is made with memory
        check_weights(empty, weights, path)


def _normalization(
    weights: Mapping[str, Tensor], shape: tuple[int, ...], path: Path
) -> Normalize | None:
    """As the weights have it: its shape is its own, so it must suit that of the samples."""
    found = [weights[name] for name in _NORMALIZATION if name in weights]
    if len(found) < len(_NORMALIZATION):
        return None
    for name, tensor in zip(_NORMALIZATION, found, strict=True):
        sides = zip(tensor.shape[::-1], shape[::-1], strict=False)
        suits = tensor.ndim <= len(shape) and all(own in (1, side) for own, side in sides)
        if not suits or not tensor.is_floating_point() or not bool(tensor.isfinite().all()):
            raise InputError(
                f"{path} must hold a normalisation for samples of shape {shape}, found "
                f"{name} of shape {tuple(tensor.shape)} and {tensor.dtype}, or not finite; get an "
                "undamaged copy, or train again"
            )
    if not bool((found[1] > 0).all()):
        raise InputError(
            f"{path} must hold deviations above 0, found {float(found[1].min()):g} in "
            f"{_NORMALIZATION[1]}; get an undamaged copy, or train again"
        )
    return Normalize(*found)


def save_run(folder: Path, record: Record, networks: dict[str, Network]) -> Run:
    """The record last: where it is, the rest is."""
    for method, file in (("dos", MODEL), ("plain", BASELINE)):
        if method in networks:
            save_weights(networks[method], folder / file)
    write_record(record, folder / RECORD)
    return Run(folder, record)
