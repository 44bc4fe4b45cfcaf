"""Images to judge by that nobody trains on: those that an imbalance protocol took away."""

from __future__ import annotations

import torch

from ..errors import InputError
from ..samples import Samples
from ..seeding import streams
from ..views import View
from .index import Subset

__all__ = ["set_aside"]


def set_aside(
    subset: Subset,
    share: float = 0.1,
    *,
    even: bool = True,  # False: all that is not trained on; then classes differ in number
) -> tuple[Samples, Samples]:
    """What is left to train on, and as many samples of every class to judge by.

    As many as ``share`` of the smallest class of the whole. They are among those that the protocol
    took away, so they cost nothing; a class that lost fewer than that, or none, gives the others
    of those it kept.
    """
    whole, generator = subset.whole, streams(subset.seed)("aside")
    if isinstance(whole.x, View) and len(whole.x.rows.unique()) < len(whole):
        raise InputError(
            "samples must be distinct to be set aside, found copies, of which some would be judged "
            "by and others trained on; make the data imbalanced first and copy afterwards"
        )
    counts = whole.class_counts.cpu()
    each = int(share * int(counts.min()))
    if not 0 < share < 1 or each < 1:
        raise InputError(
            "there must be a sample of every class to judge by and one to train on, found a class "
            f"of {int(counts.min())} samples, of which the share {share} is to be set aside"
        )
    y, kept = whole.y.cpu(), torch.zeros(len(whole), dtype=torch.bool)
    kept[subset.rows] = True
    aside = torch.zeros(len(whole), dtype=torch.bool)
    for j in range(whole.n):
        rows = (y == j).nonzero().flatten()
        rows = rows[torch.randperm(len(rows), generator=generator)]
        first = kept[rows].long().argsort(stable=True)  # those that were taken away
        aside[rows[first[:each]]] = True
    train = kept & ~aside
    judged = aside if even else ~train
    return whole.subset(train.nonzero().flatten()), whole.subset(judged.nonzero().flatten())
