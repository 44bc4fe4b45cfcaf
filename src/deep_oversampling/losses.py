"""The micro-cluster losses ℓ_f and ℓ_g and the weight ρ; pure functions, a value per row.

Written for the weighted losses ℓ′_f, ℓ′_g and ρ′. With w = 1 on every member they are the
unweighted ones, ℓ_f, ℓ_g and ρ, so one implementation serves both.
"""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, mse_loss, pad

__all__ = [
    "Loss",
    "classifier_loss",
    "embedding_loss",
    "entropy",
    "proximity",
    "squared_errors",
    "with_self",
]

Loss = Callable[[Tensor, Tensor], Tensor]  # logits (b, n), labels (b,) -> (b,): in place of ℋ


def entropy(
    logits: Tensor,  # (b, n)
    labels: Tensor,  # (b,)
) -> Tensor:  # (b,)
    """ℋ(g(v), y): the cross-entropy of what g makes of v."""
    return cross_entropy(logits, labels, reduction="none")


def squared_errors(
    fx: Tensor,  # (b, d)     f(x), carries the gradient
    v: Tensor,  # (b, K, d)  neighbours, constant
) -> Tensor:  # (b, K)
    """‖f(x) − vᵢ‖²."""
    # one kernel for difference and square, and one for their gradient
    return mse_loss(fx.unsqueeze(1).expand_as(v), v, reduction="none").sum(-1)


def with_self(
    errors: Tensor,  # (b, K)    squared errors of the neighbours
) -> Tensor:  # (b, K+1)
    """The errors with that of x itself, column 0: the member is the live f(x), so it is 0 (R2)."""
    return pad(errors, (1, 0))


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
    own: Tensor,  # (b,)      ℋ(g(f(x)), y)
    rho: Tensor,  # (b, K+1)  proximity
    entropies: Tensor,  # (b, K)    ℋ(g(vᵢ), y) of the neighbours
) -> Tensor:  # (b,)
    """ℓ′_g = ℋ(g(f(x)), y) + Σ ρ′ᵢ ℋ(g(vᵢ), y), the sum over the neighbours.

    The printed sum gives the original loss the weight ρ′₀, about 1/(k+1), and f learns from
    nothing else in it; the text gives it the weight 1, and so do we (R7).
    """
    return own + (rho[:, 1:] * entropies).sum(1)
