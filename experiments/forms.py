"""Forms of DOS for a modern network (`modern.py`), each added to a partner (`partners.py`).

A form is a generator of stages, as Algorithm 1 is. It begins with a new network, or with one that
its partner has trained for half of the epochs, up to the first fall of the learning rate, or to the
end; forms of one partner share that training.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from deep_oversampling import InputError, Network, Plan
from deep_oversampling.algorithm import deep_over_sampling
from deep_oversampling.losses import entropy
from deep_oversampling.rivals import effective_number, weighted
from deep_oversampling.rivals.method import with_loss
from deep_oversampling.rivals.retraining import head_stages
from deep_oversampling.rivals.tables import Redrawn, class_balanced
from deep_oversampling.stages import Stage
from partners import PARTNERS, Partner, Task

Begin = Literal["start", "half", "late", "end"]
Stages = Callable[[Network, Task, Partner], Iterator[Stage]]


@dataclass(frozen=True)
class Form:
    """A row of the search."""

    name: str
    partner: str
    begins: Begin
    stages: Stages

    def changed(self, **options: float | int | bool) -> Form:
        """With other numbers, and a name that says so."""
        known = inspect.signature(self.stages).parameters
        unknown = sorted(options.keys() - known.keys())
        if unknown:
            names = [n for n, p in known.items() if p.kind is inspect.Parameter.KEYWORD_ONLY]
            raise InputError(
                f"{self.name} must be given options that it has ({', '.join(names) or 'none'}), "
                f"found {', '.join(unknown)}"
            )
        told = ",".join(f"{name}={value}" for name, value in sorted(options.items()))
        name = f"{self.name}[{told}]" if told else self.name
        return replace(self, name=name, stages=partial(self.stages, **options))


# controls: no DOS


def alone(network: Network, task: Task, partner: Partner) -> Iterator[Stage]:
    """The partner itself, which has been trained to the end."""
    return iter(())


def resampled(network: Network, task: Task, partner: Partner) -> Iterator[Stage]:
    """Deferred re-sampling."""
    samples = task.samples
    for t in range(task.rounds):
        index = class_balanced(samples.y, len(samples), task.rng("balanced", t))
        yield Stage("single", Redrawn(samples, index.to(samples.y.device)), with_loss(entropy))


def reweighted(network: Network, task: Task, partner: Partner) -> Iterator[Stage]:
    """Deferred re-weighting."""
    objective = weighted(effective_number(task.counts), partner.make_loss(task.counts))
    for _ in range(task.rounds):
        yield Stage("single", task.samples, objective)


def retrained(network: Network, task: Task, partner: Partner) -> Iterator[Stage]:
    """cRT."""
    return head_stages(network, task.contest)


# DOS


def over_sampled(
    network: Network,
    task: Task,
    partner: Partner,
    *,
    k: int = 5,
    pull: float = 10.0,
    pieces: float = 0.0,
    tau: float = 0.0,
    q: float | None = None,  # classes are levelled in part; None: all, as Plan.automatic does
) -> Iterator[Stage]:
    """The multi-task rounds of Algorithm 1. With a margin ℋ is cross-entropy, whatever it was."""
    counts = task.counts.cpu()
    plan = Plan.automatic(counts, k) if q is None else Plan.in_part(counts, k, q=q)
    return deep_over_sampling(
        network,
        task.samples,
        plan.fitted_to(counts),
        rounds=task.rounds,
        initial_rounds=0,
        rng=task.rng,
        pull=pull,
        loss=partner.point_loss(counts),
        tau=tau,
        pieces=pieces,
        augment=task.augment,
    )


def _forms() -> Iterator[Form]:
    with_pieces = partial(over_sampled, pieces=0.5, tau=1.0, q=0.5)
    for partner in PARTNERS:
        yield Form(partner, partner, "end", alone)
        yield Form(f"{partner}+crt", partner, "end", retrained)
        for begins in ("half", "late"):
            yield Form(f"{partner}+over-{begins}", partner, begins, partial(over_sampled, k=0))
            yield Form(f"{partner}+dos-{begins}", partner, begins, over_sampled)
            yield Form(f"{partner}+pieces-{begins}", partner, begins, with_pieces)
    yield Form("ce+drs", "ce", "late", resampled)
    yield Form("ce+drw", "ce", "late", reweighted)


FORMS = {form.name: form for form in _forms()}
