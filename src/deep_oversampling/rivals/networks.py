"""What a comparison trains: a network by its name, or by its layers."""

from __future__ import annotations

from collections.abc import Callable

from ..models import lenet, resnet32, small_network
from ..network import Network, Normalize
from ..samples import Samples

__all__ = ["MODELS", "make_network"]

MODELS: dict[str, Callable[[Samples, int], Network]] = {
    "auto": lambda samples, seed: small_network(samples, seed=seed),
    "resnet32": lambda samples, seed: resnet32(
        samples.x.shape[1], samples.n, normalize=Normalize.of(samples.x), seed=seed
    ),
}


def make_network(model: str, samples: Samples, seed: int) -> Network:
    """By its name, or a CNN by its layers, as the paper writes them: C20-C50-F500-F120."""
    if model in MODELS:
        return MODELS[model](samples, seed)
    channels, height, width = samples.x.shape[1:]
    normalize = Normalize.of(samples.x)
    return lenet((channels, height, width), samples.n, model, normalize=normalize, seed=seed)
