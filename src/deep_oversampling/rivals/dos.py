"""DOS itself, classical classifiers on its embeddings, DOS with another loss, or with pieces."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import chain

from torch import Tensor

from ..algorithm import deep_over_sampling
from ..checks import check_pieces
from ..losses import Loss, entropy
from ..network import Network
from ..plan import Plan
from ..stages import Stage
from .ldam import ldam, with_cosine_head
from .logit_adjustment import logit_adjusted
from .method import Contest, Method, Training
from .mixup import adjusted_passes
from .plain import by_logistic_regression, by_neighbours

__all__ = [
    "DOS",
    "DOS_KNN",
    "DOS_LDAM",
    "DOS_LOGIT_ADJUSTMENT",
    "DOS_LR",
    "DOS_PIECES",
    "MIXUP_PIECES",
]


def stages(
    network: Network,
    contest: Contest,
    make_loss: Callable[[Tensor], Loss] | None = None,
    *,
    plan: Plan | None = None,  # default: the contest's
    pieces: float = 0.0,
    tau: float = 0.0,
) -> Iterator[Stage]:
    samples = contest.samples
    return deep_over_sampling(
        network,
        samples,
        plan or contest.plan,
        rounds=contest.rounds,
        initial_rounds=contest.initial_rounds,
        loss=make_loss(samples.class_counts) if make_loss else entropy,
        pieces=pieces,
        tau=tau,
        rng=contest.rng,
        augment=contest.augment,
    )


def pieced_stages(network: Network, contest: Contest) -> Iterator[Stage]:
    """What ``fit(pieces=0.5, tau=…)`` does."""
    samples, counts = contest.samples, contest.samples.class_counts.cpu()
    with warnings.catch_warnings():  # of small classes: the plan of DOS has named them
        warnings.simplefilter("ignore", UserWarning)
        plan = Plan.in_part(counts, contest.k).fitted_to(counts)
    pieces = 0.5
    check_pieces(pieces, contest.tau, True, samples, plan)  # now, not after the initial rounds
    return stages(network, contest, plan=plan, pieces=pieces, tau=contest.tau)


def mixed_and_pieced_stages(network: Network, contest: Contest) -> Iterator[Stage]:
    """Mixed images first, then images with pieces."""
    pieced = pieced_stages(network, replace(contest, initial_rounds=0))
    return chain(adjusted_passes(contest, contest.initial_rounds), pieced)


_PAPER = "Ando and Huang, Deep Over-sampling Framework, ECML PKDD 2017"
_TRAINING = Training("dos", stages, begins_as="plain")
DOS = Method("dos", "DOS", _PAPER, _TRAINING)
DOS_LR = Method("dos-lr", "DOS-LR", _PAPER, _TRAINING, by_logistic_regression)
DOS_KNN = Method("dos-knn", "DOS-kNN", _PAPER, _TRAINING, by_neighbours)
DOS_LOGIT_ADJUSTMENT = Method(
    "dos-la",  # rows are levelled and logits shifted: twice, so the shift is a margin
    "DOS, logit adjustment",
    f"{_PAPER}; Menon et al., ICLR 2021",
    Training(
        "dos-la",
        lambda network, contest: stages(network, contest, partial(logit_adjusted, tau=contest.tau)),
        begins_as="logit adjustment",
    ),
)
DOS_LDAM = Method(
    "dos-ldam",
    "DOS, LDAM",
    f"{_PAPER}; Cao et al., NeurIPS 2019",
    Training(
        "dos-ldam",
        lambda network, contest: stages(network, contest, ldam),
        with_cosine_head,
        begins_as="ldam",
    ),
)
DOS_PIECES = Method(
    "dos-pieces",
    "DOS with pieces",
    f"{_PAPER}; docs/modern.md",
    Training("dos-pieces", pieced_stages, begins_as="plain"),
)
MIXUP_PIECES = Method(
    "mixup-pieces",
    "mixup, DOS with pieces",
    f"Zhang et al., ICLR 2018; {_PAPER}; docs/modern.md",
    Training("mixup-pieces", mixed_and_pieced_stages, begins_as="mixup, logit adjustment"),
)
