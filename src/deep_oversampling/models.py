"""Networks to start from: the paper's two CNNs, an MLP for feature vectors and ResNet-32."""

from __future__ import annotations

import math
import re
from itertools import pairwise

from torch import Tensor, nn
from torch.nn.functional import pad, relu

from .errors import InputError
from .network import Network, Normalize
from .samples import Samples
from .seeding import isolated, streams

__all__ = ["lenet", "mlp", "resnet32", "small_network"]


def small_network(samples: Samples, *, seed: int = 0) -> Network:
    """A LeNet for images, an MLP for anything else, normalised by what it will be trained on."""
    shape, normalize = tuple(samples.x.shape[1:]), Normalize.of(samples.x)
    if len(shape) == 3 and min(shape[1:]) >= 4:  # two poolings leave at least one pixel
        return lenet(shape, samples.n, normalize=normalize, seed=seed)
    return mlp(math.prod(shape), samples.n, normalize=normalize, seed=seed)


def lenet(
    image: tuple[int, int, int] = (1, 28, 28),  # channels, height, width
    n: int = 10,
    layers: str = "C6-C16-F400-F120",
    *,
    split: str | None = None,
    normalize: nn.Module | None = None,
    seed: int = 0,
) -> Network:
    """The paper's CNNs, by the name its table gives them: C6-C16-F400-F120, C20-C50-F500-F120.

    C is a convolution (5 × 5) with pooling, F a fully connected layer; ReLU follows each. f
    ends at the layer ``split``, by default the last (R10), and g is the rest with the softmax
    layer. Images under 16 pixels get 3 × 3 convolutions that keep the size.

    >>> import torch
    >>> lenet((3, 32, 32), split="F400").embed(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 400])
    """
    if not re.fullmatch(r"C[1-9]\d*(-C[1-9]\d*)*(-F[1-9]\d*)+", layers):
        raise InputError(
            "layers must be convolutions C… and then fully connected ones F…, such as "
            f"'C6-C16-F400-F120', found {layers!r}"
        )
    names = layers.split("-")
    if split is not None and (split not in names or split[0] != "F"):
        fully = ", ".join(name for name in names if name[0] == "F")
        raise InputError(f"split must be a fully connected layer ({fully}), found {split!r}")
    last_of_f = len(names) - 1 if split is None else names.index(split)
    channels, height, width = image
    kernel, padding = (5, 0) if min(height, width) >= 16 else (3, 1)
    parts: list[list[nn.Module]] = [[], []]  # f, g
    with isolated(streams(seed)("initial weights")):
        size, flat = channels, False
        for position, name in enumerate(names):
            side, out = int(position > last_of_f), int(name[1:])
            if name[0] == "C":
                parts[side] += [nn.Conv2d(size, out, kernel, padding=padding), nn.ReLU()]
                parts[side] += [nn.MaxPool2d(2)]
                height, width = ((s + 2 * padding - kernel + 1) // 2 for s in (height, width))
                if min(height, width) < 1:
                    raise InputError(
                        f"an image must be large enough for its convolutions, found {image} "
                        f"for {layers}; use fewer of them"
                    )
            else:
                if not flat:
                    size, flat = size * height * width, True
                    parts[side] += [nn.Flatten()]
                parts[side] += [nn.Linear(size, out), nn.ReLU()]
            size = out
        parts[1] += [nn.Linear(size, n)]
    return Network(nn.Sequential(*parts[0]), nn.Sequential(*parts[1]), normalize)


def mlp(
    d_in: int,
    n: int,
    hidden: tuple[int, ...] = (128, 64),
    *,
    normalize: nn.Module | None = None,
    seed: int = 0,
) -> Network:
    """A small network for feature vectors: hidden layers with ReLU, the last one ends f.

    >>> import torch
    >>> mlp(30, 2).embed(torch.zeros(5, 30)).shape
    torch.Size([5, 64])
    """
    with isolated(streams(seed)("initial weights")):
        sizes = (d_in, *hidden)
        f: list[nn.Module] = [nn.Flatten()]
        for size, out in pairwise(sizes):
            f += [nn.Linear(size, out), nn.ReLU()]
        return Network(nn.Sequential(*f), nn.Linear(sizes[-1], n), normalize)


def resnet32(
    channels: int = 3, n: int = 10, *, normalize: nn.Module | None = None, seed: int = 0
) -> Network:
    """The CIFAR residual network of He et al. (2016) with 32 layers; f is all but the last.

    >>> import torch
    >>> resnet32().embed(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 64])
    """
    with isolated(streams(seed)("initial weights")):
        f: list[nn.Module] = [_conv(channels, 16), nn.BatchNorm2d(16), nn.ReLU()]
        size = 16
        for out in (16, 32, 64):
            for _ in range(5):
                f.append(_ResidualBlock(size, out))
                size = out
        f += [nn.AdaptiveAvgPool2d(1), nn.Flatten()]
        return Network(nn.Sequential(*f), nn.Linear(size, n), normalize)


class _ResidualBlock(nn.Module):
    """Two convolutions beside a shortcut that has no parameters: it strides and pads zeros."""

    def __init__(self, size: int, out: int) -> None:
        super().__init__()
        self.grow, self.stride = out - size, 1 if out == size else 2
        self.convolutions = nn.Sequential(
            _conv(size, out, self.stride),
            nn.BatchNorm2d(out),
            nn.ReLU(),
            _conv(out, out),
            nn.BatchNorm2d(out),
        )

    def forward(self, x: Tensor) -> Tensor:
        shortcut = x[:, :, :: self.stride, :: self.stride]
        shortcut = pad(shortcut, (0, 0, 0, 0, self.grow // 2, self.grow - self.grow // 2))
        return relu(self.convolutions(x) + shortcut)


def _conv(size: int, out: int, stride: int = 1) -> nn.Conv2d:
    conv = nn.Conv2d(size, out, 3, stride, padding=1, bias=False)
    nn.init.kaiming_normal_(conv.weight)
    return conv
