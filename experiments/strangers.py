"""Does the rule for λ (R5) hold for networks and optimisers that it was not made for?

    python experiments/strangers.py OUT.jsonl [--seeds 3] [--processes 2]

Imbalanced digits (four classes lose 90 %), 15 + 15 rounds: convolutions with and without batch
norm, an MLP with batch norm and dropout, a GRU that reads the rows, embeddings 100 times larger
and smaller; SGD and Adam, each at a usual and at a large step. CNN, random over-sampling, DOS
with λ = 10 alone and DOS with the limit. Nothing is chosen here.
"""

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.optim import SGD, Adam

from deep_oversampling import DOSError, Network, Normalize, Plan, fit, lenet, mlp
from deep_oversampling.data import load
from deep_oversampling.data.imbalance import drop_from_classes
from deep_oversampling.seeding import isolated, streams
from pull_rule import evaluate
from recording import recorded


class Scaled(nn.Module):
    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor

    def forward(self, v: Tensor) -> Tensor:
        return self.factor * v


class Rows(nn.Module):
    """A GRU that reads an image row by row; its last state is the embedding."""

    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(8, 64, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.gru(x.squeeze(1))[1].squeeze(0)


def normed_cnn(channels: int = 1, pixels: int = 8) -> Network:
    layers = [nn.Conv2d(channels, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU()]
    layers += [nn.MaxPool2d(2), nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU()]
    layers += [nn.MaxPool2d(2), nn.Flatten(), nn.Linear(2 * pixels**2, 64)]
    layers += [nn.BatchNorm1d(64), nn.ReLU()]
    return Network(nn.Sequential(*layers), nn.Linear(64, 10))


def normed_mlp() -> Network:
    layers = [nn.Flatten(), nn.Linear(64, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Dropout(0.3)]
    layers += [nn.Linear(128, 64), nn.BatchNorm1d(64), nn.ReLU()]
    return Network(nn.Sequential(*layers), nn.Linear(64, 10))


def scaled_mlp(factor: float) -> Network:
    network = mlp(64, 10)
    return Network(nn.Sequential(network.embedder, Scaled(factor)), network.classifier)


NETWORKS: dict[str, Callable[[], Network]] = {
    "lenet": partial(lenet, (1, 8, 8)),
    "cnn, batch norm": normed_cnn,
    "mlp, batch norm, dropout": normed_mlp,
    "gru": lambda: Network(Rows(), nn.Linear(64, 10)),
    "mlp, embeddings × 100": partial(scaled_mlp, 100.0),
    "mlp, embeddings × 0.01": partial(scaled_mlp, 0.01),
}
OPTIMIZERS = {
    "sgd 0.01": partial(SGD, lr=0.01, momentum=0.9),
    "sgd 0.1": partial(SGD, lr=0.1, momentum=0.9),
    "adam 0.001": partial(Adam, lr=0.001),
    "adam 0.01": partial(Adam, lr=0.01),
}
RULES = {
    "cnn": {},
    "ros": {},
    "dos λ=10": {"pull_limit": None},
    "dos limited": {},
}


def trial(job: tuple[str, str, str, int]) -> dict[str, object]:
    name, optimizer, rule, seed = job
    torch.set_num_threads(1)
    rng = streams(seed)
    digits = load("digits").train
    order = torch.randperm(len(digits), generator=rng("strangers"))
    pool, held_out = digits[order[:900]], digits[order[900:]]
    kept, minority = drop_from_classes(pool, 0.9, generator=rng("imbalance"))
    samples = pool[kept]
    plan = Plan.for_minority(samples.class_counts, minority)
    plan = {"cnn": Plan.plain(10), "ros": plan.without_neighbours()}.get(rule, plan)
    with isolated(rng("network")):
        network = NETWORKS[name]()
    network.normalize = Normalize.of(samples.x)
    line = {"network": name, "optimizer": optimizer, "rule": rule, "seed": seed}
    try:
        settings = {"rounds": 15, "seed": seed, "optimizer": OPTIMIZERS[optimizer]}
        fit(network, samples, plan, **settings, **RULES[rule])
    except DOSError as error:
        line |= {"error": str(error)}  # judged with the weights it is left with
    return line | evaluate(network, minority, held_out.to(network.device))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    jobs = [
        (network, optimizer, rule, seed)
        for network in NETWORKS
        for optimizer in OPTIMIZERS
        for rule in RULES
        for seed in range(options.seeds)
    ]
    list(recorded(trial, jobs, options.out, options.processes, judged_on="held-out digits"))


if __name__ == "__main__":
    main()
