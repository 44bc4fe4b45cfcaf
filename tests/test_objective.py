"""The multi-task objective as a whole: ℓ′_g + λℓ′_f on a network, and the limit of its pull."""

import dataclasses
from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

import paper_loops as paper
from deep_oversampling import Network, Samples, embed
from deep_oversampling.objectives import Objective, multi_task, single_task
from deep_oversampling.oversampling import MicroClusters, Overloaded
from strategies import Problem, problems
from toy import blobs, generator, members_of, overloaded, small

close = torch.testing.assert_close
PULL = 7.0
PLANS = {  # k, r
    "class-wise k, padded": ([0, 2, 3], [1, 1, 2]),
    "the same k, no padding": ([2, 2, 2], [1, 1, 1]),
    "no neighbours": ([0, 0, 0], [1, 1, 3]),
}


SAMPLES = blobs((7, 5, 4))


def stale() -> Tensor:
    """v of all samples as it is after some steps."""
    noise = 0.1 * torch.randn(16, 5, generator=generator()).double()
    return embed(small().double(), SAMPLES.x) + noise


def in_double(plan: str, *, weighted: bool = True) -> tuple[Network, Overloaded]:
    """A small network and 𝒵′ of one round, all float64."""
    z = overloaded(SAMPLES, stale(), *PLANS[plan], weighted=weighted)
    return small().double(), replace(z, w=z.w.double())


def everything(z: Overloaded) -> MicroClusters:
    return z[torch.arange(len(z))]


def instances(z: Overloaded) -> list[paper.Instance]:
    return [paper.Instance(i, *members_of(z, row)) for row, i in enumerate(z.anchor.tolist())]


def in_loops(
    network: Network,
    z: Overloaded,
    fx: Sequence[Tensor],
    v: Tensor,  # of all samples
) -> tuple[Tensor, Tensor]:
    return paper.objective(
        fx,
        g=lambda v: network.classifier(v.unsqueeze(0))[0],
        y=z.samples.y,
        v=v,
        instances=instances(z),
    )


@pytest.mark.parametrize("weighted", [True, False], ids=["weighted", "unweighted"])
@pytest.mark.parametrize("plan", PLANS)
def test_objective_and_its_gradient_are_the_papers(plan: str, weighted: bool) -> None:
    network, z = in_double(plan, weighted=weighted)
    ell_g, ell_f = (ell.mean() for ell in multi_task(PULL, None)(network, everything(z)))
    fx = [network.embed(z.samples.x[i : i + 1])[0] for i in z.anchor.tolist()]
    loop_g, loop_f = in_loops(network, z, fx, stale())
    close(ell_g, loop_g)
    close(ell_f, PULL * loop_f)
    parameters = list(network.parameters())
    ours = torch.autograd.grad(ell_g + ell_f, parameters)
    theirs = torch.autograd.grad(loop_g + PULL * loop_f, parameters)
    for one, other in zip(ours, theirs, strict=True):
        close(one, other)


@settings(max_examples=15)
@given(problems(largest=4), st.booleans())
def test_objective_is_the_papers_on_random_problems(problem: Problem, weighted: bool) -> None:
    v, d = problem.v.double(), problem.v.shape[1]
    network = Network(nn.Linear(d, d), nn.Linear(d, len(problem.counts))).double()
    z = overloaded(problem.samples, v, problem.k, problem.r, weighted=weighted)
    ours = [ell.mean() for ell in multi_task(1.0, None)(network, everything(z))]
    theirs = in_loops(network, z, network.embed(z.samples.x[z.anchor]), v)
    for one, other in zip(ours, theirs, strict=True):
        close(one, other)


class Points(nn.Module):
    """An embedder that is its own output: its gradient is what arrives at f(x)."""

    def __init__(self, fx: Tensor) -> None:
        super().__init__()
        self.fx = nn.Parameter(fx.clone())

    def forward(self, x: Tensor) -> Tensor:
        return self.fx.clone()


def with_points(plan: str = "class-wise k, padded") -> tuple[Network, Overloaded]:
    network, z = in_double(plan)
    fx = embed(network, z.samples.x)[z.anchor]
    return Network(Points(fx), network.classifier), z


def arriving(network: Network, z: MicroClusters, objective: Objective) -> Tensor:
    """The gradient at f(x) of the mean objective."""
    ell_g, ell_f = objective(network, z)
    return torch.autograd.grad((ell_g + ell_f).mean(), network.embedder.fx)[0]


