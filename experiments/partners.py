"""The methods that forms of DOS are added to (`forms.py`), and what all of them are given."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from torch import Tensor

from deep_oversampling import Network, Plan, Samples
from deep_oversampling.augmentation import Augmentation
from deep_oversampling.losses import Loss, entropy
from deep_oversampling.rivals import effective_number, ldam, logit_adjusted, weighted
from deep_oversampling.rivals.ldam import with_cosine_head
from deep_oversampling.rivals.method import Contest, with_loss
from deep_oversampling.seeding import Streams
from deep_oversampling.stages import Stage


@dataclass(frozen=True, eq=False)
class Task:
    """What a form is given."""

    samples: Samples
    rounds: int  # of this part of the training
    late: int  # the one in which the learning rate falls
    rng: Streams
    augment: Augmentation

    @property
    def counts(self) -> Tensor:  # (n,)
        return self.samples.class_counts

    @property
    def contest(self) -> Contest:
        """The same for rivals; a round presents the m samples, or as many draws."""
        plan = Plan.plain(self.samples.n)
        return Contest(self.samples, plan, self.rounds, 0, self.rng, head_rounds=self.rounds)


@dataclass(frozen=True)
class Partner:
    """What trains a network without DOS, and goes on beside it."""

    make_loss: Callable[[Tensor], Loss] = lambda counts: entropy  # of class counts
    point_loss: Callable[[Tensor], Loss] = lambda counts: entropy  # where classes are alike
    prepare: Callable[[Network], Network] = lambda network: network
    reweights: bool = False  # from the first fall of the learning rate on

    def weights(self, task: Task, t: int) -> Tensor | None:  # (n,)
        return effective_number(task.counts) if self.reweights and t >= task.late else None

    def stages(self, task: Task) -> Iterator[Stage]:
        loss = self.make_loss(task.counts)
        for t in range(task.rounds):
            weights = self.weights(task, t)
            objective = with_loss(loss) if weights is None else weighted(weights, loss)
            yield Stage("single", task.samples, objective)


PARTNERS = {
    "ce": Partner(),
    "la": Partner(logit_adjusted),
    "ldam": Partner(ldam, ldam, with_cosine_head, reweights=True),
}
