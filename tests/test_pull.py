"""The limit on the pull, for one network and for a stack, as a function and as an operator."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from deep_oversampling.pull import _LimitPull, _operator, limit_pull
from toy import generator

LIMIT = 0.3
Both = Callable[[Tensor, float], tuple[Tensor, Tensor]]


def slopes(e: int, b: int, d: int) -> tuple[Tensor, Tensor]:
    """What arrives from ℓ_g and from ℓ_f; in the last network it is within the limit."""
    from_g, from_f = torch.randn(2, e, b, d, generator=generator()).unbind()
    from_f[-1] *= 0.01
    return from_g, 5 * from_f


def by_hand(from_g: Tensor, from_f: Tensor) -> Tensor:  # (b, d)
    most = LIMIT * from_g.square().sum().sqrt()
    length = from_f.square().sum().sqrt()
    return from_g + from_f * min(1.0, float(most / length))


def arrived(both: Callable[..., tuple[Tensor, ...]], fx: Tensor, g: Tensor, f: Tensor) -> Tensor:
    fx = fx.clone().requires_grad_()
    to_g, to_f = both(fx, LIMIT)
    (found,) = torch.autograd.grad((to_g * g).sum() + (to_f * f).sum(), fx)
    return found


@pytest.mark.parametrize("both", [limit_pull, _LimitPull.apply, _operator], ids=["", "F", "op"])
def test_each_network_has_a_limit_of_its_own(both: Both) -> None:
    fx = torch.zeros(3, 4, 5)
    from_g, from_f = slopes(3, 4, 5)
    expected = torch.stack([by_hand(g, f) for g, f in zip(from_g, from_f, strict=True)])
    for i in range(3):
        torch.testing.assert_close(arrived(both, fx[i], from_g[i], from_f[i]), expected[i])
    stacked = torch.func.vmap(both, in_dims=(0, None))
    torch.testing.assert_close(arrived(stacked, fx, from_g, from_f), expected)
    turned = torch.func.vmap(both, in_dims=(1, None))
    found = arrived(turned, fx.movedim(0, 1), from_g, from_f)
    torch.testing.assert_close(found.movedim(1, 0), expected)


@pytest.mark.parametrize("both", [limit_pull, _operator], ids=["", "op"])
def test_forward_both_are_the_embedding(both: Both) -> None:
    fx = torch.randn(3, 4, 5, generator=generator())
    assert all(torch.equal(one, fx[0]) for one in both(fx[0], LIMIT))
    found = torch.func.vmap(lambda x: both(x, LIMIT), in_dims=2)(fx)
    assert all(torch.equal(one, fx.movedim(2, 0)) for one in found)


def test_no_pull_is_no_division_by_nothing() -> None:
    from_g = torch.ones(2, 3)
    found = arrived(limit_pull, torch.zeros(2, 3), from_g, torch.zeros(2, 3))
    assert torch.equal(found, from_g)
