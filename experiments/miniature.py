"""CIFAR-10 and ResNet-32 small enough for a CPU: half the size, one block of every width."""

from functools import cache
from pathlib import Path

import torch
from torch import nn
from torch.nn.functional import avg_pool2d

from deep_oversampling import Network, Normalize, Samples, resnet32
from deep_oversampling.data import load


@cache
def halved_training_images(folder: Path, name: str = "cifar10") -> Samples:
    return halved(load(name, data_dir=folder).train)


def halved(whole: Samples) -> Samples:
    """Images of half the size."""
    small = [avg_pool2d(part.float(), 2).round() for part in whole.x.split(5000)]
    return whole.with_x(torch.cat(small).to(torch.uint8))


def small_residual(train: Samples, seed: int) -> Network:
    whole = resnet32(train.x.shape[1], train.n, seed=seed)
    layers = list(whole.embedder.children())  # a stem of 3, five blocks of each width, the rest
    f = nn.Sequential(*layers[:3], *layers[3:18:5], *layers[18:])
    return Network(f, whole.classifier, Normalize.of(train.x))
