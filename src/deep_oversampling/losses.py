"""The micro-cluster losses ℓ_f and ℓ_g and the weight ρ; pure functions, a value per row.

Written for the weighted losses ℓ′_f, ℓ′_g and ρ′. With w = 1 on every member they are the
unweighted ones, ℓ_f, ℓ_g and ρ, so one implementation serves both. The member x itself is the
live f(x), at distance 0 from itself (R2), so only the neighbours are computed with.
"""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor
from torch.nn.functional import mse_loss

__all__ = [
    "Loss",
    "adjusted",
    "classifier_loss",
    "embedding_loss",
    "entropy",
    "proximity",
    "weighted_errors",
]

Loss = Callable[[Tensor, Tensor], Tensor]  # logits (b, n), labels (b,) -> (b,): in place of ℋ


def entropy(
    logits: Tensor,  # (b, n)
    labels: Tensor,  # (b,)
) -> Tensor:  # (b,)
    """ℋ(g(v), y): the cross-entropy of what g makes of v."""
    # torch's own looks for labels to ignore, which for a stack of networks takes ten kernels more
    return -logits.log_softmax(1).gather(1, labels.unsqueeze(1)).squeeze(1)


def adjusted(
    loss: Loss,
    counts: Tensor,  # (n,)  samples per class
    tau: float,
) -> Loss:
    """A loss of the logits plus τ log π, π the classes' shares of the samples.

    Rare classes must win by a margin in training, and are free of it in use (Menon et al., ICLR
    2021).
    """
    counts = torch.as_tensor(counts).cpu()
    shares = counts.double() / counts.sum()
    offset = tau * shares.clamp(min=torch.finfo(torch.float32).tiny).log()
    return partial(_adjusted, loss=loss, offset=offset)


def _adjusted(logits: Tensor, labels: Tensor, *, loss: Loss, offset: Tensor) -> Tensor:
    return loss(logits + offset.to(logits), labels)


def weighted_errors(
    fx: Tensor,  # (b, d)     f(x), carries the gradient
    v: Tensor,  # (b, K, d)  neighbours, constant
    w: Tensor,  # (b, K)     weights, 0 where padded
) -> Tensor:  # (b, K)
    """wᵢ ‖f(x) − vᵢ‖²."""
    # one kernel for difference and square, and one for their gradient
    return w * mse_loss(fx.unsqueeze(1).expand_as(v), v, reduction="none").sum(-1)


def embedding_loss(
    errors: Tensor,  # (b, K)  weighted
) -> Tensor:  # (b,)
    """ℓ′_f = Σ wᵢ ‖f(x) − vᵢ‖²; minimal at the mean of the neighbours by their weights."""
    return errors.sum(1)


def proximity(
    errors: Tensor,  # (b, K)  weighted
    mask: Tensor,  # (b, K)  False where padded
) -> Tensor:  # (b, K)
    """ρ′ = exp(−wᵢ ‖f(x) − vᵢ‖²) / Z: as printed (R3, R7), without a gradient (R4)."""
    near = errors.detach().neg().exp() * mask
    return near / (1 + near.sum(1, keepdim=True))  # 1 = exp(−w₀ · 0): x itself is part of Z


def classifier_loss(
    own: Tensor,  # (b,)    ℋ(g(f(x)), y)
    rho: Tensor,  # (b, K)  proximity
    entropies: Tensor,  # (b, K)  ℋ(g(vᵢ), y)
) -> Tensor:  # (b,)
    """ℓ′_g = ℋ(g(f(x)), y) + Σ ρ′ᵢ ℋ(g(vᵢ), y), the sum over the neighbours.

    The printed sum gives the original loss the weight ρ′₀, about 1/(k+1), and f learns from
    nothing else in it; the text gives it the weight 1, and so do we (R7).
    """
    return own + (rho * entropies).sum(1)
