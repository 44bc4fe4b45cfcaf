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

import torch
from torch import Tensor
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from deep_oversampling import InputError, Network, Plan, Samples
from deep_oversampling.embeddings import embed_classes
from deep_oversampling.losses import Loss, entropy
from deep_oversampling.overloading import in_class_neighbors
from deep_oversampling.oversampling import oversample
from deep_oversampling.rivals import effective_number, weighted
from deep_oversampling.rivals.method import with_loss
from deep_oversampling.rivals.retraining import head_stages
from deep_oversampling.rivals.tables import Grouped, Redrawn, class_balanced
from deep_oversampling.stages import Stage
from partners import PARTNERS, Partner, Task
from pasting import Pasted, PastedClusters
from remembering import RecallTable, Remembering, recalling
from varying import varied

Begin = Literal["start", "half", "late", "end"]
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


# DOS


def shifted(loss: Loss, counts: Tensor, tau: float) -> Loss:  # (n,)
    """A loss of logits plus τ log π, as logit adjustment is of ℋ."""
    offset = tau * (counts.double() / counts.sum()).log()
    return partial(_shifted, loss=loss, offset=offset)


def _shifted(logits: Tensor, labels: Tensor, *, loss: Loss, offset: Tensor) -> Tensor:
    return loss(logits + offset.to(logits), labels)


def paper(
    network: Network,
    task: Task,
    partner: Partner,
    *,
    k: int = 5,
    pull: float = 10.0,
    limit: float = 0.3,
    levelled: bool = True,  # False: r = 1, f and g see the classes as they are
    everyone: bool = False,  # the large classes have neighbours, too
    seen: bool = True,  # v is that of augmented images; False: of the images as they are
    in_g: float = 1.0,
    evened: bool = False,  # a row with neighbours weighs as much as one without
    tau: float = 0.0,  # of logit adjustment, although classes are levelled: a margin
    average: float = 0.0,  # v is that of a mean of f over rounds, of which this much stays
    q: float = 0.0,  # classes are presented by their shares to the power of q
) -> Iterator[Stage]:
    """The multi-task rounds of Algorithm 1."""
    samples, counts = task.samples, task.counts.cpu()
    plan = Plan.automatic(counts, k)
    ks = torch.full_like(plan.k, k) if everyone else plan.k
    r = (counts.max() / counts).pow(1 - q).round().long() if q else plan.r
    plan = Plan(ks, r if levelled else torch.ones_like(r), plan.minority)
    plan = plan.fitted_to(counts)
    loss = (partner.point_loss if levelled else partner.make_loss)(counts)
    loss = shifted(loss, counts, tau) if tau else loss
    objective = partial(varied, pull=pull, limit=limit, loss=loss, in_g=in_g, evened=evened)
    mean = AveragedModel(network, multi_avg_fn=get_ema_multi_avg_fn(average), use_buffers=True)
    assert isinstance(mean.module, Network)
    for t in range(task.rounds):
        mean.update_parameters(network)
        draws = task.rng("views", t)
        augment = task.augment if seen else None
        v = embed_classes(mean.module, samples, plan.k > 0, augment=augment, generator=draws)
        z = oversample(samples, v, plan, generator=task.rng("weights", t))
        weights = None if levelled else partner.weights(task, t)
        yield Stage("multi", z, partial(objective, weights=weights), spread=v.spread)


def recalled(
    network: Network,
    task: Task,
    partner: Partner,
    *,
    k: int = 5,
    pull: float = 1.0,
    limit: float = 0.3,
    in_g: float = 1.0,
) -> Iterator[Stage]:
    """DOS from a memory of embeddings as training sees them, on images drawn equally."""
    assert isinstance(network, Remembering)
    samples, counts = task.samples, task.counts.cpu()
    pulled = Plan.automatic(counts, 1).minority
    objective = partial(recalling, loss=partner.point_loss(counts), limit=limit)
    for t in range(task.rounds):
        table = RecallTable.drawn(samples, network.memory, partial(task.rng, t), k=k, pulled=pulled)
        strength = 1.0 if t else 0.0  # in the first round the memory fills with what training sees
        yield Stage("multi", table, partial(objective, pull=strength * pull, in_g=strength * in_g))


def pasted(
    network: Network,
    task: Task,
    partner: Partner,
    *,
    often: float = 0.5,
    levelled: bool = True,  # False: r = 1
    k: int = 0,  # pieces are of one of so many nearest neighbours; 0: of any image of the class
    pull: float = 0.0,  # towards the embeddings of both images, by their shares of the area
    limit: float = 0.3,
    tau: float = 0.0,  # as above
    q: float = 0.0,  # as above
    plain: bool = False,  # ℋ is cross-entropy from here on, whatever the partner's was
) -> Iterator[Stage]:
    """Over-sampling with images that have a piece of another of their class."""
    samples, counts = task.samples, task.counts.cpu()
    loss = (partner.point_loss if levelled else partner.make_loss)(counts)
    loss = entropy if plain else loss
    loss = shifted(loss, counts, tau) if tau else loss
    ks, everyone = torch.minimum(torch.tensor(k), counts - 1), counts > 0
    grouped = Grouped(samples.y)
    for t in range(task.rounds):
        row = torch.arange(len(samples))
        if levelled:
            draws = task.rng("balanced", t)
            wanted = counts.double().pow(q).multinomial(len(samples), True, generator=draws)
            row = grouped.one_of(wanted, draws)
        weights = None if levelled else partner.weights(task, t)
        objective = with_loss(loss) if weights is None else weighted(weights, loss)
        draw = partial(Pasted.drawn, samples, row, task.rng("pieces", t), often=often)
        if not (k or pull):
            yield Stage("single", draw(), objective)
            continue
        views = task.rng("views", t)
        v = embed_classes(network, samples, everyone, augment=task.augment, generator=views)
        table = draw(near=in_class_neighbors(v.v, samples.y, ks) if k else None)
        if pull:
            given = {"pull": pull, "limit": limit, "loss": loss, "in_g": 0.0, "weights": weights}
            yield Stage("multi", PastedClusters(table, v.v, v.variance), partial(varied, **given))
        else:
            yield Stage("single", table, objective)


def _forms() -> Iterator[Form]:
    for partner in PARTNERS:
        yield Form(partner, partner, "end", alone)
        yield Form(f"{partner}+crt", partner, "end", retrained)
        for begins in ("start", "half", "late"):
            yield Form(f"{partner}+pasted-{begins}", partner, begins, pasted)
        for begins in ("half", "late"):
            yield Form(f"{partner}+over-{begins}", partner, begins, partial(paper, k=0))
            yield Form(f"{partner}+dos-{begins}", partner, begins, paper)
            yield Form(f"{partner}+live-{begins}", partner, begins, recalled, Remembering)
    yield Form("ce+drs", "ce", "late", resampled)
    yield Form("ce+drw", "ce", "late", reweighted)


FORMS = {form.name: form for form in _forms()}
