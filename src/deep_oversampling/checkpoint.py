"""A trained network in a file: safetensors, so reading it can run no code."""

from __future__ import annotations

import tempfile
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from .errors import InputError
from .network import Network

__all__ = ["load_weights", "save_weights"]


def save_weights(network: Network, path: Path | str) -> None:
    """Write the weights, with the input normalisation, to ``path``; whole or not at all."""
    path = Path(path)
    with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".part", delete=False) as part:
        temporary = Path(part.name)
    try:
        # clones: safetensors refuses tensors that share memory, and tied weights do
        save_file({n: t.detach().cpu().clone() for n, t in network.state_dict().items()}, temporary)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def load_weights(network: Network, path: Path | str) -> None:
    """Fill a network of the same architecture with the weights in ``path``."""
    path = Path(path)
    try:
        weights = load_file(path)
    except (OSError, SafetensorError) as error:
        raise InputError(f"{path} must be a safetensors file with weights: {error}") from None
    own = network.state_dict()
    missing = sorted(own.keys() - weights.keys())
    unknown = sorted(weights.keys() - own.keys())
    other = sorted(n for n in own.keys() & weights.keys() if own[n].shape != weights[n].shape)
    if missing or unknown or other:
        raise InputError(
            f"{path} must hold the weights of this architecture; missing: {missing}, "
            f"unknown: {unknown}, of another shape: {other}"
        )
    network.load_state_dict(weights)
