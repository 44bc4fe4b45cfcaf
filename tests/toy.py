"""Small data, small networks and a short training, shared by the tests."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from deep_oversampling import History, Network, Plan, Samples, TrainingError, fit, mlp
from deep_oversampling.objectives import Objective
from deep_oversampling.oversampling import Overloaded, oversample
from deep_oversampling.presenting import Table
from deep_oversampling.training import Trainer

COUNTS = (20, 12, 6)  # the third class is a minority by Plan.automatic


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def blobs(counts: Sequence[int] = COUNTS, d: int = 4, *, seed: int = 0) -> Samples:
    """Gaussian classes around means that overlap a little, in shuffled order."""
    draw = generator(seed)
    y = torch.arange(len(counts)).repeat_interleave(torch.tensor(counts))
    y = y[torch.randperm(len(y), generator=draw)]
    means = 2 * torch.randn(len(counts), d, generator=draw)
    return Samples(means[y] + torch.randn(len(y), d, generator=draw), y)


def small(n: int = len(COUNTS), d: int = 4, *, seed: int = 0) -> Network:
    return mlp(d, n, hidden=(8, 5), seed=seed)


def train(network: Network, samples: Samples, plan: Plan | None = None, **options: Any) -> History:
    """``fit`` on the CPU: one round of each task unless told otherwise."""
    return fit(network, samples, plan, **{"rounds": 1, "device": "cpu", **options})


def train_round(
    network: Network,
    table: Table,
    objective: Objective,
    optimizer: Callable[[Iterable[nn.Parameter]], Optimizer],
    **options: Any,
) -> tuple[float, float]:
    """A round of one network, on an optimiser of its own."""
    options = {"generators": [generator()], **options}
    (outcome,) = Trainer([network], optimizer).train_round([table], [objective], **options)
    if isinstance(outcome, TrainingError):
        raise outcome
    return outcome


def overloaded(
    samples: Samples, v: Tensor, k: Sequence[int], r: Sequence[int], *, weighted: bool = True
) -> Overloaded:
    plan = Plan(k=torch.tensor(k), r=torch.tensor(r))
    return oversample(samples, v, plan, generator=generator(), weighted=weighted)


def members_of(z: Overloaded, row: int) -> tuple[list[int], list[float]]:
    """The samples of 𝒩(x) that a row presents, x itself first, and their weights."""
    place = z.crowded.tolist()
    if row not in place:
        return [int(z.anchor[row])], [1.0]
    where = place.index(row)
    hood = int(z.hood[where])
    there = z.neighborhoods.mask[hood]
    return z.kept[z.neighborhoods.index[hood][there]].tolist(), z.w[where][there].tolist()


def weights(module: nn.Module) -> Tensor:
    """All parameters, as one vector."""
    return torch.cat([p.detach().flatten() for p in module.parameters()])
