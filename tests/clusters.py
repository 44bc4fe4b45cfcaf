"""Families of micro-clusters, in double precision: what every loss has to hold for."""

from dataclasses import dataclass

import torch
from torch import Tensor

from deep_oversampling.losses import squared_errors
from deep_oversampling.oversampling import sample_simplex
from toy import generator


@dataclass(frozen=True)
class Cluster:
    fx: Tensor  # (b, d)
    v: Tensor  # (b, K+1, d)
    w: Tensor  # (b, K+1)
    mask: Tensor  # (b, K+1)

    @property
    def errors(self) -> Tensor:
        return squared_errors(self.fx, self.v)

    def members(self, row: int) -> list[int]:
        return self.mask[row].nonzero().flatten().tolist()


def make(
    b: int = 5, k: int = 3, d: int = 4, *, scale: float = 1.0, padded: bool = False
) -> Cluster:
    draw = generator(b + 10 * k + 100 * d)
    fx, v = (
        scale * torch.randn(*shape, dtype=torch.float64, generator=draw)
        for shape in ((b, d), (b, k + 1, d))
    )
    mask = torch.ones(b, k + 1, dtype=torch.bool)
    if padded:  # row 0 has only itself, row 1 one neighbour, …
        mask &= torch.arange(k + 1) <= torch.arange(b).unsqueeze(1)
    return Cluster(fx, v, sample_simplex(mask, draw).double(), mask)


def duplicates() -> Cluster:
    """Neighbours that are copies of one another and of f(x)."""
    c = make()
    v = c.v.clone()
    v[:, 1], v[:, 2] = c.fx, v[:, 3]
    return Cluster(c.fx, v, c.w, c.mask)


FAMILIES = {
    "typical": make(),
    "padded": make(padded=True),
    "only the sample": make(k=0),
    "one neighbour": make(k=1),
    "one dimension": make(d=1),
    "many neighbours": make(b=3, k=10),
    "near": make(scale=1e-4),
    "far": make(scale=5.0),
    "duplicates": duplicates(),
    "one row": make(b=1),
}
