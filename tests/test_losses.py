"""ℓ_f, ℓ_g, ρ and their weighted forms: the paper's formulas and what the paper says of them."""

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

import paper_loops as paper
from clusters import FAMILIES, Cluster, make
from deep_oversampling.losses import (
    classifier_loss,
    embedding_loss,
    proximity,
    squared_errors,
    with_self,
)
from toy import generator

N = 3  # classes
close = torch.testing.assert_close


@pytest.fixture(params=FAMILIES)
def cluster(request: pytest.FixtureRequest) -> Cluster:
    return FAMILIES[request.param]


@pytest.fixture(params=["weighted", "unweighted"])
def w(request: pytest.FixtureRequest, cluster: Cluster) -> Tensor:
    return cluster.w if request.param == "weighted" else cluster.mask.double()


def head(d: int) -> Tensor:  # a linear g, (n, d)
    return torch.randn(N, d, dtype=torch.float64, generator=generator(1)) / 10


def fast(cluster: Cluster, fx: Tensor, w: Tensor, *, live: bool) -> tuple[Tensor, Tensor]:
    """ℓ_g and ℓ_f of every row."""
    errors = squared_errors(fx, cluster.v)
    errors = with_self(errors[:, 1:]) if live else errors
    y = torch.arange(len(fx)) % N
    own = torch.cat([(fx if live else cluster.v[:, 0]).unsqueeze(1), cluster.v[:, 1:]], 1)
    labels = y.repeat_interleave(own.shape[1])
    logits = own.flatten(0, 1) @ head(fx.shape[1]).T
    entropies = cross_entropy(logits, labels, reduction="none").view_as(errors)
    rho = proximity(errors, w, cluster.mask)
    return classifier_loss(entropies[:, 0], rho, entropies[:, 1:]), embedding_loss(errors, w)


def slow(cluster: Cluster, fx: Tensor, w: Tensor, *, live: bool) -> tuple[Tensor, Tensor]:
    g = head(fx.shape[1])
    rows = []
    for row in range(len(fx)):
        members = cluster.members(row)
        points = [cluster.v[row, c] for c in members]
        if live:
            points[0] = fx[row]
        each = [float(w[row, c]) for c in members]
        rows.append(paper.losses(fx[row], points, row % N, each, lambda u: g @ u, unit=1.0))
    ell_g, ell_f = zip(*rows, strict=True)
    return torch.stack(ell_g), torch.stack(ell_f)


@pytest.mark.parametrize("live", [True, False], ids=["live self", "stale self"])
def test_losses_and_their_gradients_are_the_papers(cluster: Cluster, w: Tensor, live: bool) -> None:
    fx = cluster.fx.clone().requires_grad_()
    for ours, theirs in zip(
        fast(cluster, fx, w, live=live), slow(cluster, fx, w, live=live), strict=True
    ):
        close(ours, theirs)
        assert ours.requires_grad == theirs.requires_grad
        if ours.requires_grad:  # ℓ_g of a stale self has no gradient
            (ours_grad,) = torch.autograd.grad(ours.sum(), fx, retain_graph=True)
            (theirs_grad,) = torch.autograd.grad(theirs.sum(), fx, retain_graph=True)
            close(ours_grad, theirs_grad)


def test_unweighted_losses_are_the_paper_without_w(cluster: Cluster) -> None:
    ones = cluster.mask.double()
    rho = proximity(cluster.errors, ones, cluster.mask)
    ell_f = embedding_loss(cluster.errors, ones)
    for row in range(len(cluster.fx)):
        errors = [cluster.errors[row, c] for c in cluster.members(row)]
        close(rho[row, : len(errors)], torch.stack(paper.rho(errors)))
        close(ell_f[row], paper.ell_f(errors))


def test_embedding_loss_is_minimal_at_the_weighted_mean(cluster: Cluster) -> None:
    mean = (cluster.w.unsqueeze(2) * cluster.v).sum(1).requires_grad_()
    loss = embedding_loss(squared_errors(mean, cluster.v), cluster.w)
    (gradient,) = torch.autograd.grad(loss.sum(), mean)
    close(gradient, torch.zeros_like(gradient), atol=1e-6 * float(cluster.v.abs().max()), rtol=0)
    elsewhere = embedding_loss(squared_errors(mean + 0.1, cluster.v), cluster.w)
    assert (elsewhere > loss).all()


