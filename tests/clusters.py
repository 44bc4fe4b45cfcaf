"""Families of micro-clusters, in double precision: what every loss has to hold for."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from deep_oversampling.losses import weighted_errors
from deep_oversampling.oversampling import sample_simplex
from toy import generator


@dataclass(frozen=True)
class Cluster:
    """f(x) and its neighbours; weights and mask without their column 0, x itself."""

    fx: Tensor  # (b, d)
    v: Tensor  # (b, K, d)
    w: Tensor  # (b, K)
    mask: Tensor  # (b, K)

    @property
    def errors(self) -> Tensor:
        return weighted_errors(self.fx, self.v, self.w)

    def unweighted(self) -> "Cluster":
        return replace(self, w=self.mask.double())

    def neighbours(self, row: int) -> list[int]:
        return self.mask[row].nonzero().flatten().tolist()


def make(
    b: int = 5, k: int = 3, d: int = 4, *, scale: float = 1.0, padded: bool = False
) -> Cluster:
    draw = generator(b + 10 * k + 100 * d)
    fx, v = (
        scale * torch.randn(*shape, dtype=torch.float64, generator=draw)
        for shape in ((b, d), (b, k, d))
    )
    mask = torch.ones(b, k + 1, dtype=torch.bool)
    if padded:  # row 0 has only itself, row 1 one neighbour, …
        mask &= torch.arange(k + 1) <= torch.arange(b).unsqueeze(1)
    w = sample_simplex(mask, draw).double()
    return Cluster(fx, v, w[:, 1:], mask[:, 1:])


def duplicates() -> Cluster:
    """Neighbours that are copies of one another and of f(x)."""
    c = make()
    v = c.v.clone()
    v[:, 0], v[:, 1] = c.fx, v[:, 2]
    return replace(c, v=v)


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
