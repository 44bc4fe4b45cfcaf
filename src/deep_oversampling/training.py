"""Single-task and multi-task training: two objectives, one loop, the only optimizer.step()."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, Protocol

import torch
from torch import Generator, Tensor

from .augmentation import Augmentation
from .errors import TrainingError
from .losses import (
    Loss,
    classifier_loss,
    embedding_loss,
    entropy,
    proximity,
    squared_errors,
    with_live_self,
)
from .network import Network
from .oversampling import MicroClusters
from .pull import limit_pull
from .samples import Samples
from .seeding import isolated

__all__ = [
    "LastGood",
    "Objective",
    "Table",
    "batches",
    "multi_task",
    "single_task",
    "train_round",
]


class Table(Protocol):
    """What a round presents: 𝒳 (Samples) or 𝒵′ (Overloaded); indexing gives a batch."""

    def __len__(self) -> int: ...
    def __getitem__(self, rows: Tensor) -> Any: ...


# -> ℓ_g (b,), λℓ_f (b,) and, if a batch's mean is to be a weighted one, weights (b,)
Objective = Callable[[Network, Any], tuple[Tensor, ...]]


def single_task(network: Network, batch: Samples, *, loss: Loss = entropy) -> tuple[Tensor, Tensor]:
    """ℓ(x, y) = ℋ(g(f(x)), y), and no embedding loss."""
    ell = loss(network(batch.x), batch.y)
    return ell, torch.zeros_like(ell)


def multi_task(pull: float, limit: float | None, *, loss: Loss = entropy) -> Objective:
    """ℓ′_g + λℓ′_f over the micro-clusters; ``pull`` is λ, ``limit`` bounds what it does (R5)."""

    def objective(network: Network, z: MicroClusters) -> tuple[Tensor, Tensor]:
        fx = network.embed(z.x)
        to_g, to_f = (fx, fx) if limit is None else limit_pull(fx, limit)
        errors = squared_errors(to_f, with_live_self(to_f, z.v)) / z.variance
        logits = network.classifier(with_live_self(to_g, z.v).flatten(0, 1))
        labels = z.y.repeat_interleave(z.v.shape[1])
        entropies = loss(logits, labels).view_as(errors)
        ell_g = classifier_loss(proximity(errors, z.w, z.mask), entropies)
        return ell_g, pull * embedding_loss(errors, z.w)

    return objective


def batches(
    size: int, batch_size: int, generator: Generator
) -> tuple[Tensor, Tensor]:  # (steps, b) rows, (steps, b) which of them count
    """Every row once, in random order, in batches of one shape: the last is padded, masked.

    >>> rows, present = batches(5, 2, torch.Generator())
    >>> rows.shape, present.sum().item(), sorted(rows[present].tolist())
    (torch.Size([3, 2]), 5, [0, 1, 2, 3, 4])
    """
    steps = -(-size // batch_size)
    order = torch.randperm(size, generator=generator)
    padded = order.repeat(-(-batch_size // size) + 1)[: steps * batch_size]
    present = torch.arange(steps * batch_size) < size
    return padded.view(steps, batch_size), present.view(steps, batch_size)


def train_round(
    network: Network,
    table: Table,
    objective: Objective,
    optimizer: torch.optim.Optimizer,
    *,
    batch_size: int,
    generator: Generator,
    augment: Augmentation | None = None,
    images_per_row: int = 1,
) -> tuple[float, float]:
    """Present every row of the table once; the means of ℓ_g and λℓ_f over the round.

    With ``augment`` every presentation of a sample is a changed copy of its own.

    A step is a function of parameters, batch and draws alone: shapes are fixed and nothing is
    read back from the device until the round is over. Only then a loss or weight that is not
    finite is found; the error says at which step it began.
    """
    rows, present = (t.to(network.device) for t in batches(len(table), batch_size, generator))
    share = present / present.sum(1, keepdim=True)  # of each row in its batch's mean
    losses = torch.empty(len(rows), 2, device=network.device)
    network.train()
    with isolated(generator):
        draws = augment.draws if augment else 0
        u = torch.rand(len(rows), images_per_row * batch_size, draws, generator=generator)
        u = u.to(network.device)
        for step in range(len(rows)):
            batch = table[rows[step]]
            if augment:
                batch = batch.with_x(augment(batch.x, u[step]))
            optimizer.zero_grad()
            ell_g, ell_f, *weights = objective(network, batch)
            part = share[step]
            if weights:  # the mean of the rows that are no padding, by their weights
                part = part * weights[0] / (part * weights[0]).sum()
            ell = (torch.stack([ell_g, ell_f]) * part).sum(1)
            ell.sum().backward()
            optimizer.step()
            losses[step] = ell.detach()
    network.eval()
    _check_finite(network, losses)
    mean = (losses * (present.sum(1, keepdim=True) / present.sum())).sum(0)
    return float(mean[0]), float(mean[1])


def _check_finite(network: Network, losses: Tensor) -> None:
    bad = ~losses.isfinite().all(1)
    broken = not all(bool(p.isfinite().all()) for p in network.parameters())
    if bool(bad.any()) or broken:
        step = int(bad.long().argmax()) + 1 if bool(bad.any()) else len(losses)
        raise TrainingError(
            f"the loss must stay finite, found NaN or infinity at step {step} of {len(losses)}; "
            "lower the learning rate, the pull λ or its limit"
        )


class LastGood:
    """The weights from before the current round, put back where training goes wrong."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self.keep("before the first round")

    def keep(self, place: str) -> None:
        self._weights, self._place = copy.deepcopy(self._network.state_dict()), place

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, TrainingError):
            self._network.load_state_dict(self._weights)
            raise TrainingError(
                f"{self._place}: {error} (the network has its weights from before that again)"
            ) from None
