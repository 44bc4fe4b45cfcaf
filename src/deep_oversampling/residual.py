"""ResNet-18, for pictures of 64 pixels and more.

The modules are called as torchvision and timm call theirs, so weights that were trained there can
be loaded; torchvision itself is not needed.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .network import Network
from .seeding import isolated, streams

__all__ = ["resnet18"]


def resnet18(
    channels: int = 3, n: int = 10, *, normalize: nn.Module | None = None, seed: int = 0
) -> Network:
    """The residual network of He et al. (2016) with 18 layers; f is all but ``fc``.

    >>> resnet18(n=3).embed(torch.zeros(2, 3, 64, 64)).shape
    torch.Size([2, 512])
    """
    with isolated(streams(seed)("initial weights")):
        return Network.from_model(_ResNet(channels, n), head="fc", normalize=normalize)


class _ResNet(nn.Module):
    def __init__(self, channels: int, n: int) -> None:
        super().__init__()
        self.conv1 = _conv(channels, 64, 7, stride=2)
        self.bn1 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU()
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
        self.layer1 = nn.Sequential(_Block(64, 64), _Block(64, 64))
        self.layer2 = nn.Sequential(_Block(64, 128, stride=2), _Block(128, 128))
        self.layer3 = nn.Sequential(_Block(128, 256, stride=2), _Block(256, 256))
        self.layer4 = nn.Sequential(_Block(256, 512, stride=2), _Block(512, 512))
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(512, n)

    def forward(self, x: Tensor) -> Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        logits: Tensor = self.fc(torch.flatten(self.avgpool(x), 1))
        return logits


class _Block(nn.Module):
    """Two convolutions beside a shortcut, which has weights of its own where the shape changes."""

    def __init__(self, size: int, out: int, stride: int = 1) -> None:
        super().__init__()
        self.conv1 = _conv(size, out, 3, stride)
        self.bn1 = nn.BatchNorm2d(out)
        self.relu = nn.ReLU()
        self.conv2 = _conv(out, out, 3)
        self.bn2 = nn.BatchNorm2d(out)
        self.downsample = nn.Identity()
        if stride != 1 or size != out:
            self.downsample = nn.Sequential(_conv(size, out, 1, stride), nn.BatchNorm2d(out))  # type: ignore[assignment]

    def forward(self, x: Tensor) -> Tensor:
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y)) + self.downsample(x)
        out: Tensor = self.relu(y)
        return out


def _conv(size: int, out: int, kernel: int, stride: int = 1) -> nn.Conv2d:
    conv = nn.Conv2d(size, out, kernel, stride, padding=kernel // 2, bias=False)
    nn.init.kaiming_normal_(conv.weight, mode="fan_out", nonlinearity="relu")
    return conv