@pytest.mark.parametrize("limit", [0.0, 0.01, 0.3, 1.0, 1e3])
def test_limited_pull_is_the_formula_by_hand(limit: float) -> None:
    network, z = with_points()
    rows = everything(z)
    ell_g, ell_f = in_loops(network, z, network.embedder.fx, stale())
    (from_g,) = torch.autograd.grad(ell_g, network.embedder.fx, retain_graph=True)
    (from_f,) = torch.autograd.grad(PULL * ell_f, network.embedder.fx)
    by_hand = from_g + min(1.0, float(limit * from_g.norm() / from_f.norm())) * from_f
    close(arriving(network, rows, multi_task(PULL, limit)), by_hand)


def test_limit_changes_the_gradient_but_not_the_losses() -> None:
    network, z = with_points()
    rows = everything(z)
    for free, limited in zip(
        multi_task(PULL, None)(network, rows), multi_task(PULL, 0.1)(network, rows), strict=True
    ):
        close(free, limited)
    free = arriving(network, rows, multi_task(PULL, None))
    limited = arriving(network, rows, multi_task(PULL, 0.1))
    plain = arriving(network, rows, multi_task(0.0, None))
    assert not torch.allclose(free, limited)
    close((limited - plain).norm(), 0.1 * plain.norm())


def test_limit_leaves_the_classifier_alone() -> None:
    network, z = with_points()
    found = []
    for limit in (None, 0.1):
        ell = torch.stack(multi_task(PULL, limit)(network, everything(z))).sum()
        found.append(torch.autograd.grad(ell, network.classifier.weight)[0])
    close(*found)


def test_without_pull_the_limit_does_nothing() -> None:
    network, z = with_points()
    rows = everything(z)
    free = arriving(network, rows, multi_task(0.0, None))
    close(arriving(network, rows, multi_task(0.0, 0.3)), free)


@pytest.mark.parametrize("limit", [None, 0.3])
def test_scaling_the_embeddings_changes_nothing_but_the_unit(limit: float | None) -> None:
    """f → c·f and g → g(·/c): the same losses, and the gradient at f(x) in the new unit."""
    c = 50.0
    network, z = with_points()
    scaled = Network(Points(c * network.embedder.fx.detach()), nn.Linear(5, 3).double())
    with torch.no_grad():
        scaled.classifier.weight.copy_(network.classifier.weight / c)
        scaled.classifier.bias.copy_(network.classifier.bias)
    rows, objective = everything(z), multi_task(PULL, limit)
    rows_scaled = replace(rows, v=c * rows.v, w=rows.w / c**2)
    for one, other in zip(objective(network, rows), objective(scaled, rows_scaled), strict=True):
        close(one, other)
    close(arriving(network, rows, objective), c * arriving(scaled, rows_scaled, objective))


def test_no_neighbours_is_single_task() -> None:
    network, z = in_double("no neighbours")
    ell_g, ell_f = multi_task(PULL, 0.3)(network, everything(z))
    plain, nothing = single_task(network, Samples(z.samples.x, z.samples.y)[z.anchor])
    close(ell_g, plain)
    assert torch.equal(ell_f, nothing.double())


class _Step(nn.Module):
    """The objective as a module, so that ``functional_call`` can give it other parameters."""

    def __init__(self, network: Network, limit: float | None) -> None:
        super().__init__()
        self.network, self.objective = network, multi_task(PULL, limit)

    def forward(self, *z: Tensor) -> Tensor:
        return torch.stack(self.objective(self.network, MicroClusters(*z))).mean(1).sum()


@pytest.mark.parametrize("limit", [None, 0.3])
def test_step_is_stackable(limit: float | None) -> None:
    """vmap(grad) over two networks with a batch each is each network alone."""
    _, z = in_double("class-wise k, padded")
    networks = [small(seed=seed).double() for seed in (1, 2)]
    names = [field.name for field in dataclasses.fields(MicroClusters)]
    fields = [
        tuple(getattr(z[rows], name) for name in names) for rows in torch.arange(len(z)).view(2, -1)
    ]
    step = _Step(networks[0], limit)

    def loss(parameters: dict[str, Tensor], batch: tuple[Tensor, ...]) -> Tensor:
        return functional_call(step, parameters, batch)

    named = [
        {f"network.{name}": p.detach() for name, p in network.named_parameters()}
        for network in networks
    ]
    together = vmap(grad(loss))(
        {name: torch.stack([each[name] for each in named]) for name in named[0]},
        tuple(map(torch.stack, zip(*fields, strict=True))),
    )
    for e, (network, batch) in enumerate(zip(networks, fields, strict=True)):
        alone = torch.autograd.grad(_Step(network, limit)(*batch), list(network.parameters()))
        for (name, _), gradient in zip(network.named_parameters(), alone, strict=True):
            close(together[f"network.{name}"][e], gradient)
