"""λ without tuning: how strongly ℓ_f may pull on f, next to ℓ_g (R5)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

__all__ = ["limit_pull"]


def limit_pull(
    fx: Tensor,  # (b, d)  f(x)
    limit: float,
    total: Callable[[Tensor], Tensor] | None = None,  # adds up where others have more of the batch
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
    # torch.compile makes wrong gradients of a Function inside vmap, but knows operators
    both = _operator if torch.compiler.is_compiling() else _LimitPull.apply
    given: tuple[Any, ...] = (fx, limit)
    if total is not None:
        both, given = _LimitShared.apply, (fx, limit, total)
    to_g, to_f = both(*given)  # type: ignore[no-untyped-call]
    return to_g, to_f


def _arriving(
    from_g: Tensor,
    from_f: Tensor,
    limit: float,
    total: Callable[[Tensor], Tensor] | None = None,
) -> Tensor:  # (…, b, d)
    """What goes on to the embedder, for every network of a stack by itself."""
    smallest = torch.finfo(from_f.dtype).tiny  # no pull at all: nothing to shorten
    of_g, of_f = _length(from_g), _length(from_f)
    if total:  # of the whole batch
        of_g, of_f = total(torch.stack([of_g, of_f]).square()).sqrt().unbind()
    shorten = limit * of_g / of_f.clamp(min=smallest)
    return torch.addcmul(from_g, shorten.clamp(max=1.0), from_f)


def _length(gradient: Tensor) -> Tensor:  # (…, b, d) -> (…, 1, 1)
    """Its norm: row by row first, as a GPU is slow to sum up thousands of numbers to a few."""
    length: Tensor = gradient.norm(dim=-1, keepdim=True).norm(dim=-2, keepdim=True)
    return length


class _LimitPull(torch.autograd.Function):
    generate_vmap_rule = True  # so that a stack of networks can be trained in one step

    @staticmethod
    def forward(fx: Tensor, limit: float) -> tuple[Tensor, Tensor]:
        return fx.view_as(fx), fx.view_as(fx)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, float], output: Any) -> None:
        ctx.limit = inputs[1]

    @staticmethod
    def backward(ctx: Any, from_g: Tensor, from_f: Tensor) -> tuple[Tensor, None]:
        return _arriving(from_g, from_f, ctx.limit), None


class _LimitShared(torch.autograd.Function):
    """Where others have more of the batch; an argument more costs time, so not for all."""

    @staticmethod
    def forward(ctx: Any, fx: Tensor, limit: float, total: Any) -> tuple[Tensor, Tensor]:
        ctx.limit, ctx.total = limit, total
        return fx.view_as(fx), fx.view_as(fx)

    @staticmethod
    def backward(ctx: Any, from_g: Tensor, from_f: Tensor) -> tuple[Tensor, None, None]:
        return _arriving(from_g, from_f, ctx.limit, ctx.total), None, None


@torch.library.custom_op("deep_oversampling::limit_pull", mutates_args=())
def _operator(fx: Tensor, limit: float) -> tuple[Tensor, Tensor]:
    return fx.clone(), fx.clone()


@_operator.register_fake
def _(fx: Tensor, limit: float) -> tuple[Tensor, Tensor]:
    return torch.empty_like(fx), torch.empty_like(fx)


@_operator.register_vmap
def _(info: Any, in_dims: Any, fx: Tensor, limit: float) -> Any:
    return _operator(fx.movedim(in_dims[0], 0), limit), (0, 0)


_operator.register_autograd(
    lambda ctx, from_g, from_f: (_arriving(from_g, from_f, ctx.limit), None),
    setup_context=_LimitPull.setup_context,
)
