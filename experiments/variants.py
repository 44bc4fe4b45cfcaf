"""Other readings of the paper than ours, for the studies: objectives, weights and members."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor
from torch.nn.functional import pad

from deep_oversampling.losses import entropy, weighted_errors
from deep_oversampling.network import Network, embed
from deep_oversampling.objectives import Objective
from deep_oversampling.overloading import Neighborhoods
from deep_oversampling.oversampling import MicroClusters, Overloaded
from deep_oversampling.pull import limit_pull
from deep_oversampling.seeding import Streams
from deep_oversampling.stages import Stage

__all__ = [
    "for_g_alone",
    "forgetting",
    "once",
    "stale",
    "stale_after",
    "with_every_v",
    "with_objective",
    "with_weights",
]

PULL, LIMIT = 10.0, 0.3


def with_objective(stages: Iterator[Stage], objective: Objective) -> Iterator[Stage]:
    for stage in stages:
        yield replace(stage, objective=objective) if stage.task == "multi" else stage


def with_every_v(stages: Iterator[Stage], network: Network) -> Iterator[Stage]:
    """Tables that have an embedding, a neighbourhood and weights of every row, whatever its k."""
    for stage in stages:
        if isinstance(stage.table, Overloaded):
            stage = replace(stage, table=_of_everyone(stage.table, network))
        yield stage


def _of_everyone(z: Overloaded, network: Network) -> Overloaded:
    own = torch.arange(len(z.samples), device=z.anchor.device)
    index = own.unsqueeze(1).repeat(1, z.w.shape[1])
    index[z.kept] = z.kept[z.neighborhoods.index]
    mask = torch.zeros_like(index, dtype=torch.bool)
    mask[:, 0], mask[z.kept] = True, z.neighborhoods.mask
    w = z.w.new_zeros(len(z), z.w.shape[1])
    w[:, 0], w[z.crowded] = 1.0, z.w
    v, everyone = embed(network, z.samples.x), torch.arange(len(z), device=own.device)
    hoods = Neighborhoods(index, mask)
    return replace(z, kept=own, v=v, neighborhoods=hoods, crowded=everyone, hood=z.anchor, w=w)


def varied(
    network: Network,
    z: MicroClusters,
    *,
    rho_learns: bool = False,
    own_by_rho: bool = False,
    share: Tensor | None = None,  # (n,)
) -> tuple[Tensor, Tensor]:
    """ℓ′_g + λℓ′_f with a gradient through ρ (R4), or with the original loss by ρ′₀ (R7).

    With a share, f learns that much from the original loss of a row, and g all of it.
    """
    to_g, to_f = limit_pull(network.embed(z.x), LIMIT)
    if share is not None:
        of_row = share[z.y].unsqueeze(1)
        to_g = of_row * to_g + ((1 - of_row) * to_g).detach()
    c, k, _ = z.v.shape
    alone = len(to_g) - c
    errors = weighted_errors(to_f[:c], z.v, z.w)
    labels = torch.cat([z.y, z.y[:c].repeat_interleave(k)])
    logits = network.classifier(torch.cat([to_g, z.v.flatten(0, 1)]))
    own, rest, others = entropy(logits, labels).split([c, alone, c * k])
    near = (-(errors if rho_learns else errors.detach())).exp() * z.mask
    rho = near / (1 + near.sum(1, keepdim=True))
    weight = 1 - rho.sum(1) if own_by_rho else 1.0
    ell_g = weight * own + (rho * others.view(c, k)).sum(1)
    return torch.cat([ell_g, rest]), pad(PULL * errors.sum(1), (0, alone))


RHO_LEARNS: Objective = partial(varied, rho_learns=True)
OWN_BY_RHO: Objective = partial(varied, own_by_rho=True)


def once(r: Tensor) -> Objective:
    """f learns from a sample as if it were presented once, g from every presentation."""
    return partial(varied, share=1 / r)


def for_g_alone(chosen: Tensor) -> Objective:  # (n,)
    """Of chosen classes f learns from ℓ_f alone, as with a stored self; of the others as ever."""
    return partial(varied, share=1 - chosen.float())


@dataclass(frozen=True, eq=False)
class StaleBatch:
    z: MicroClusters
    own: Tensor  # (b, d)  v_i of the samples themselves
    w: Tensor  # (b, 1)  their weights

    @property
    def x(self) -> Tensor:
        return self.z.x


@dataclass(frozen=True, eq=False)
class WithOwn:
    """𝒵′ whose member x itself is the stored v_i."""

    table: Overloaded

    def __len__(self) -> int:
        return len(self.table)

    def __getitem__(self, rows: Tensor) -> StaleBatch:
        w = self.table.w[rows][..., :1] / self.table.variance
        return StaleBatch(self.table[rows], self.table.v[self.table.anchor[rows]], w)


def stale_self(
    network: Network, batch: StaleBatch, *, pull: float, live: bool = False
) -> tuple[Tensor, Tensor]:
    """R2 read the other way: x itself is v_i, so ℓ_g trains g alone and f learns from ℓ_f.

    Live, f learns from ℓ_g of x itself as well, while its own v_i holds it back.
    """
    z, fx = batch.z, network.embed(batch.z.x)
    b, k, d = z.v.shape
    v = torch.cat([batch.own.unsqueeze(1), z.v], 1)
    errors = weighted_errors(fx, v, torch.cat([batch.w, z.w], 1))
    if live:
        v = torch.cat([fx.unsqueeze(1), z.v], 1)
    near = (-errors.detach()).exp() * pad(z.mask.float(), (1, 0), value=1.0)
    entropies = entropy(network.classifier(v.view(-1, d)), z.y.repeat_interleave(k + 1))
    rho = near / near.sum(1, keepdim=True)
    return (rho * entropies.view(b, k + 1)).sum(1), pull * errors.sum(1)


def stale(stages: Iterator[Stage], pull: float, *, live: bool = False) -> Iterator[Stage]:
    for stage in stages:
        if stage.task == "multi":
            table = WithOwn(stage.table)  # type: ignore[arg-type]
            objective = partial(stale_self, pull=pull, live=live)
            stage = replace(stage, table=table, objective=objective)
        yield stage


def stale_after(stages: Iterator[Stage], rounds: int, pull: float) -> Iterator[Stage]:
    """A live self for some multi-task rounds, then a stored one."""
    for stage in stages:
        if stage.task == "multi":
            rounds -= 1
        yield stage if rounds >= 0 else next(stale(iter([stage]), pull))


def with_weights(stages: Iterator[Stage], rng: Streams, alpha: float) -> Iterator[Stage]:
    """w from Dirichlet(α): one large weight for small α, all alike for large (R6)."""
    for t, stage in enumerate(stages):
        if isinstance(stage.table, Overloaded):
            there = stage.table.neighborhoods.mask[stage.table.anchor]
            shape = torch.full(there.shape, alpha, dtype=torch.float64)
            drawn = torch._standard_gamma(shape, generator=rng("dirichlet", t)).clamp(min=1e-12)
            drawn = drawn.to(there.device) * there
            w = (drawn / drawn.sum(1, keepdim=True)).float()
            stage = replace(stage, table=replace(stage.table, w=w))
        yield stage


def forgetting(stages: Iterator[Stage], every_round: bool) -> Iterator[Stage]:
    """The optimiser's state ends with single-task training, or with every multi-task round (R9)."""
    first = True
    for stage in stages:
        if stage.task == "multi":
            stage = replace(stage, starts_anew=first or every_round)
            first = False
        yield stage
