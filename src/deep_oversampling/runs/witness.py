"""What is seen of the embeddings while DOS is trained, for the report."""

from __future__ import annotations

import torch
from torch import Tensor

from ..embeddings import embed_classes
from ..network import Network, embed
from ..seeding import streams
from .preparing import Task
from .unfinished import Unfinished

__all__ = ["Witness"]

_SAMPLES = 1500  # validation samples that are looked at, as many of every class as there are
_LAST = "before-the-last"
_MOMENTS = 20  # after which rounds, at most


class Witness:
    """Embeddings of some validation samples at some moments, and v of the last round."""

    def __init__(self, task: Task, unfinished: Unfinished | None = None) -> None:
        self._task, self._unfinished = task, unfinished
        y, n = task.validation.y.cpu(), task.validation.n
        most = max(1, _SAMPLES // n)
        chosen = [(y == j).nonzero().flatten()[:most] for j in range(n)]
        self.rows = torch.cat(chosen)[:_SAMPLES]  # of the validation samples
        T = task.rounds
        steps = torch.linspace(0, T, min(T, _MOMENTS) + 1).round().long().unique()
        self._at = {T + int(step) for step in steps}
        kept = unfinished.kept() if unfinished else {}  # by a process before this one
        self._seen = {name: v for name, v in kept.items() if self._fits(name, v)}

    def _fits(self, name: str, v: Tensor) -> bool:
        """The report does without what cannot be of this training."""
        d = embed(self._task.network, self._task.train.x[:1]).shape[1]
        task = self._task
        over_sampled = int(task.train.class_counts.cpu()[task.plan.k > 0].sum())
        shape = (over_sampled if name == _LAST else len(self.rows), d)
        return v.shape == shape and v.dtype == torch.float32 and bool(v.isfinite().all())

    def look(self, network: Network, done: int) -> None:
        """After so many rounds, the initial ones counted."""
        if done in self._at:
            some = self._task.validation.subset(self.rows)
            self._keep(_moment(done), embed(network, some.x))
        if done == 2 * self._task.rounds - 1:  # the next round is the last
            self._keep(_LAST, self._over_sampled(network, self._task.rounds - 1))

    def _over_sampled(self, network: Network, t: int) -> Tensor:  # (s, d)
        """As Algorithm 1 makes it for round t: of changed copies, where training sees such."""
        task, views = self._task, streams(self._task.settings.seed)("views", t)
        wanted = task.plan.k > 0
        return embed_classes(network, task.train, wanted, augment=task.augment, generator=views).v

    def _keep(self, name: str, v: Tensor) -> None:
        self._seen[name] = v.float().cpu()
        if self._unfinished:
            self._unfinished.keep(name, self._seen[name])

    def moments(self, done: int) -> list[tuple[str, Tensor]]:  # title, (s, d)
        """Of so many rounds; a process that was killed may have seen one more."""
        T = self._task.rounds
        return [
            ("before DOS" if t == T else f"after round {t - T}", self._seen[_moment(t)])
            for t in sorted(self._at)
            if t <= done and _moment(t) in self._seen
        ]

    def before_last(self, network: Network, done: int) -> tuple[int, Tensor]:
        """The number of the last round among those of DOS, and the v that it started from.

        Of the classes that have neighbours, in the order of the samples. Where training was
        stopped, of the round that would have come next.
        """
        T = self._task.rounds
        if _LAST in self._seen and done == 2 * T:
            return T - 1, self._seen[_LAST]
        t = max(0, done - T)
        return t, self._over_sampled(network, t).float()


def _moment(done: int) -> str:
    return f"after-{done:06}"
