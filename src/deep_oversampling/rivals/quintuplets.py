"""LMLE's quintuplets: a sample, and four others in the order they should be near it.

Huang, Li, Loy and Tang, Learning Deep Representation for Imbalanced Classification, CVPR 2016.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import torch
from threadpoolctl import threadpool_limits
from torch import Generator, Tensor
from torch.nn.functional import pad

from ..samples import Samples
from ..seeding import streams
from .tables import Grouped, class_balanced
from .triplet import Group

__all__ = ["Quintuplets", "clusters", "draw_anchors", "quintuplets"]

_CLUSTERS = 10  # of a class at most
_MEMBERS = 20  # of a cluster, on the average, at least
_TO_FIND_MEANS = 2000  # samples of a class
_STEPS = 10  # of k-means at most; more gain .4 %
_BLOCK = 512  # anchors whose distances are in memory together, and who share their candidates
_CANDIDATES = 10  # of a class, on the average


def clusters(v: Tensor, y: Tensor, seed: int) -> Tensor:  # (m, d), (m,) -> (m,)
    """Per-class k-means on the features: the cluster of each sample, numbered over all classes.

    Means are found among some of a class; mini-batches of all take longer to find worse ones.
    """
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    found, first = torch.empty_like(y), 0
    draw = streams(seed)("means")
    for j in y.unique().tolist():
        own = v[y == j]
        some = own[torch.randperm(len(own), generator=draw)[:_TO_FIND_MEANS].to(v.device)]
        k = min(max(len(own) // _MEMBERS, 1), _CLUSTERS)
        means = KMeans(k, random_state=seed, n_init=1, max_iter=_STEPS)
        # steps are so small that threads would only wait for each other
        with warnings.catch_warnings(), threadpool_limits(1):
            # fewer distinct features than clusters: fewer clusters
            warnings.simplefilter("ignore", ConvergenceWarning)
            means.fit(some.cpu().numpy())
        centres = torch.from_numpy(means.cluster_centers_).to(v)
        inner = torch.cdist(own, centres).argmin(1)
        found[y == j] = first + inner.unique(return_inverse=True)[1]  # none is empty
        first = int(found[y == j].max()) + 1
    return found


@dataclass(frozen=True, eq=False)
class Quintuplets:
    """Rows of (anchor, p+, p−, p−−, n) and which of the three margins they have."""

    samples: Samples
    index: Tensor  # (rows, 5)
    counts: Tensor  # (rows, 3)

    def __len__(self) -> int:
        return len(self.index)

    def __getitem__(self, rows: Tensor) -> Group:
        x = self.samples.x[self.index[rows].flatten(-2)]
        return Group(x, 5, self.counts[rows])


def quintuplets(
    v: Tensor,  # (m, d)
    y: Tensor,  # (m,)
    cluster: Tensor,  # (m,)
    anchors: Tensor,  # (rows,)
    generator: Generator | None = None,
) -> tuple[Tensor, Tensor]:  # (rows, 5), (rows, 3)
    """The four companions of each anchor, by their distances now.

    p+ is the farthest of its cluster, p− the nearest of its class in another cluster, p−− the
    farthest of its class, n the nearest of another class: among a few candidates of every class if
    there is a generator to draw them, else among all samples. Where there is none (a class with a
    single cluster has no p−) the one before stands in, and the margin between them does not count.
    """
    everyone, classes = torch.arange(len(y), device=y.device), Grouped(y)
    parts = []
    for part in anchors.split(_BLOCK):
        candidates = _candidates(classes, generator).to(y.device) if generator else everyone
        parts.append(_companions(v, y, cluster, part, candidates))
    index, counts = zip(*parts, strict=True)
    return torch.cat(index), torch.cat(counts)


def _candidates(classes: Grouped, generator: Generator) -> Tensor:
    """Among all samples the companions would be outliers, and embeddings collapse to escape them.

    At least one of every class, so that each anchor has a stranger.
    """
    one_each = classes.one_of(classes.present, generator)
    more = classes.balanced((_CANDIDATES - 1) * len(one_each), generator)
    return torch.cat([one_each, more])


def _companions(
    v: Tensor, y: Tensor, cluster: Tensor, a: Tensor, candidates: Tensor
) -> tuple[Tensor, Tensor]:
    # the anchor stands among its candidates, at distance 0: for where it is alone
    found = torch.cat([a.unsqueeze(1), candidates.expand(len(a), -1)], 1)  # (b, c)
    distance = pad(torch.cdist(v[a], v[candidates]), (1, 0))
    alike, together = (of[a].unsqueeze(1) == of[found] for of in (y, cluster))
    near = distance.masked_fill(~together, -torch.inf).argmax(1)
    other = distance.masked_fill(~alike | together, torch.inf).min(1)
    split = other.values.isfinite()  # the class has another cluster
    further = torch.where(split, other.indices, near)
    farthest = distance.masked_fill(~alike, -torch.inf).argmax(1)
    stranger = distance.masked_fill(alike, torch.inf).argmin(1)
    places = torch.stack([torch.zeros_like(near), near, further, farthest, stranger], 1)
    index = found.gather(1, places)
    return index, torch.stack([split, index[:, 3] != index[:, 2], torch.ones_like(split)], 1)


def draw_anchors(y: Tensor, cluster: Tensor, size: int, generator: Generator) -> Tensor:
    """Equally over the classes, and within a class over its clusters."""
    label = torch.empty(int(cluster.max()) + 1, dtype=torch.long)
    label[cluster.cpu()] = y.cpu()  # of each cluster
    drawn = class_balanced(label, size, generator)  # clusters
    return Grouped(cluster).one_of(drawn, generator).to(y.device)
