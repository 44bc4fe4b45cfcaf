"""ℓ_f that compares: near the own hull, and far from those of the other classes.

The paper's ℓ_f only pulls, which a network with batch norm can satisfy by shrinking its embeddings.
This one is a softmax over hulls, one for every class however many samples it has, so that only
directions count. Neighbours and their weights are DOS's; the balanced denominator is that of Zhu et
al., Balanced Contrastive Learning, CVPR 2022.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize, one_hot

from deep_oversampling import Network, Samples
from deep_oversampling.losses import Loss
from deep_oversampling.seeding import isolated, streams
from partners import by_class
from remembering import Recalled, Remembering


class Comparing(Remembering):
    """Compares behind a small network of its own, so that f need not forget what g does not ask."""

    def __init__(self, network: Network, samples: Samples) -> None:
        super().__init__(network, samples)
        d = self.memory.shape[1]
        with isolated(streams(0)("projection")):
            self.projection = nn.Sequential(nn.Linear(d, d), nn.ReLU(), nn.Linear(d, d))
        self.projection.to(self.memory.device)


def comparing(
    network: Comparing,
    z: Recalled,
    *,
    loss: Loss,
    weights: Tensor | None,  # (n,)
    n: int,
    pull: float,  # λ
    temperature: float,
) -> tuple[Tensor, Tensor]:
    """ℓ of the images, as the partner has it, and beside it the comparison."""
    fx = network.embed(z.x)
    own = by_class(loss(network.classifier(fx), z.y), z.y, weights)
    w = z.w / z.w.sum(1, keepdim=True).clamp(min=1e-12)
    hull = (w.unsqueeze(2) * network.memory[z.near]).sum(1)
    points = torch.cat([fx, hull, z.points.among(network.memory)])
    unit = normalize(network.projection(points).float(), dim=1)
    image, target, others = unit.split(len(fx))
    near = (image * target).sum(1) / temperature
    each = _mean_of_classes((image @ others.T / temperature).exp(), z.points.label, n)
    strangers = (each * (1 - one_hot(z.y, n))).sum(1)
    ell_f = (near.exp() + strangers).log() - near
    now = fx.detach().to(network.memory.dtype)
    network.memory.index_copy_(0, z.i, now)
    return own, pull * ell_f * z.mask.any(1)


def _mean_of_classes(values: Tensor, label: Tensor, n: int) -> Tensor:  # (b, p), (p,) -> (b, n)
    """Of the columns of each class; 0 where it has none."""
    members = one_hot(label, n).to(values)
    return values @ members / members.sum(0).clamp(min=1)
