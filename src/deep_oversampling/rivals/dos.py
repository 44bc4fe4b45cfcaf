"""DOS itself, classical classifiers on its embeddings, and DOS with another loss in ℓ_g."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from torch import Tensor

from ..algorithm import deep_over_sampling
from ..losses import Loss, entropy
from ..network import Network
from ..stages import Stage
from .ldam import ldam, with_cosine_head
from .logit_adjustment import logit_adjusted
from .method import Contest, Method, Training
from .plain import by_logistic_regression, by_neighbours

__all__ = ["DOS", "DOS_KNN", "DOS_LDAM", "DOS_LOGIT_ADJUSTMENT", "DOS_LR"]


def stages(
    network: Network, contest: Contest, make_loss: Callable[[Tensor], Loss] | None = None
) -> Iterator[Stage]:
    samples = contest.samples
    return deep_over_sampling(
        network,
        samples,
        contest.plan,
        rounds=contest.rounds,
        initial_rounds=contest.initial_rounds,
        loss=make_loss(samples.class_counts) if make_loss else entropy,
        rng=contest.rng,
        augment=contest.augment,
    )


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
        lambda network, contest: stages(network, contest, logit_adjusted),
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
