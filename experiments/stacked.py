"""Many trainings of the paper's CNN at once, for sweeps: each member ends where it ends alone."""

from dataclasses import dataclass
from functools import partial
from itertools import groupby

import torch
from torch.optim import SGD

from deep_oversampling import Network, Normalize, Plan, Samples, fit_many, lenet
from deep_oversampling.data.imbalance import drop_from_classes
from deep_oversampling.seeding import streams


@dataclass(frozen=True)
class Member:
    """One training: which subset and draws (seed), which method, at which learning rate."""

    seed: int
    lr: float
    method: str  # "cnn", "ros" or "dos"
    pull: float = 0.0
    k: int = 5


def imbalanced(
    pool: Samples, member: Member, p: float, *, scale: float = 1.0
) -> tuple[Samples, Plan, list[int], Network]:
    """What a member starts from: its subset, plan, minority classes and untrained network.

    ``scale`` multiplies the embeddings by a constant and divides the classifier's weights by
    it: the same function at the start, another scale of the feature space.
    """
    generator = streams(member.seed)("imbalance")
    kept, minority = drop_from_classes(pool.to("cpu"), p, generator=generator)
    subset = pool[kept.to(pool.x.device)]
    plan = Plan.for_minority(subset.class_counts, minority, k=member.k)
    plans = {"cnn": Plan.plain(pool.n), "ros": plan.without_neighbours(), "dos": plan}
    normalize = Normalize.of(pool.x)
    network = lenet(tuple(pool.x.shape[1:]), pool.n, normalize=normalize, seed=member.seed)
    with torch.no_grad():  # ReLU passes a positive factor on
        for parameter in network.embedder[-2].parameters():
            parameter *= scale
        network.classifier[0].weight /= scale
    return subset, plans[member.method], minority, network


def train(
    pool: Samples,
    members: list[Member],
    *,
    p: float,
    limit: float | None,
    scale: float = 1.0,
    **settings: int,  # rounds, batch_size
) -> tuple[list[Network], list[list[int]]]:
    """Train every member on its own imbalanced subset; the networks and the minority classes.

    All of one learning rate are trained at once. A lost one is judged with the weights it has.
    """
    starts = [imbalanced(pool, member, p, scale=scale) for member in members]
    subsets, plans, minorities, networks = (list(column) for column in zip(*starts, strict=True))
    by_rate = sorted(range(len(members)), key=lambda e: members[e].lr)
    for lr, group in groupby(by_rate, key=lambda e: members[e].lr):
        own = list(group)
        fit_many(
            [networks[e] for e in own],
            [subsets[e] for e in own],
            [plans[e] for e in own],
            pull=[members[e].pull for e in own],
            pull_limit=limit,
            optimizer=partial(SGD, lr=lr, momentum=0.9),
            seeds=[members[e].seed for e in own],
            device=pool.x.device,
            **settings,
        )
    return networks, minorities
