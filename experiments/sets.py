"""The data of the experiments: official files in, training pool, validation and test out.

Validation images are never training images and never test images: choices are made on them.
"""

from pathlib import Path

import numpy as np
import torch
from sklearn.datasets import load_sample_images
from torch import Generator, Tensor
from torch.nn.functional import affine_grid, grid_sample

from deep_oversampling import Samples
from deep_oversampling.data.idx import load_mnist
from deep_oversampling.seeding import streams

Split = tuple[Samples, Samples, Samples]  # training pool, validation, test


def mnist(folder: Path) -> Split:
    """The paper's first 50,000; the last 10,000 of the training file validate."""
    train = load_mnist(folder / "mnist")
    return (
        train[torch.arange(50_000)],
        train[torch.arange(50_000, 60_000)],
        load_mnist(folder / "mnist", "test"),
    )


def back_rotation(folder: Path) -> Split:
    """MNIST-back-rotation, re-created: 12,000 to train, 8,000 to validate, 50,000 to test."""
    rng = streams(2007)
    parts = load_mnist(folder / "mnist"), load_mnist(folder / "mnist", "test")
    x, y = torch.cat([p.x for p in parts]), torch.cat([p.y for p in parts])
    order = torch.randperm(len(x), generator=rng("order"))
    photos = [
        torch.from_numpy(np.asarray(p, np.float32).mean(2)) for p in load_sample_images().images
    ]
    digits = _rotated(x[order].float(), rng("angles"))
    images = torch.maximum(digits, _patches(photos, len(x), rng("patches")))
    made = Samples(images.round().to(torch.uint8), y[order], parts[0].classes)
    rows = torch.arange(len(x))
    return made[rows[:12_000]], made[rows[12_000:20_000]], made[rows[20_000:]]


def _rotated(x: Tensor, generator: Generator) -> Tensor:
    """About the exact centre, bilinear, by an angle uniform in [0, 2π)."""
    angle = 2 * torch.pi * torch.rand(len(x), generator=generator)
    cos, sin, zero = angle.cos(), angle.sin(), torch.zeros_like(angle)
    turn = torch.stack([cos, -sin, zero, sin, cos, zero], 1).view(-1, 2, 3)
    parts = zip(x.split(5000), turn.split(5000), strict=True)
    return torch.cat(
        [
            grid_sample(i, affine_grid(t, list(i.shape), align_corners=False), align_corners=False)
            for i, t in parts
        ]
    )


def _patches(photos: list[Tensor], count: int, generator: Generator) -> Tensor:
    """28 × 28 pieces of black-and-white photographs; pieces without contrast are rejected."""
    found: list[Tensor] = []
    while sum(map(len, found)) < count:
        for photo in photos:
            windows = photo.unfold(0, 28, 1).unfold(1, 28, 1)
            rows = torch.randint(windows.shape[0], (10_000,), generator=generator)
            columns = torch.randint(windows.shape[1], (10_000,), generator=generator)
            pieces = windows[rows, columns]
            found.append(pieces[pieces.flatten(1).std(1) > 20])
    pieces = torch.cat(found)
    return pieces[torch.randperm(len(pieces), generator=generator)[:count]].unsqueeze(1)


def svhn(folder: Path) -> Split:
    """SVHN's 32 × 32 crops; 10,000 of the training file validate."""
    from scipy.io import loadmat

    def load(split: str) -> Samples:
        file = loadmat(folder / "svhn" / f"{split}_32x32.mat")
        return Samples(file["X"].transpose(3, 2, 0, 1), file["y"][:, 0].astype(int) % 10)

    train, order = load("train"), torch.randperm(73_257, generator=streams(0)("svhn"))
    return train[order[10_000:]], train[order[:10_000]], load("test")


SETS = {"mnist": mnist, "back-rotation": back_rotation, "svhn": svhn}
