"""SMOTE: new samples on the lines between a sample and its neighbours of the same class.

Chawla, Bowyer, Hall and Kegelmeyer, JAIR 2002, by imbalanced-learn. On raw pixels, and in the
space of embeddings, where the head is trained again (the idea of Dablain et al., Understanding
CNN Fragility When Learning with Imbalanced Data, EOS, 2022).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Generator, Tensor

from ..errors import InputError
from ..network import Network
from ..objectives import single_task
from ..plan import Plan
from ..samples import Samples
from ..seeding import Streams
from ..stages import Stage
from .method import Contest, Method, Training, passes
from .tables import Joined
from .threads import at_once

__all__ = ["SMOTE_PIXELS", "imbalanced_learn", "with_smote"]

_NEIGHBOURS = 5  # the publication's k, where a class has so many


def imbalanced_learn() -> Any:
    """Its SMOTE, which a user need not have installed."""
    try:
        from imblearn.over_sampling import SMOTE
    except ImportError as error:
        raise InputError(
            f"SMOTE needs imbalanced-learn, found that it cannot be imported ({error}); "
            "pip install 'deep-oversampling[rivals]'"
        ) from None
    return SMOTE


def with_smote(samples: Samples, plan: Plan, rng: Streams) -> Samples | Joined:
    """𝒳 and synthetic samples: of class j as many in all as DOS presents of it, r_j m_j.

    Every class stands on its own: its rows alone are read, and its size alone limits its
    neighbours. Frequent classes are not read at all.
    """
    smote = imbalanced_learn()
    counts = samples.class_counts.cpu()
    missing = plan.rows(counts) - counts  # (n,)
    total, device = int(missing.sum()), samples.y.device
    if not total:
        return samples
    # in one piece and in the storage type, so that as floats there are few classes at a time
    x = torch.empty((total, *samples.x.shape[1:]), dtype=samples.x.dtype, device=device)
    parts = x.split(missing.tolist())

    def fill(j: int) -> None:
        own = samples.x[(samples.y == j).nonzero().flatten()]
        parts[j].copy_(_between(own, len(parts[j]), rng("smote", j), smote))

    at_once(fill, missing.nonzero().flatten().tolist())
    y = torch.arange(samples.n).repeat_interleave(missing).to(device)
    return Joined(samples, samples.with_x(x, y))


def _between(x: Tensor, size: int, generator: Generator, smote: Any) -> Tensor:  # -> (size, …)
    """Samples of a class that are new; where it has a single one, there are only copies of it."""
    m = len(x)
    if m == 1:
        return x.expand(size, *x.shape[1:])
    rows = torch.zeros(m + 1, x[0].numel())  # SMOTE wants a second class: the last row, no sample
    rows[:m] = x.flatten(1)
    seed = int(torch.randint(2**31, (), generator=generator))
    k = min(_NEIGHBOURS, m - 1)
    maker = smote(sampling_strategy={1: m + size}, k_neighbors=k, random_state=seed)
    found, _ = maker.fit_resample(rows.numpy(), [1] * m + [0])
    made = torch.from_numpy(found[m + 1 :]).view(size, *x.shape[1:])
    return made if x.is_floating_point() else made.round_()  # pixels stay whole numbers


def stages(network: Network, contest: Contest) -> Iterator[Stage]:
    made = with_smote(contest.samples, contest.plan, contest.rng)  # first: if it fails, at once
    yield from passes(contest, contest.initial_rounds)
    for _ in range(contest.rounds):
        yield Stage("single", made, single_task)


SMOTE_PIXELS = Method(
    "smote", "SMOTE", "Chawla et al., JAIR 2002", Training("smote", stages, begins_as="plain")
)
