"""Networks of real variety, small: what a user may bring."""

import torch
from torch import Tensor, nn


class Residual(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(x + self.norm(self.conv(x)))


class ResNet(nn.Module):
    """A ResNet as torchvision writes them: stem, blocks, pooling, ``fc``."""

    def __init__(self, n: int = 3) -> None:
        super().__init__()
        self.stem = nn.Conv2d(1, 8, 3, padding=1)
        self.layer1 = nn.Sequential(Residual(8), Residual(8))
        self.fc = nn.Linear(8, n)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(self.layer1(self.stem(x)).mean((2, 3)))


class Heads(nn.Module):
    def __init__(self, n: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(6)
        self.head = nn.Linear(6, n)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.norm(x))


class Transformer(nn.Module):
    """A vision transformer as torchvision writes them: the head is nested, ``heads.head``."""

    def __init__(self, n: int = 3) -> None:
        super().__init__()
        self.patch = nn.Conv2d(1, 6, 4, stride=4)
        self.attention = nn.MultiheadAttention(6, 2, batch_first=True)
        self.heads = Heads(n)

    def forward(self, x: Tensor) -> Tensor:
        tokens = self.patch(x).flatten(2).transpose(1, 2)
        return self.heads(self.attention(tokens, tokens, tokens)[0].mean(1))


class LastState(nn.Module):
    """Token ids (b, length) to the last state of a recurrent layer."""

    def __init__(self, kind: type[nn.RNNBase], *, vocabulary: int = 12) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, 6)
        self.cells = kind(6, 8, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.cells(self.tokens(x))[0][:, -1]


def regularised(d: int = 4) -> nn.Module:
    """A tabular embedder with batch normalisation and dropout."""
    return nn.Sequential(nn.Linear(d, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.3))
