"""A training on several processes: the same as on one, whoever has which rows."""

from typing import Any

import pytest
import torch

from deep_oversampling import Peers, fit
from many_processes import on_processes
from toy import blobs, small, weights


def trained(peers: Peers, options: dict[str, Any]) -> tuple[Any, Any, list[str]]:
    network, seen = small(seed=0), []
    samples = blobs((40, 23, 9))
    history = fit(
        network,
        samples,
        rounds=2,
        batch_size=13,
        device="cpu",
        validation=blobs((5, 5, 3), seed=1),
        on_round=lambda one: seen.append(one.task),
        peers=peers,
        **options,
    )
    losses = [(one.classifier_loss, one.embedding_loss) for one in history.rounds]
    return weights(network).numpy(), losses, seen


@pytest.mark.parametrize("size", [2, 4])
def test_as_many_processes_as_you_like_train_the_same_network(size: int) -> None:
    alone, losses, rounds = trained(Peers(), {})
    found = on_processes(size, trained, {})
    for rank, (theirs, own_losses, own_rounds) in enumerate(found):
        assert abs(theirs - found[0][0]).max() == 0  # to the last bit
        torch.testing.assert_close(torch.tensor(theirs), torch.tensor(alone), rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(own_losses, losses, rtol=1e-4, atol=1e-5)
        assert own_rounds == (rounds if rank == 0 else [])
