"""Random problems for hypothesis: few classes, points on a coarse grid (duplicates and ties)."""

from dataclasses import dataclass

import torch
from hypothesis import strategies as st
from torch import Tensor

from deep_oversampling import Samples


@dataclass(frozen=True)
class Problem:
    v: Tensor  # (m, d)  whole numbers, so that distances are exact
    y: Tensor  # (m,)
    k: list[int]  # (n,)  at most m_j − 1
    r: list[int]  # (n,)

    @property
    def counts(self) -> list[int]:
        return torch.bincount(self.y).tolist()

    @property
    def samples(self) -> Samples:
        return Samples(self.v, self.y)


@st.composite
def problems(draw: st.DrawFn, *, largest: int = 8) -> Problem:
    counts = draw(st.lists(st.integers(1, largest), min_size=2, max_size=4))
    m, d = sum(counts), draw(st.integers(1, 4))
    grid = draw(st.lists(st.integers(-3, 3), min_size=m * d, max_size=m * d))
    v = torch.tensor(grid, dtype=torch.float32).view(m, d)
    v[0] += (v == v[0]).all()  # not all alike: that is a collapsed embedder
    order = draw(st.permutations(range(m)))
    y = torch.arange(len(counts)).repeat_interleave(torch.tensor(counts))[list(order)]
    k = [draw(st.integers(0, min(5, count - 1))) for count in counts]
    return Problem(v, y, k, [draw(st.integers(1, 4)) for _ in counts])
