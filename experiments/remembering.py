"""A network that remembers the embeddings of its samples as training saw them.

What a step reads and writes has a fixed place and shape, so steps can be recorded: the memory is a
buffer of the network that is changed in place, and a batch holds rows of it instead of vectors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Generator, Tensor

from deep_oversampling import Network, Samples, embed
from deep_oversampling.losses import (
    Loss,
    classifier_loss,
    embedding_loss,
    proximity,
    weighted_errors,
)
from deep_oversampling.moments import total_variance
from deep_oversampling.overloading import Neighborhoods, in_class_neighbors
from deep_oversampling.oversampling import sample_simplex
from deep_oversampling.pull import limit_pull
from deep_oversampling.rivals.tables import class_balanced

Draw = Callable[..., Generator]  # the streams of a round


class Remembering(Network):
    """Keeps an embedding of every sample: as it was in training, when it was last presented."""

    memory: Tensor

    def __init__(self, network: Network, samples: Samples) -> None:
        super().__init__(network.embedder, network.classifier, network.normalize)
        self.register_buffer("memory", embed(network, samples.x).float().clone())


@dataclass(frozen=True, eq=False)
class Recalled:
    """A batch: images, where they are remembered, and their neighbours."""

    x: Tensor  # (b, …)
    y: Tensor  # (b,)
    i: Tensor  # (b,)  rows of the memory
    near: Tensor  # (b, K)  rows of the memory
    w: Tensor  # (b, K)  per unit of the variance, 0 where padded
    mask: Tensor  # (b, K)

    def with_x(self, x: Tensor) -> Recalled:
        return replace(self, x=x)


@dataclass(frozen=True, eq=False)
class RecallTable:
    """What a round presents: m images, drawn equally over the classes, each with neighbours."""

    samples: Samples
    row: Tensor  # (m,)  which image
    hoods: Neighborhoods
    w: Tensor  # (m, K+1)
    pulled: Tensor  # (n,)  whether a class has neighbours

    @classmethod
    def drawn(
        cls, samples: Samples, memory: Tensor, draw: Draw, *, k: int, pulled: Tensor
    ) -> RecallTable:
        y, m = samples.y, len(samples)
        most = (samples.class_counts.cpu() - 1).clamp(min=0)
        hoods = in_class_neighbors(memory, y, torch.minimum(torch.tensor(k), most))
        row = class_balanced(y, m, draw("images")).to(y.device)
        w = sample_simplex(hoods.mask[row], draw("weights")) / total_variance(memory)
        return cls(samples, row, hoods, w, pulled.to(y.device))

    def __len__(self) -> int:
        return len(self.row)

    def __getitem__(self, rows: Tensor) -> Recalled:
        i = self.row[rows]
        y = self.samples.y[i]
        mask = self.hoods.mask[i][..., 1:] & self.pulled[y].unsqueeze(-1)
        near, w = self.hoods.index[i][..., 1:], self.w[rows][..., 1:] * mask
        return Recalled(self.samples.x[i], y, i, near, w, mask)


def recalling(
    network: Remembering,
    z: Recalled,
    *,
    loss: Loss,
    pull: float,  # λ
    limit: float,
    in_g: float,  # times ρ′: 0 leaves the neighbours out of ℓ_g
) -> tuple[Tensor, Tensor]:
    """ℓ′_g and λℓ′_f with neighbours that are remembered; what is presented is remembered next."""
    fx = network.embed(z.x)
    to_g, to_f = limit_pull(fx, limit)
    v = network.memory[z.near]
    b, k, _ = v.shape
    logits = network.classifier(torch.cat([to_g, v.flatten(0, 1)]))
    own, others = loss(logits, torch.cat([z.y, z.y.repeat_interleave(k)])).split([b, b * k])
    errors = weighted_errors(to_f, v, z.w)
    ell_g = classifier_loss(own, in_g * proximity(errors, z.mask), others.view(b, k))
    network.memory.index_copy_(0, z.i, fx.detach().to(network.memory.dtype))
    return ell_g, pull * embedding_loss(errors)
