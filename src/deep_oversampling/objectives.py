"""What a step asks of a network: ℓ in single-task training, ℓ′_g + λℓ′_f in multi-task training."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from .errors import InputError
from .losses import (
    Loss,
    classifier_loss,
    embedding_loss,
    entropy,
    proximity,
    weighted_errors,
)
from .network import Network
from .oversampling import MicroClusters
from .pull import limit_pull
from .samples import Samples

__all__ = ["Objective", "dos_loss", "each_row", "multi_task", "single_task"]

# -> ℓ_g (b,), λℓ_f (b,) and, if a batch's mean is to be a weighted one, weights (b,)
Objective = Callable[[Network, Any], tuple[Tensor, ...]]


def single_task(network: Network, batch: Samples, *, loss: Loss = entropy) -> tuple[Tensor, Tensor]:
    """ℓ(x, y) = ℋ(g(f(x)), y), and no embedding loss."""
    ell = each_row(loss, network(batch.x), batch.y)
    return ell, torch.zeros_like(ell)


def each_row(
    loss: Loss,
    logits: Tensor,  # (b, n)
    labels: Tensor,  # (b,)
) -> Tensor:  # (b,)
    """What a loss says of every row, which a user's own may say of all at once."""
    ell = loss(logits, labels)
    if not isinstance(ell, Tensor) or ell.shape != labels.shape:
        found = f"shape {tuple(ell.shape)}" if isinstance(ell, Tensor) else type(ell).__name__
        raise InputError(
            "a loss must give a value for each row of logits (b, n) and labels (b,), found "
            f"{found} for {len(labels)} rows; torch's do with reduction='none', and those of "
            "rivals do when they are made: rivals.focal(), rivals.ldam(counts)"
        )
    return ell


def multi_task(
    pull: float,
    limit: float | None,
    *,
    loss: Loss = entropy,
    total: Callable[[Tensor], Tensor] | None = None,  # adds up over processes that share a batch
) -> Objective:
    """ℓ′_g + λℓ′_f over the micro-clusters; ``pull`` is λ, ``limit`` bounds what it does (R5)."""
    asked = partial(_multi_task, pull=pull, limit=limit, loss=loss)
    return partial(asked, total=total) if total else asked  # it is walked as a tree in every step


def dos_loss(
    network: Network,
    batch: MicroClusters,
    *,
    pull: float = 10.0,  # λ
    limit: float | None = 0.3,
    loss: Loss = entropy,
) -> Tensor:  # ()
    """The mean of ℓ′_g + λℓ′_f over a batch, for a training loop of one's own."""
    ell_g, ell_f = multi_task(pull, limit, loss=loss)(network, batch)
    return (ell_g + ell_f).mean()


def _multi_task(
    network: Network,
    z: MicroClusters,
    *,
    pull: float,
    limit: float | None,
    loss: Loss,
    total: Callable[[Tensor], Tensor] | None = None,
) -> tuple[Tensor, Tensor]:
    fx = network.embed(z.x)
    to_g, to_f = (fx, fx) if limit is None else limit_pull(fx, limit, total)
    c, k = z.mask.shape  # the first c rows have neighbours, of which g sees K, or none
    alone = len(fx) - c
    errors = weighted_errors(to_f[:c], z.v, z.w)  # (c, K)
    logits = network.classifier(torch.cat([to_g, z.v[:, :k].flatten(0, 1)]))
    labels = torch.cat([z.y, z.y[:c].repeat_interleave(k)])
    own, rest, others = each_row(loss, logits, labels).split([c, alone, c * k])
    rho = proximity(errors[:, :k], z.mask)
    ell_g = classifier_loss(own, rho, others.view(c, k))
    ell_f = pull * embedding_loss(errors)
    return torch.cat([ell_g, rest]), pad(ell_f, (0, alone))
