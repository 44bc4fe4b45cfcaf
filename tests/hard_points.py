"""Points that are hard to compare: what an exact neighbour search has to get right."""

import torch
from torch import Tensor

from toy import generator


def hard_points(m: int = 320, d: int = 12) -> dict[str, Tensor]:
    """By what is hard about them."""
    draw = generator(1)
    normal = torch.randn(m, d, generator=draw)
    groups = torch.randint(0, 5, (m, 1), generator=draw).float()
    powers = 10.0 ** torch.randint(-12, 13, (m, 1), generator=draw)
    outlier = normal.clone()
    outlier[7] = 1e8
    tiny = 1e-21 * normal
    tiny[0], tiny[1] = 1, -1
    return {
        "nothing": normal,
        "an offset": normal + 1e6,
        "an offset in double precision": normal.double() + 1e12,
        "clusters apart": normal + 1e3 * groups,
        "clusters far apart": normal + 1e6 * groups,
        "clusters very far apart": normal.double() + 1e9 * groups,
        "copies": normal[torch.randint(0, m // 40, (m,), generator=draw)],
        "nearly copies": 1 + 1e-7 * torch.randint(0, 3, (m, d), generator=draw),
        "all alike": torch.ones(m, d),
        "all zero": torch.zeros(m, d),
        "all equally far apart": torch.eye(m),
        "a grid": torch.randint(0, 3, (m, 4), generator=draw).float(),
        "small": 1e-30 * normal,
        "denormal": 1e-42 * normal,
        "large": 1e37 * normal,
        "small in double precision": 1e-200 * normal.double(),
        "large in double precision": 1e200 * normal.double(),
        "all scales": powers * normal,
        "an outlier": outlier,
        "squares that underflow": tiny,
        "one dimension": normal[:, :1],
        "whole numbers": torch.arange(m).unsqueeze(1).float(),
        "many dimensions": torch.randn(m, 2000, generator=draw),
        "half precision": normal.half(),
        "bfloat16": normal.bfloat16(),
        "rows apart in memory": torch.randn(d, 2 * m, generator=draw).T[::2],
    }


def all_distances(v: Tensor) -> Tensor:  # (m, d) -> (m, m)
    """Squared, by differences in double precision; the largest coordinate is near 1, self is ∞."""
    v = v.double()
    v = v * 2.0 ** -torch.frexp(v.abs().max()).exponent.double()
    distances = torch.stack([(v - one).square().sum(1) for one in v])
    return distances.fill_diagonal_(torch.inf)
