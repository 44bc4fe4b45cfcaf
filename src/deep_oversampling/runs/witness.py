"""What is seen of the embeddings while DOS is trained, for the report."""

from __future__ import annotations

import torch
from torch import Tensor

from ..network import Network, embed
from .preparing import Task

__all__ = ["Witness"]

_SAMPLES = 1500  # validation samples that are looked at, as many of every class as there are
_MOMENTS = 20  # after which rounds, at most


class Witness:
    """Embeddings of some validation samples at some moments, and v of the last round."""

    def __init__(self, task: Task) -> None:
        self._task = task
        y, n = task.validation.y.cpu(), task.validation.n
        most = max(1, _SAMPLES // n)
        chosen = [(y == j).nonzero().flatten()[:most] for j in range(n)]
        self.rows = torch.cat(chosen)[:_SAMPLES]  # of the validation samples
        self.moments: list[tuple[str, Tensor]] = []  # title, (s, d)
        self.last: tuple[int, Tensor] | None = None  # its number among the multi-task rounds, v
        T = task.rounds
        steps = torch.linspace(0, T, min(T, _MOMENTS) + 1).round().long().unique()
        self._at = {T + int(step) for step in steps}

    def look(self, network: Network, done: int) -> None:
        """After so many rounds, the initial ones counted."""
        T = self._task.rounds
        if done in self._at:
            title = "before DOS" if done == T else f"after round {done - T}"
            some = self._task.validation.subset(self.rows)
            self.moments.append((title, embed(network, some.x).float().cpu()))
        if done == 2 * T - 1:  # the next round is the last: this is the v it starts from
            self.last = T - 1, embed(network, self._task.train.x)

    def before_last(self, network: Network, done: int) -> tuple[int, Tensor]:
        """As `last`; where training was stopped, of the round that would have come next."""
        if self.last is not None and done == 2 * self._task.rounds:
            return self.last
        return max(0, done - self._task.rounds), embed(network, self._task.train.x)
