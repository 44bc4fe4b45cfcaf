"""The micro-cluster losses ℓ_f and ℓ_g and the weight ρ; pure functions, a value per row.

Written for the weighted losses ℓ′_f, ℓ′_g and ρ′. With w = 1 on every member they are the
unweighted ones, ℓ_f, ℓ_g and ρ, so one implementation serves both.
"""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

__all__ = [
    "Loss",
    "classifier_loss",
    "embedding_loss",
    "entropy",
    "proximity",
    "squared_errors",
    "with_live_self",
]

Loss = Callable[[Tensor, Tensor], Tensor]  # logits (b, n), labels (b,) -> (b,): in place of ℋ


def entropy(
    logits: Tensor,  # (b, n)
    labels: Tensor,  # (b,)
) -> Tensor:  # (b,)
    """ℋ(g(v), y): the cross-entropy of what g makes of v."""
    return cross_entropy(logits, labels, reduction="none")


def with_live_self(
    fx: Tensor,  # (b, d)       f(x), carries the gradient
    v: Tensor,  # (b, K+1, d)  micro-cluster, constant
) -> Tensor:  # (b, K+1, d)
    """The micro-cluster with the live f(x) as its own member, column 0 (R2)."""
    return torch.cat([fx.unsqueeze(1), v[:, 1:]], dim=1)


def squared_errors(
    fx: Tensor,  # (b, d)
    v: Tensor,  # (b, K+1, d)
) -> Tensor:  # (b, K+1)
    """‖f(x) − vᵢ‖²."""
    return (fx.unsqueeze(1) - v).square().sum(-1)


def embedding_loss(
    errors: Tensor,  # (b, K+1)  squared errors
    w: Tensor,  # (b, K+1)  weights, 0 where padded
) -> Tensor:  # (b,)
    """ℓ′_f = Σ wᵢ ‖f(x) − vᵢ‖²; minimal at f(x) = Σ wᵢvᵢ."""
    return (w * errors).sum(1)


def proximity(
    errors: Tensor,  # (b, K+1)  squared errors
    w: Tensor,  # (b, K+1)
    mask: Tensor,  # (b, K+1)  False where padded
) -> Tensor:  # (b, K+1)
    """ρ′ = exp(−wᵢ ‖f(x) − vᵢ‖²) / Z: as printed (R3, R7), without a gradient (R4)."""
    return (-w * errors.detach()).masked_fill(~mask, -torch.inf).softmax(1)


def classifier_loss(
    rho: Tensor,  # (b, K+1)  proximity
    entropies: Tensor,  # (b, K+1)  ℋ(g(vᵢ), y)
) -> Tensor:  # (b,)
    """ℓ′_g = ℋ(g(f(x)), y) + Σ ρ′ᵢ ℋ(g(vᵢ), y), the sum over the neighbours.

    The printed sum gives the original loss the weight ρ′₀, about 1/(k+1), and f learns from
    nothing else in it; the text gives it the weight 1, and so do we (R7).
    """
    return entropies[:, 0] + (rho * entropies)[:, 1:].sum(1)
