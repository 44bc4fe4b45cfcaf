"""The step is a pure function: a stack of networks trained at once does what each does alone."""

from functools import partial

import pytest
import torch
from torch.optim import SGD

from deep_oversampling import Samples, fit
from deep_oversampling.seeding import streams
from stacked import Member, imbalanced
from stacked import train as train_stacked
from toy import weights

MEMBERS = [Member(0, 0.01, "dos", 10.0), Member(1, 0.01, "cnn"), Member(2, 0.03, "ros")]
SETTINGS = {"rounds": 2, "batch_size": 32}


def pool() -> Samples:
    noise = torch.randint(0, 128, (400, 1, 28, 28), generator=streams(0)("images"))
    y = torch.arange(400) % 10
    return Samples((noise + 12 * y.view(-1, 1, 1, 1)).to(torch.uint8), y)


@pytest.mark.parametrize("limit", [None, 0.3])
def test_members_of_a_stack_end_where_they_end_alone(limit: float | None) -> None:
    samples = pool()
    networks, _ = train_stacked(samples, MEMBERS, p=0.8, limit=limit, **SETTINGS)
    for member, together in zip(MEMBERS, networks, strict=True):
        subset, plan, _, alone = imbalanced(samples, member, 0.8)
        start = weights(alone).clone()
        sgd = partial(SGD, lr=member.lr, momentum=0.9)
        options = {"pull": member.pull, "pull_limit": limit, "optimizer": sgd, "device": "cpu"}
        fit(alone, subset, plan, seed=member.seed, **SETTINGS, **options)
        apart, way = weights(together) - weights(alone), weights(alone) - start
        assert apart.norm() < 1e-3 * way.norm()  # float32 sums in another order, over two rounds