def test_embedding_loss_with_live_self_is_minimal_at_the_mean_of_the_neighbours() -> None:
    cluster = make()
    others = cluster.w[:, 1:] / cluster.w[:, 1:].sum(1, keepdim=True)
    mean = (others.unsqueeze(2) * cluster.v[:, 1:]).sum(1).requires_grad_()
    loss = embedding_loss(with_self(squared_errors(mean, cluster.v[:, 1:])), cluster.w)
    (gradient,) = torch.autograd.grad(loss.sum(), mean)
    close(gradient, torch.zeros_like(gradient), atol=1e-6, rtol=0)


def test_rho_sums_to_one_and_is_zero_on_padding(cluster: Cluster, w: Tensor) -> None:
    rho = proximity(cluster.errors, w, cluster.mask)
    close(rho.sum(1), torch.ones(len(rho), dtype=torch.float64))
    assert (rho >= 0).all()
    assert (rho[~cluster.mask] == 0).all()


def test_rho_does_not_underflow_far_away() -> None:
    cluster = make(scale=1e4)  # exp(−distance²) is 0 in floating point, and 0/0 is not a number
    rho = proximity(cluster.errors, cluster.mask.double(), cluster.mask)
    close(rho.sum(1), torch.ones(len(rho), dtype=torch.float64))


def test_rho_of_the_live_self_is_the_largest(cluster: Cluster, w: Tensor) -> None:
    errors = with_self(squared_errors(cluster.fx, cluster.v[:, 1:]))
    rho = proximity(errors, w, cluster.mask)
    assert (rho[:, :1] >= rho).all()


def test_rho_is_larger_for_nearer_neighbours(cluster: Cluster) -> None:
    rho = proximity(cluster.errors, cluster.mask.double(), cluster.mask)
    by_distance = cluster.errors.masked_fill(~cluster.mask, torch.inf).argsort(1)
    assert (rho.gather(1, by_distance).diff(dim=1) <= 0).all()


def test_rho_falls_as_its_weight_rises() -> None:
    w = torch.tensor([[0.1, 0.2, 0.7]])
    rho = proximity(torch.full((1, 3), 2.0), w, torch.ones(1, 3, dtype=torch.bool))  # R3
    assert (rho.diff() < 0).all()


def test_rho_carries_no_gradient(cluster: Cluster) -> None:
    fx = cluster.fx.clone().requires_grad_()
    errors = squared_errors(fx, cluster.v)
    assert errors.requires_grad
    assert not proximity(errors, cluster.w, cluster.mask).requires_grad  # R4


def test_what_stands_in_the_padding_does_not_matter() -> None:
    cluster = make(padded=True)
    other = cluster.v.masked_fill(~cluster.mask.unsqueeze(2), 1e3)
    fx = cluster.fx.clone().requires_grad_()
    results = []
    for v in (cluster.v, other):
        errors = squared_errors(fx, v)
        rho, entropies = proximity(errors, cluster.w, cluster.mask), v.sum(2)
        ell_g = classifier_loss(entropies[:, 0], rho, entropies[:, 1:])
        ell_f = embedding_loss(errors, cluster.w)
        results.append((ell_g, ell_f, torch.autograd.grad(ell_f.sum(), fx)[0]))
    for first, second in zip(*results, strict=True):
        close(first, second)


def test_the_live_self_is_at_distance_zero(cluster: Cluster) -> None:
    live = torch.cat([cluster.fx.unsqueeze(1), cluster.v[:, 1:]], 1)
    close(with_self(squared_errors(cluster.fx, cluster.v[:, 1:])), squared_errors(cluster.fx, live))


def test_stale_self_without_neighbours_would_stop_training_f() -> None:
    """Why R2 is read as it is: with k = 0, ℓ_g of a stale self has no gradient at all."""
    cluster = make(k=0)
    fx = cluster.fx.clone().requires_grad_()
    stale, _ = fast(cluster, fx, cluster.w, live=False)
    live, _ = fast(cluster, fx, cluster.w, live=True)
    assert not stale.requires_grad
    assert torch.autograd.grad(live.sum(), fx)[0].norm() > 0


def test_scaling_the_embeddings_changes_squared_errors_by_its_square(cluster: Cluster) -> None:
    close(squared_errors(3 * cluster.fx, 3 * cluster.v), 9 * cluster.errors)
