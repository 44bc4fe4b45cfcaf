"""SMOTE: new samples on the lines between a sample and its neighbours of the same class.

Chawla, Bowyer, Hall and Kegelmeyer, JAIR 2002, by imbalanced-learn. On raw pixels, and in the
space of embeddings, where the head is trained again (the idea of Dablain et al., Understanding
CNN Fragility When Learning with Imbalanced Data, EOS, 2022).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

from ..errors import InputError
from ..network import Network
from ..objectives import single_task
from ..plan import Plan
from ..samples import Samples
from ..seeding import Streams
from ..stages import Stage
from .method import Contest, Method, Training, passes

__all__ = ["SMOTE_PIXELS", "with_smote"]


def with_smote(samples: Samples, plan: Plan, rng: Streams, *, k: int = 5) -> Samples:
    """𝒳 and synthetic samples: of class j as many in all as DOS presents of it, r_j m_j.

    Neighbours are clamped to what the rarest class has; a class with a single sample has none.
    """
    try:
        from imblearn.over_sampling import SMOTE
    except ImportError:
        raise InputError(
            "SMOTE needs imbalanced-learn, found that it is not installed; "
            "pip install 'deep-oversampling[rivals]'"
        ) from None
    counts = samples.class_counts.cpu()
    wanted = {j: int(r * m) for j, (r, m) in enumerate(zip(plan.r, counts, strict=True)) if r > 1}
    wanted = {j: size for j, size in wanted.items() if counts[j]}
    alone = [samples.classes[j] for j in wanted if counts[j] == 1]
    if alone:
        raise InputError(
            "SMOTE needs two samples of a class or more, found a single one of "
            f"{', '.join(map(repr, alone))}; add samples or leave the method out"
        )
    if not wanted:
        return samples
    x = samples.x[:].flatten(1)
    seed = int(torch.randint(2**31, (), generator=rng("smote")))
    k = min(k, int(min(counts[j] for j in wanted)) - 1)
    smote = SMOTE(sampling_strategy=wanted, k_neighbors=k, random_state=seed)
    made, labels = smote.fit_resample(x.cpu().float().numpy(), samples.y.cpu().numpy())
    if not samples.x.is_floating_point():
        made = np.rint(made)  # pixels stay whole numbers
    made_x = torch.from_numpy(made).to(samples.x.dtype).view(-1, *samples.x.shape[1:])
    return Samples(made_x, labels, samples.classes).to(samples.y.device)


def stages(network: Network, contest: Contest) -> Iterator[Stage]:
    yield from passes(contest, contest.initial_rounds)
    made = with_smote(contest.samples, contest.plan, contest.rng)
    for _ in range(contest.rounds):
        yield Stage("single", made, single_task)


SMOTE_PIXELS = Method("smote", "SMOTE", "Chawla et al., JAIR 2002", Training("smote", stages))
