"""Batch norm that sees the rows of all processes, as it would see them in one.

torch's SyncBatchNorm has kernels for GPUs alone, and equality is tested on CPUs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn.modules.batchnorm import _BatchNorm

from .network import Network
from .peers import Peers

__all__ = ["shared_batch_norm"]


@contextmanager
def shared_batch_norm(network: Network, peers: Peers) -> Iterator[None]:
    """Inside, its batch norm layers normalise with the statistics of the whole batch."""
    layers = [one for one in network.modules() if isinstance(one, _BatchNorm) and peers.total]
    for layer in layers:
        layer.forward = partial(_normalised, layer, peers.total)  # type: ignore
    try:
        yield
    finally:
        for layer in layers:
            del layer.forward


def _normalised(
    layer: _BatchNorm,
    total: Callable[[Tensor], Tensor],
    x: Tensor,  # (b, c, …)
) -> Tensor:
    if not layer.training:
        return type(layer).forward(layer, x)
    axes = [axis for axis in range(x.ndim) if axis != 1]
    shape = [-1 if axis == 1 else 1 for axis in range(x.ndim)]
    n = total(torch.tensor(float(x.numel() // x.shape[1]), device=x.device))
    # the mean before the squares: their difference would lose what is small beside a large mean
    mean = _added_up(x.sum(axes), total) / n
    centred = x - mean.view(shape)
    variance = _added_up(centred.square().sum(axes), total) / n
    _remember(layer, mean.detach(), variance.detach() * n / (n - 1).clamp(min=1))
    found = centred * (variance + layer.eps).rsqrt().view(shape)
    if layer.affine:
        found = found * layer.weight.view(shape) + layer.bias.view(shape)
    return found


def _remember(layer: _BatchNorm, mean: Tensor, variance: Tensor) -> None:
    """The running averages, as torch keeps them."""
    if layer.running_mean is None or layer.running_var is None:
        return
    assert layer.num_batches_tracked is not None
    layer.num_batches_tracked += 1
    share = 1 / layer.num_batches_tracked if layer.momentum is None else layer.momentum
    layer.running_mean.lerp_(mean, float(share))
    layer.running_var.lerp_(variance, float(share))


def _added_up(tensor: Tensor, total: Callable[[Tensor], Tensor]) -> Tensor:
    summed: Tensor = _Total.apply(tensor, total)  # type: ignore[no-untyped-call]
    return summed


class _Total(torch.autograd.Function):
    """A sum over processes; what each of them makes of it comes back to all who added to it."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, total: Callable[[Tensor], Tensor]) -> Tensor:
        ctx.total = total
        return total(tensor.clone())

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return ctx.total(gradient.clone()), None
