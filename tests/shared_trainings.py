"""Trainings that processes share, one of each kind that shares something else."""

from functools import partial
from typing import Any

import torch
from torch import nn
from torch.optim import Adam

from deep_oversampling import CropAndFlip, EarlyStopping, Engine, Network, Peers, Plan, Samples, fit
from toy import blobs, generator, small

COUNTS = (40, 23, 9)


def normed() -> Network:
    """Batch norm in f and in g, which sees the neighbours too."""
    torch.manual_seed(0)
    f = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 5))
    return Network(f, nn.Sequential(nn.BatchNorm1d(5), nn.Linear(5, 3)))


def images() -> Samples:
    draw = generator()
    flat = blobs(COUNTS)
    return Samples((flat.x[:, :1, None, None] + torch.randn(72, 1, 6, 6, generator=draw)), flat.y)


def convolutional() -> Network:
    torch.manual_seed(0)
    f = nn.Sequential(nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), nn.ReLU(), nn.Flatten())
    return Network(f, nn.Linear(48, 3))


def trained(peers: Peers, kind: str, device: str) -> tuple[Any, Any, list[str]]:
    """Weights and buffers, losses and what was reported."""
    seen: list[str] = []
    options: dict[str, Any] = {"rounds": 2, "batch_size": 13, "device": device}
    # one that is alone on a GPU would record its steps, with more room for neighbours, which batch
    # norm in g sees
    options |= {"engine": Engine(replay=False)}
    network, samples = small(seed=peers.rank), blobs(COUNTS)  # the weights of the first count
    if kind == "batch norm":
        network = normed()
    elif kind in ("pictures", "pieces of them"):
        network, samples = convolutional(), images()
        options |= {"augment": CropAndFlip(1), "pieces": 0.5 if "pieces" in kind else 0.0}
    elif kind == "many neighbours":
        options |= {"plan": Plan(k=torch.tensor([7, 7, 7]), r=torch.tensor([1, 2, 3]))}
        options |= {"optimizer": partial(Adam, lr=1e-3), "pull_limit": None}
    elif kind == "few samples":  # more processes than classes, samples of one, rows with neighbours
        network, samples = normed(), blobs((40, 2, 1))
        options |= {"plan": Plan(k=torch.tensor([0, 1, 0]), r=torch.tensor([1, 1, 2]))}
    elif kind == "stops early":
        options |= {"validation": blobs((5, 5, 3), seed=1), "stop": EarlyStopping(1)}
    history = fit(
        network.double(),  # in which nothing is left of rounding, and equal means equal
        samples,
        on_round=lambda one: seen.append(one.task),
        peers=peers,
        **options,
    )
    losses = [(one.classifier_loss, one.embedding_loss) for one in history.rounds]
    state = torch.cat([t.flatten().double() for t in network.state_dict().values()])
    return state.cpu().numpy(), losses, seen


KINDS = ["plain", "batch norm", "pictures", "pieces of them", "many neighbours", "few samples"]
KINDS += ["stops early"]


def all_kinds(peers: Peers, device: str = "cpu") -> list[tuple[Any, Any, list[str]]]:
    return [trained(peers, kind, device) for kind in KINDS]
