"""Forms of DOS for a modern network, and the methods that they are added to (`modern.py`).

A form is a generator of stages, as Algorithm 1 is. It begins with a network that its partner has
trained from the start, up to the first fall of the learning rate, or to the end; forms that begin
alike share that training.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from deep_oversampling import InputError, Network, Plan, Samples, embed
from deep_oversampling.algorithm import deep_over_sampling
from deep_oversampling.augmentation import Augmentation
from deep_oversampling.losses import Loss, entropy
from deep_oversampling.objectives import Objective
from deep_oversampling.rivals import effective_number, ldam, logit_adjusted, weighted
from deep_oversampling.rivals.ldam import with_cosine_head
from deep_oversampling.rivals.method import Contest, evenly, with_loss
from deep_oversampling.rivals.mixup import mixup
from deep_oversampling.rivals.retraining import head_stages, start_head_anew
from deep_oversampling.rivals.tables import Mixed, Redrawn, class_balanced
from deep_oversampling.seeding import Streams
from deep_oversampling.stages import Stage
from remembering import PointTable, RecallTable, Remembering, balanced_points, neighbours, recalling

Begin = Literal["start", "late", "end"]


@dataclass(frozen=True, eq=False)
class Task:
    """What a form is given."""

    samples: Samples
    rounds: int  # of this part of the training
    rng: Streams
    augment: Augmentation
    late_from: int = 0  # the round before which the learning rate falls

    @property
    def counts(self) -> Tensor:  # (n,)
        return self.samples.class_counts

    @property
    def contest(self) -> Contest:
        """The same for rivals; a round presents the m samples, or as many draws."""
        plan = Plan.plain(self.samples.n)
        return Contest(self.samples, plan, self.rounds, 0, self.rng, self.rounds)


@dataclass(frozen=True)
class Partner:
    """What trains a network without DOS, and goes on beside it."""

    make_loss: Callable[[Tensor], Loss] = lambda counts: entropy  # of class counts
    point_loss: Callable[[Tensor], Loss] = lambda counts: entropy  # where classes are alike
    prepare: Callable[[Network], Network] = lambda network: network
    reweights: bool = False  # from the first fall of the learning rate on
    mixes: bool = False

    def weights(self, task: Task, late: bool) -> Tensor | None:  # (n,)
        return effective_number(task.counts) if self.reweights and late else None

    def stages(self, task: Task, *, late: bool) -> Iterator[Stage]:
        loss, weights = self.make_loss(task.counts), self.weights(task, late)
        objective = with_loss(loss) if weights is None else weighted(weights, loss)
        for t in range(task.rounds):
            if self.mixes:
                mixed = Mixed.drawn(task.samples, task.rng("mix", t))
                yield Stage("mixed", mixed, mixup(loss))
            else:
                yield Stage("single", task.samples, objective)


class _UnitLength(nn.Module):
    def forward(self, v: Tensor) -> Tensor:
        return normalize(v, dim=1)


def with_unit_embeddings(network: Network, scale: float = 16.0) -> Network:
    """f ends on the unit sphere, g is a cosine classifier."""
    network = with_cosine_head(network, scale)
    f = nn.Sequential(network.embedder, _UnitLength())
    return Network(f, network.classifier, network.normalize)


PARTNERS = {
    "ce": Partner(),
    "la": Partner(logit_adjusted),
    "ldam": Partner(ldam, ldam, with_cosine_head, reweights=True),
    "ce-unit": Partner(prepare=with_unit_embeddings),
    "la-unit": Partner(logit_adjusted, prepare=with_unit_embeddings),
    "mixup": Partner(mixes=True),
    "mixup-la": Partner(logit_adjusted, mixes=True),
}

Stages = Callable[[Network, Task, Partner], Iterator[Stage]]


@dataclass(frozen=True)
class Form:
    """A row of the search."""

    name: str
    partner: str
    begins: Begin
    stages: Stages
    prepare: Callable[[Network, Samples], Network] = lambda network, samples: network

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


# (a), (d) the paper's


def paper(
    network: Network,
    task: Task,
    partner: Partner,
    *,
    initial: float = 0.0,  # share of the rounds before Algorithm 1's multi-task ones
    k: int = 5,
    pull: float = 10.0,
    limit: float = 0.3,
    levelled: bool = True,  # False: r = 1, f and g see the classes as they are
) -> Iterator[Stage]:
    """Algorithm 1 with the partner's loss; a round presents m rows of 𝒵′."""
    counts, first = task.counts.cpu(), int(initial * task.rounds)
    plan = Plan.automatic(counts, k).fitted_to(counts)
    plan = plan if levelled else Plan(plan.k, torch.ones_like(plan.r), plan.minority)
    made = deep_over_sampling(
        network,
        task.samples,
        plan,
        rounds=task.rounds - first,
        initial_rounds=first,
        rng=task.rng,
        pull=pull,
        pull_limit=limit,
        loss=partner.make_loss(counts),
    )
    return evenly(made, task.contest)


# (b), (d), (e) from a memory


