"""One step of DOS with parts left out or changed, to see which of them does what."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad

from deep_oversampling import Network
from deep_oversampling.losses import Loss, embedding_loss, proximity, weighted_errors
from deep_oversampling.oversampling import MicroClusters
from deep_oversampling.pull import limit_pull


def varied(
    network: Network,
    z: MicroClusters,
    *,
    pull: float,  # λ
    limit: float,
    loss: Loss,
    in_g: float = 1.0,  # times ρ′: 0 leaves the neighbours out of ℓ_g
    evened: bool = False,  # a row with neighbours weighs as much as one without
    weights: Tensor | None = None,  # (n,)  of the classes
) -> tuple[Tensor, ...]:
    """ℓ′_g and λℓ′_f, with the defaults those of `multi_task`; and weights of the rows, if any.

    As weights of the batch's mean, not divided row by row: that would slow f down as well.
    """
    fx = network.embed(z.x)
    to_g, to_f = limit_pull(fx, limit)
    b, (c, k, _) = len(fx), z.v.shape
    errors = weighted_errors(to_f[:c], z.v, z.w)
    logits = network.classifier(torch.cat([to_g, z.v.flatten(0, 1)]))
    others = loss(logits[b:], z.y[:c].repeat_interleave(k)).view(c, k)
    rho = in_g * proximity(errors, z.mask)
    ell_g = loss(logits[:b], z.y) + pad((rho * others).sum(1), (0, b - c))
    ell_f = pad(pull * embedding_loss(errors), (0, b - c))
    if not evened and weights is None:
        return ell_g, ell_f
    weight = torch.ones_like(ell_g) if weights is None else weights.to(ell_g)[z.y]
    return ell_g, ell_f, weight / (1 + pad(rho.sum(1), (0, b - c))) if evened else weight
