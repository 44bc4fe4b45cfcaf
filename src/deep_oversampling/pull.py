"""λ without tuning: how strongly ℓ_f may pull on f, next to ℓ_g (R5)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

__all__ = ["limit_pull"]


def limit_pull(
    fx: Tensor,  # (b, d)  f(x)
    limit: float,
) -> tuple[Tensor, Tensor]:  # two times (b, d)
    """f(x) twice, for ℓ_g and for ℓ_f, such that the pull of ℓ_f stays within ``limit``.

    Forward, both are f(x). Backward, the gradient that arrives from ℓ_f is shortened, where
    it must be, to ``limit`` times the length of the one from ℓ_g; its direction is kept. What
    reaches the embedder is then at most (1 + limit) times what plain training sends, whatever
    the scale of the embeddings and the learning rate.

    >>> fx = torch.ones(1, 2, requires_grad=True)
    >>> to_g, to_f = limit_pull(fx, limit=1.0)
    >>> (3 * to_g[0, 0] + 4000 * to_f[0, 1]).backward()
    >>> fx.grad
    tensor([[3., 3.]])
    """
    to_g, to_f = _LimitPull.apply(fx, limit)  # type: ignore[no-untyped-call]
    return to_g, to_f


class _LimitPull(torch.autograd.Function):
    generate_vmap_rule = True  # so that a stack of networks can be trained in one step

    @staticmethod
    def forward(fx: Tensor, limit: float) -> tuple[Tensor, Tensor]:
        return fx.clone(), fx.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, float], output: Any) -> None:
        ctx.limit = inputs[1]

    @staticmethod
    def backward(ctx: Any, from_g: Tensor, from_f: Tensor) -> tuple[Tensor, None]:
        smallest = torch.finfo(from_f.dtype).tiny  # no pull at all: nothing to shorten
        shorten = ctx.limit * from_g.norm() / from_f.norm().clamp(min=smallest)
        return from_g + shorten.clamp(max=1.0) * from_f, None