def recalled(
    network: Network,
    task: Task,
    partner: Partner,
    *,
    k: int = 5,
    pull: float = 0.0,
    limit: float = 0.3,
    single: float = 0.0,
    synthetic: float = 0.0,
    rare: bool = True,  # ℓ_f pulls the rare classes only
    live: bool = True,
    momentum: float = 0.0,
    balanced: bool = False,
    borrow: float = 0.0,
    to_f: float = 1.0,
    cloud: bool = False,
) -> Iterator[Stage]:
    """DOS from a memory of embeddings as training sees them, or (not live) as use sees them."""
    assert isinstance(network, Remembering)
    samples, counts = task.samples, task.counts.cpu()
    pulled = Plan.automatic(counts, 1).minority if rare else torch.ones(samples.n, dtype=torch.bool)
    objective = partial(
        recalling,
        loss=entropy if balanced else partner.make_loss(counts),
        point_loss=partner.point_loss(counts),
        limit=limit,
        live=live,
        momentum=momentum,
        to_f=to_f,
    )
    still: Objective = partial(objective, pull=0.0, single=0.0, synthetic=0.0)
    asked: Objective = partial(
        objective, pull=pull, single=single, synthetic=synthetic, cloud=cloud
    )
    for t in range(task.rounds):
        if not live:
            network.memory.copy_(embed(network, samples.x))
        table = RecallTable.drawn(
            samples,
            network.memory,
            partial(task.rng, t),
            k=k,
            pulled=pulled,
            balanced=balanced,
            borrow=borrow,
            own=cloud,
        )
        # in the first round the memory fills with what training sees
        chosen = still if live and t == 0 else asked
        weights = None if balanced else partner.weights(task, late=t >= task.late_from)
        yield Stage("multi", table, partial(chosen, weights=weights))


# (c) a second stage


def hull(
    network: Network,
    task: Task,
    partner: Partner,
    *,
    k: int = 5,
    copies: int = 4,  # augmented ones of every image; 0: as they are
    borrow: float = 0.0,
    anew: bool = True,
) -> Iterator[Stage]:
    """f stays; g learns from points Σ wᵢvᵢ, as many of every class."""
    samples, m = task.samples, len(task.samples)
    objective = partial(_on_points, loss=partner.point_loss(task.counts))
    v = embed(network, samples.x)
    hoods = neighbours(v, samples.y, samples.n, k)
    changed = [_seen(network, task, task.rng("augment", c)) for c in range(copies)]
    seen = torch.cat(changed or [v])
    if anew:
        start_head_anew(network, task.rng)
    for t in range(task.rounds):
        draw = partial(task.rng, t)
        points = balanced_points(v, samples.y, hoods, m, draw, borrow=borrow)
        if copies:
            which = torch.randint(copies, points.corners.shape, generator=draw("copies"))
            points = replace(points, corners=points.corners + m * which.to(v.device))
        table = PointTable(samples, seen, points)
        yield Stage("head", table, objective, starts_anew=t == 0, augmented=False)


def _on_points(network: Network, batch: Samples, *, loss: Loss) -> tuple[Tensor, Tensor]:
    ell = loss(network.classifier(batch.x), batch.y)
    return ell, torch.zeros_like(ell)


def _seen(network: Network, task: Task, generator: torch.Generator) -> Tensor:  # (m, d)
    """Embeddings of changed copies, one of every image."""
    x = task.samples.x
    u = torch.rand(len(x), task.augment.draws, generator=generator).to(x.device)
    return embed(network, task.augment(x, u))


def _forms() -> Iterator[Form]:
    for partner in PARTNERS:
        yield Form(partner, partner, "end", alone)
        yield Form(f"{partner}+crt", partner, "end", retrained)
        late, end = partial(_of_memory, partner, "late"), partial(_of_memory, partner, "end")
        yield late("live", pull=1.0, single=1.0)
        yield late("live-pull", pull=1.0)
        yield late("live-synthetic", synthetic=1.0)
        yield late("live-both", pull=1.0, synthetic=1.0)
        yield late("live-momentum", pull=1.0, synthetic=1.0, momentum=0.9)
        yield late("live-balanced", pull=1.0, single=1.0, balanced=True)
        yield late("stored-both", pull=1.0, synthetic=1.0, live=False)
        yield late("live-borrow", synthetic=1.0, borrow=1.0)
        yield late("cloud", k=0, borrow=2.0, cloud=True)
        yield late("cloud-hull", borrow=2.0, cloud=True)
        yield late("mixed", cloud=True)
        yield _of_memory(partner, "start", "pull-start", pull=1.0, rare=False)
        yield end("tuned", pull=1.0, synthetic=1.0, to_f=0.01)
        for name, options in {
            "hull": {},
            "hull-points": {"k": 0},  # the control: samples instead of hulls
            "hull-stored": {"copies": 0},
            "hull-borrow": {"borrow": 1.0},
            "hull-on": {"anew": False},
        }.items():
            yield Form(f"{partner}+{name}", partner, "end", partial(hull, **options))
    for partner in ("ce", "la", "ldam"):
        yield Form(f"{partner}+paper", partner, "start", partial(paper, initial=0.5))
        yield Form(f"{partner}+paper-late", partner, "late", paper)
        yield Form(f"{partner}+paper-natural", partner, "late", partial(paper, levelled=False))
    yield Form("ce+drs", "ce", "late", resampled)
    yield Form("ce+drw", "ce", "late", reweighted)
    yield Form("ce+hull-cosine", "ce", "end", hull, lambda network, _: with_cosine_head(network))


def _of_memory(partner: str, begins: Begin, name: str, **options: float) -> Form:
    return Form(f"{partner}+{name}", partner, begins, partial(recalled, **options), Remembering)


FORMS = {form.name: form for form in _forms()}
