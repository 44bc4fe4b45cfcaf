"""The methods that forms of DOS are added to (`forms.py`), and what all of them are given."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from deep_oversampling import Network, Plan, Samples
from deep_oversampling.augmentation import Augmentation
from deep_oversampling.losses import Loss, entropy
from deep_oversampling.rivals import effective_number, ldam, logit_adjusted, weighted
from deep_oversampling.rivals.ldam import with_cosine_head
from deep_oversampling.rivals.method import Contest, with_loss
from deep_oversampling.rivals.mixup import mixup
from deep_oversampling.rivals.tables import Mixed
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
    reweights: Literal["never", "late", "always"] = "never"  # late: from the first fall of the rate
    mixes: bool = False  # images with each other, and their labels

    def stages(self, task: Task) -> Iterator[Stage]:
        loss = self.make_loss(task.counts)
        for t in range(task.rounds):
            if self.mixes:
                mixed = Mixed.drawn(task.samples, task.rng("mix", t))
                yield Stage("mixed", mixed, mixup(loss))
            elif self.reweights == "always" or (self.reweights == "late" and t >= task.late):
                objective = weighted(effective_number(task.counts), loss)
                yield Stage("single", task.samples, objective)
            else:
                yield Stage("single", task.samples, with_loss(loss))


PARTNERS = {
    "ce": Partner(),
    "cb": Partner(reweights="always"),
    "la": Partner(logit_adjusted),
    "ldam": Partner(ldam, ldam, with_cosine_head, reweights="late"),
    "mixup": Partner(mixes=True),
    "mixup-la": Partner(logit_adjusted, mixes=True),
}
