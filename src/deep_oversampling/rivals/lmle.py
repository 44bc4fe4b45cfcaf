"""LMLE: Large Margin Local Embedding, learned from quintuplets and read out by local margins.

Huang, Li, Loy and Tang, Learning Deep Representation for Imbalanced Classification, CVPR 2016.
The readings that the publication leaves open are in docs/rivals.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import torch
from torch import Tensor
from torch.nn.functional import normalize, relu

from ..metrics import Report
from ..network import Network, embed
from ..samples import Samples
from ..stages import Stage
from .method import Contest, Method, Trained, Training, passes
from .quintuplets import Quintuplets, clusters, draw_anchors, quintuplets
from .triplet import Group

__all__ = ["LMLE", "MARGINS", "by_local_margin", "triple_header"]

MARGINS = torch.tensor([0.2, 0.2, 0.2])  # g1, g2, g3, between squared distances of unit vectors
_NEIGHBOURS = 3  # clusters of a class that are retrieved for a query


def triple_header(
    network: Network, batch: Group, *, margins: Tensor = MARGINS
) -> tuple[Tensor, Tensor]:
    """Σ max(0, g + D(nearer) − D(farther)) over p+ < p− < p−− < n; no classifier in it."""
    v = batch.embedded(network)  # (b, 5, d)
    distance = (v[:, :1] - v[:, 1:]).square().sum(2)  # (b, 4)
    hinges = relu(margins.to(distance) + distance[:, :-1] - distance[:, 1:])
    assert batch.counts is not None
    ell_f = (hinges * batch.counts).sum(1)
    return torch.zeros_like(ell_f), ell_f


def by_local_margin(trained: Sequence[Trained]) -> list[Report]:
    """The class with the largest local margin, over the clusters nearest to the query.

    Of every class the nearest clusters are retrieved; its margin is the smallest distance to a
    retrieved cluster of another class less the largest to its own.
    """
    return [one.measured(_margins(one.train, *one.embedded).softmax(1)) for one in trained]


def _margins(train: Samples, v: Tensor, queries: Tensor) -> Tensor:  # (m, n)
    v, queries = normalize(v, dim=1), normalize(queries, dim=1)
    cluster = clusters(v, train.y.to(v.device), seed=0)
    size = torch.bincount(cluster)
    centre = v.new_zeros(len(size), v.shape[1]).index_add(0, cluster, v) / size.unsqueeze(1)
    label = torch.empty_like(size)
    label[cluster] = train.y.to(v.device)
    return local_margins(torch.cdist(queries, centre), label, train.n)


def local_margins(distance: Tensor, label: Tensor, n: int) -> Tensor:  # (m, c), (c,) -> (m, n)
    """Smallest distance to another class − largest within, among the nearest clusters of each."""
    nearest = distance.new_full((len(distance), n), torch.inf)
    largest = distance.new_full((len(distance), n), torch.inf)  # a class without clusters loses
    for j in label.unique().tolist():
        own = distance[:, label == j].sort(1).values[:, :_NEIGHBOURS]
        nearest[:, j], largest[:, j] = own[:, 0], own[:, -1]
    # the nearest among the other classes: the second nearest, for the class that is nearest
    two = nearest.topk(2, dim=1, largest=False)
    another = torch.where(
        torch.arange(n, device=distance.device) == two.indices[:, :1],
        two.values[:, 1:],
        two.values[:, :1],
    )
    return (another - largest).nan_to_num(neginf=torch.finfo(distance.dtype).min)


def stages(network: Network, contest: Contest) -> Iterator[Stage]:
    """Plain training first, then quintuplets by clusters that are found anew every round."""
    samples, size = contest.samples, max(1, contest.presented // 5)
    objective = partial(triple_header, margins=MARGINS)  # so that they are on the device
    yield from passes(contest, contest.initial_rounds)
    for t in range(contest.rounds):
        v = normalize(embed(network, samples.x), dim=1)
        seed = int(torch.randint(2**31, (), generator=contest.rng("clusters", t)))
        cluster = clusters(v, samples.y, seed)
        anchors = draw_anchors(samples.y, cluster, size, contest.rng("anchors", t))
        found = quintuplets(v, samples.y, cluster, anchors, contest.rng("candidates", t))
        table = Quintuplets(samples, *found)
        yield Stage("quintuplet", table, objective, images_per_row=5)


LMLE = Method(
    "lmle",
    "LMLE",
    "Huang et al., CVPR 2016",
    Training("lmle", stages, begins_as="plain"),
    by_local_margin,
)
