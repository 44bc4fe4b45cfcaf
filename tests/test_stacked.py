"""The step is a pure function: a stack of networks trained at once does what each does alone."""

import pytest
import torch

from deep_oversampling import Samples
from deep_oversampling.seeding import streams
from stacked import Member, imbalanced, train, train_alone
from toy import weights

MEMBERS = [Member(0, 0.01, "dos", 10.0), Member(1, 0.01, "cnn"), Member(2, 0.03, "ros")]
SETTINGS = {"p": 0.8, "rounds": 2, "batch_size": 32}


def pool() -> Samples:
    noise = torch.randint(0, 128, (400, 1, 28, 28), generator=streams(0)("images"))
    y = torch.arange(400) % 10
    return Samples((noise + 12 * y.view(-1, 1, 1, 1)).to(torch.uint8), y)


@pytest.mark.parametrize("limit", [None, 0.3])
def test_members_of_a_stack_end_where_they_end_alone(limit: float | None) -> None:
    samples = pool()
    (stacked, minorities), (alone, others) = (
        function(samples, MEMBERS, limit=limit, **SETTINGS) for function in (train, train_alone)
    )
    assert minorities == others
    for member, one, other in zip(MEMBERS, stacked, alone, strict=True):
        start = weights(imbalanced(samples, member, SETTINGS["p"])[-1])
        apart, way = weights(one) - weights(other), weights(other) - start
        assert apart.norm() < 1e-3 * way.norm()  # float32 sums in another order, over four rounds
