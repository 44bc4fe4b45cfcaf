"""ℓ_f, ℓ_g, ρ and their weighted forms: the paper's formulas and what the paper says of them."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

import paper_loops as paper
from clusters import FAMILIES, Cluster, make
from deep_oversampling.losses import (
    classifier_loss,
    embedding_loss,
    entropy,
    proximity,
    weighted_errors,
)
from toy import generator

N = 3  # classes
close = torch.testing.assert_close


@pytest.fixture(params=FAMILIES)
def cluster(request: pytest.FixtureRequest) -> Cluster:
    return FAMILIES[request.param]


@pytest.fixture(params=["weighted", "unweighted"])
def either(request: pytest.FixtureRequest, cluster: Cluster) -> Cluster:
    return cluster if request.param == "weighted" else cluster.unweighted()


def head(d: int) -> Tensor:  # a linear g, (n, d)
    return torch.randn(N, d, dtype=torch.float64, generator=generator(1)) / 10


def fast(cluster: Cluster) -> tuple[Tensor, Tensor]:
    """ℓ_g and ℓ_f of every row."""
    b, k, d = cluster.v.shape
    members = torch.cat([cluster.fx.unsqueeze(1), cluster.v], 1)
    labels = (torch.arange(b) % N).repeat_interleave(k + 1)
    entropies = entropy(members.flatten(0, 1) @ head(d).T, labels).view(b, k + 1)
    rho = proximity(cluster.errors, cluster.mask)
    ell_g = classifier_loss(entropies[:, 0], rho, entropies[:, 1:])
    return ell_g, embedding_loss(cluster.errors)


def slow(cluster: Cluster) -> tuple[Tensor, Tensor]:
    g, rows = head(cluster.fx.shape[1]), []
    for row, fx in enumerate(cluster.fx):
        there = cluster.neighbours(row)
        points = [fx, *(cluster.v[row, c] for c in there)]
        weights = [1.0, *(float(cluster.w[row, c]) for c in there)]  # w₀ meets a distance of 0
        rows.append(paper.losses(fx, points, row % N, weights, lambda u: g @ u, unit=1.0))
    ell_g, ell_f = zip(*rows, strict=True)
    return torch.stack(ell_g), torch.stack(ell_f)


def test_losses_and_their_gradients_are_the_papers(either: Cluster) -> None:
    cluster = replace(either, fx=either.fx.clone().requires_grad_())
    for ours, theirs in zip(fast(cluster), slow(cluster), strict=True):
        close(ours, theirs)
        (ours_grad,) = torch.autograd.grad(ours.sum(), cluster.fx, retain_graph=True)
        (theirs_grad,) = torch.autograd.grad(theirs.sum(), cluster.fx, retain_graph=True)
        close(ours_grad, theirs_grad)


def test_unweighted_losses_are_the_paper_without_w(cluster: Cluster) -> None:
    cluster = cluster.unweighted()
    rho, ell_f = proximity(cluster.errors, cluster.mask), embedding_loss(cluster.errors)
    for row in range(len(cluster.fx)):
        errors = [torch.zeros(()).double(), *cluster.errors[row, cluster.neighbours(row)]]
        close(rho[row, : len(errors) - 1], torch.stack(paper.rho(errors))[1:])
        close(ell_f[row], paper.ell_f(errors))


def test_entropy_is_torchs() -> None:
    logits = 50 * torch.randn(20, 7, generator=generator())
    labels = torch.arange(20) % 7
    close(entropy(logits, labels), cross_entropy(logits, labels, reduction="none"))


def test_embedding_loss_is_minimal_at_the_mean_of_the_neighbours() -> None:
    cluster = make()
    shares = cluster.w / cluster.w.sum(1, keepdim=True)
    mean = (shares.unsqueeze(2) * cluster.v).sum(1).requires_grad_()
    loss = embedding_loss(weighted_errors(mean, cluster.v, cluster.w))
    (gradient,) = torch.autograd.grad(loss.sum(), mean)
    close(gradient, torch.zeros_like(gradient), atol=1e-6, rtol=0)
    elsewhere = embedding_loss(weighted_errors(mean + 0.1, cluster.v, cluster.w))
    assert (elsewhere > loss).all()


def with_self(rho: Tensor) -> Tensor:  # (b, K) -> (b, K+1)
    return torch.cat([1 - rho.sum(1, keepdim=True), rho], 1)


def test_rho_leaves_a_share_to_x_itself_and_is_zero_on_padding(either: Cluster) -> None:
    rho = proximity(either.errors, either.mask)
    assert (rho >= 0).all()
    assert (rho.sum(1) < 1).all()
    assert (rho[~either.mask] == 0).all()


def test_rho_does_not_fail_far_away() -> None:
    cluster = make(scale=1e4).unweighted()  # exp(−distance²) is 0 in floating point
    assert torch.equal(proximity(cluster.errors, cluster.mask), torch.zeros(5, 3).double())


def test_rho_of_x_itself_is_the_largest(either: Cluster) -> None:
    rho = with_self(proximity(either.errors, either.mask))
    assert (rho[:, :1] >= rho - 1e-12).all()


def test_rho_is_larger_for_nearer_neighbours(cluster: Cluster) -> None:
    cluster = cluster.unweighted()
    rho = proximity(cluster.errors, cluster.mask)
    by_distance = cluster.errors.masked_fill(~cluster.mask, torch.inf).argsort(1)
    assert (rho.gather(1, by_distance).diff(dim=1) <= 0).all()


def test_rho_falls_as_its_weight_rises() -> None:
    errors = torch.tensor([[0.1, 0.2, 0.7]]) * 2.0
    rho = proximity(errors, torch.ones(1, 3, dtype=torch.bool))  # R3
    assert (rho.diff() < 0).all()


def test_rho_carries_no_gradient(cluster: Cluster) -> None:
    errors = weighted_errors(cluster.fx.clone().requires_grad_(), cluster.v, cluster.w)
    assert errors.requires_grad
    assert not proximity(errors, cluster.mask).requires_grad  # R4


def test_what_stands_in_the_padding_does_not_matter() -> None:
    cluster = make(padded=True)
    cluster = replace(cluster, fx=cluster.fx.clone().requires_grad_())
    other = cluster.v.masked_fill(~cluster.mask.unsqueeze(2), 1e3)
    results = []
    for one in (cluster, replace(cluster, v=other)):
        ell_g, ell_f = fast(one)
        results.append((ell_g, ell_f, torch.autograd.grad(ell_f.sum(), cluster.fx)[0]))
    for first, second in zip(*results, strict=True):
        close(first, second)


def test_scaling_the_embeddings_changes_squared_errors_by_its_square(cluster: Cluster) -> None:
    scaled = weighted_errors(3 * cluster.fx, 3 * cluster.v, cluster.w)
    close(scaled, 9 * cluster.errors)
