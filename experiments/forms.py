"""Forms of DOS for a modern network (`modern.py`), each added to a partner (`partners.py`).

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
from torch import Tensor

from comparing import Comparing, comparing
from deep_oversampling import InputError, Network, Plan, Samples, embed
from deep_oversampling.algorithm import deep_over_sampling
from deep_oversampling.losses import Loss, entropy
from deep_oversampling.objectives import Objective
from deep_oversampling.rivals import effective_number, weighted
from deep_oversampling.rivals.ldam import with_cosine_head
from deep_oversampling.rivals.method import evenly, with_loss
from deep_oversampling.rivals.retraining import head_stages, start_head_anew
from deep_oversampling.rivals.tables import Redrawn, class_balanced
from deep_oversampling.stages import Stage
from pairing import PairTable, mixing_inside
from partners import PARTNERS, Partner, Task
from remembering import PointTable, RecallTable, Remembering, balanced_points, neighbours, recalling

Begin = Literal["start", "late", "end"]
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
    rises: bool = False,  # what is borrowed grows from nothing, round by round
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
            borrow=borrow * (t / task.rounds if rises else 1.0),
            own=cloud,
        )
        # in the first round the memory fills with what training sees
        chosen = still if live and t == 0 else asked
        weights = None if balanced else partner.weights(task, late=t >= task.late_from)
        yield Stage("multi", table, partial(chosen, weights=weights))


def compared(
    network: Network,
    task: Task,
    partner: Partner,
    *,
    k: int = 5,
    pull: float = 0.3,
    temperature: float = 0.1,
    borrow: float = 0.0,
) -> Iterator[Stage]:
    """ℓ_f compares hulls; what is compared comes from a live memory."""
    assert isinstance(network, Comparing)
    samples, counts = task.samples, task.counts.cpu()
    everyone = torch.ones(samples.n, dtype=torch.bool)
    for t in range(task.rounds):
        draw = partial(task.rng, t)
        table = RecallTable.drawn(
            samples, network.memory, draw, k=k, pulled=everyone, balanced=False, borrow=borrow
        )
        objective = partial(
            comparing,
            loss=partner.make_loss(counts),
            weights=partner.weights(task, late=t >= task.late_from),
            n=samples.n,
            pull=pull if t else 0.0,  # in the first round the memory fills
            temperature=temperature,
        )
        yield Stage("multi", table, objective)


# (f) at an earlier layer


def inside(
    network: Network,
    task: Task,
    partner: Partner,
    *,
    layer: int = 8,  # of ResNet-32: 3, 8, 13 and 18 end its stem and its three widths
    k: int = 5,  # 0: the whole class
    mixed: float = 1.0,
    rare: bool = False,  # the others stay as they are
) -> Iterator[Stage]:
    """In-class pairs, mixed inside f."""
    samples, counts = task.samples, task.counts.cpu()
    shares = torch.full((samples.n,), mixed)
    if rare:
        shares = shares * Plan.automatic(counts, 1).minority
    for t in range(task.rounds):
        hoods = neighbours(embed(network, samples.x), samples.y, samples.n, k) if k else None
        table = PairTable.drawn(samples, hoods, partial(task.rng, t), mixed=shares)
        objective = partial(
            mixing_inside,
            layer=layer,
            loss=partner.make_loss(counts),
            weights=partner.weights(task, late=t >= task.late_from),
        )
        yield Stage("pairs", table, objective, images_per_row=2)


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
        yield end("tuned", pull=1.0, synthetic=1.0, to_f=0.01)
        for name, options in {
            "hull": {},
            "hull-points": {"k": 0},  # the control: samples instead of hulls
            "hull-stored": {"copies": 0},
            "hull-borrow": {"borrow": 1.0},
            "hull-on": {"anew": False},
        }.items():
            yield Form(f"{partner}+{name}", partner, "end", partial(hull, **options))
    for partner in ("ce", "la", "la-1.5", "la-2", "ldam"):
        start = partial(_of_memory, partner, "start")
        yield start("pull-start", pull=1.0, rare=False)
        yield start("cloud-rising", k=0, borrow=1.0, cloud=True, rises=True)
        yield Form(f"{partner}+compare", partner, "start", compared, Comparing)
        yield Form(f"{partner}+inside", partner, "start", inside)
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
