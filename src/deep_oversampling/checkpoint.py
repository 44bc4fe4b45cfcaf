"""A trained network in a file: safetensors, so reading it can run no code."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor

from .errors import InputError
from .network import Network
from .reading import plain_size
from .writing import write_whole

__all__ = ["check_weights", "load_weights", "read_weights", "save_weights", "start_from"]


def save_weights(network: Network, path: Path | str) -> None:
    """Write the weights, with the input normalisation, to ``path``; whole or not at all."""
    # clones: safetensors refuses tensors that share memory, and tied weights do
    weights = {n: t.detach().cpu().clone() for n, t in network.state_dict().items()}
    write_whole({Path(path): save(weights)})  # save_file's would be for this user's eyes only


def load_weights(network: Network, path: Path | str) -> None:
    """Fill a network of the same architecture with the weights in ``path``."""
    weights = read_weights(path)
    check_weights(network, weights, path)
    network.load_state_dict(weights)


def check_weights(network: Network, weights: Mapping[str, Tensor], path: Path | str) -> None:
    """Refuse those of another architecture, and what no training ends with.

    The network may be one without memory, on "meta".
    """
    own = network.state_dict()
    missing = sorted(own.keys() - weights.keys())
    unknown = sorted(weights.keys() - own.keys())
    other = sorted(n for n in own.keys() & weights.keys() if own[n].shape != weights[n].shape)
    if missing or unknown or other:
        raise InputError(
            f"{path} must hold the weights of this architecture; missing: {missing}, "
            f"unknown: {unknown}, of another shape: {other}"
        )
    _check_values(network, weights, path)


def _check_values(network: Network, weights: Mapping[str, Tensor], path: Path | str) -> None:
    """Numbers of the kind that the network has there, and such that it can compute with them."""
    learned = {name for name, _ in network.named_parameters()}
    for name, mine in network.state_dict().items():
        found = weights.get(name)
        if found is None:
            continue
        if _kind(found) != _kind(mine):
            what = f"{found.dtype} where the network has {mine.dtype}"
        elif bool(found.isnan().any()):
            what = "NaN"
        elif name in learned and not bool(found.isfinite().all()):
            what = "infinity"
        else:
            continue
        raise InputError(
            f"{path} must hold weights that a network can compute with, found {what} in {name}; "
            "get an undamaged copy, or train again"
        )


def _kind(tensor: Tensor) -> str:
    """Of floats any precision will do; weights may have been stored in half of it."""
    return "float" if tensor.is_floating_point() else str(tensor.dtype)


def start_from(network: Network, path: Path | str) -> list[str]:
    """Fill what a file has weights for; the names of what it has none for, in g, come back.

    The file is one of ours, or of a model whose layers are called as those of the embedder
    (torchvision's or timm's resnet18). All of f must be in it. A classifier for other classes is
    left as it is, and so is the normalisation, which belongs to the data.
    """
    path = Path(path)
    found, own = read_weights(path), network.state_dict()
    taken, missing, kept = {}, [], []
    for name, tensor in own.items():
        part, _, inner = name.partition(".")
        if part == "normalize":
            continue
        weights = found.get(name, found.get(inner) if part == "embedder" else None)
        if weights is not None and weights.shape == tensor.shape:
            taken[name] = weights
        elif part == "embedder" and not name.endswith("num_batches_tracked"):
            shape = "none" if weights is None else str(tuple(weights.shape))
            missing.append(f"{inner} {tuple(tensor.shape)} (found {shape})")
        else:
            kept.append(name)
    if missing:
        raise InputError(
            f"{path} must hold the weights of this embedder, found {len(missing)} of its tensors "
            f"missing or of another shape, the first: {missing[0]}; choose the model they are of"
        )
    _check_values(network, taken, path)
    network.load_state_dict(taken, strict=False)
    return kept


def read_weights(path: Path | str) -> dict[str, Tensor]:
    """The tensors of a safetensors file by their names."""
    try:
        plain_size(path, sys.maxsize)  # it is mapped, and read as far as its header is true
        weights: dict[str, Tensor] = load_file(path)
    except (OSError, SafetensorError) as error:
        raise InputError(f"{path} must be a safetensors file with weights: {error}") from None
    return weights
