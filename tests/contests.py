"""A small contest, and a method trained in it with everything that it presents written down."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor
from torch.optim import SGD

from deep_oversampling import History, Network, Plan, Samples, lenet
from deep_oversampling.rivals import Contest, Method
from deep_oversampling.seeding import streams
from deep_oversampling.stages import Stage, train_stages
from toy import blobs, generator, small, weights

ROUNDS, BATCH = 2, 10
VECTORS = blobs((24, 14, 5))


def contest(samples: Samples = VECTORS, plan: Plan | None = None, seed: int = 0) -> Contest:
    plan = plan or Plan.automatic(samples.class_counts, k=3)
    return Contest(samples, plan.fitted_to(samples.class_counts), ROUNDS, ROUNDS, streams(seed))


def pictures(counts: tuple[int, ...] = (12, 8, 4)) -> Samples:
    """uint8, 1 × 8 × 8, each class of another brightness."""
    y = torch.arange(len(counts)).repeat_interleave(torch.tensor(counts))
    noise = torch.randint(60, (len(y), 1, 8, 8), generator=generator())
    return Samples((noise + 60 * y.view(-1, 1, 1, 1)).to(torch.uint8), y)


def small_lenet(seed: int = 0) -> Network:
    """With units enough that some stay alive: cosines of a single one are all the same."""
    return lenet((1, 8, 8), 3, "C2-C3-F16", seed=seed)


@dataclass
class Trained:
    network: Network
    history: History
    stages: list[Stage]
    before: list[Tensor]  # the weights that each stage starts from, and the last

    @property
    def weights(self) -> Tensor:
        return self.before[-1]


def trained(method: Method, of: Contest, network: Network | None = None, seed: int = 0) -> Trained:
    network = network or small(of.samples.n)
    network = method.training.prepare(network) if method.training.prepare else network
    seen: list[Stage] = []
    before: list[Tensor] = []

    def watched() -> Iterator[Stage]:
        for stage in method.training.stages(network, of):
            seen.append(stage)
            before.append(weights(network))
            yield stage

    history = train_stages(
        network,
        watched(),
        batch_size=BATCH,
        rng=streams(seed),
        optimizer=partial(SGD, lr=0.01, momentum=0.9),
    )
    return Trained(network, history, seen, [*before, weights(network)])
