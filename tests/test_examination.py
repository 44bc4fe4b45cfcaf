"""What is seen in embeddings after a round that has gone wrong."""

from typing import Any

import pytest
import torch
from torch import nn

from deep_oversampling import History, Network, fit
from deep_oversampling.history import Mishap, Round
from deep_oversampling.mishaps import Examination
from toy import blobs, small

OPTIONS: dict[str, Any] = {"rounds": 2, "batch_size": 5, "device": "cpu", "seed": 3}


def test_embeddings_that_are_about_to_collapse() -> None:
    network = Network(nn.Linear(4, 5), nn.Linear(5, 3))
    examine = Examination(network, blobs().x)
    for grown, words in ((3.0, ""), (1e3, "the embedder is collapsing to one point")):
        with torch.no_grad():
            network.embedder.bias.fill_(grown)
        assert words in str(examine(network, 1.0, History()) or "")
        assert bool(examine(network, 1.0, History())) == bool(words)


def test_embeddings_that_explode() -> None:
    network, x = small(), blobs().x
    examine = Examination(network, x)
    assert examine(network, 1.0, History()) is None
    with torch.no_grad():
        network.embedder[-2].weight *= 1e7
    assert "embeddings must not explode, found them" in str(examine(network, 1.0, History()))


def test_embeddings_that_vanish() -> None:
    network, x = small(), blobs().x
    examine = Examination(network, x)
    for shrunk, words in ((0.1, ""), (0.01, "embeddings must not vanish, found them")):
        with torch.no_grad():
            network.embedder[-2].weight *= shrunk
            network.embedder[-2].bias *= shrunk
        assert words in str(examine(network, 1.0, History()) or "")


def with_dead_outputs(network: Network, dead: int) -> Network:
    with torch.no_grad():
        network.embedder[0].bias[:dead] = -1e6
    return network


def of_ten_outputs() -> Network:
    network = Network(nn.Sequential(nn.Linear(4, 10), nn.ReLU()), nn.Linear(10, 3))
    with torch.no_grad():
        network.embedder[0].bias.fill_(10)  # none is dead
    return network


def test_outputs_of_f_that_die_little_by_little() -> None:
    network, history = of_ten_outputs(), History()
    examine = Examination(network, blobs().x)
    for dead in (2, 4):
        assert examine(with_dead_outputs(network, dead), 1.0, history) is None
        assert examine.alive == pytest.approx(1 - dead / 10)
        history.rounds.append(Round("single", 38, 1.0, 0.0, 0.1, alive=1 - (dead - 2) / 10))
    words = "found 50% of them the same for all 38 where it had been 0%: the embedder is dying"
    assert words in str(examine(with_dead_outputs(network, 5), 0.6, history))
    assert examine.alive == pytest.approx(0.6)  # of the last round that was none to be made again
    history.mishaps.append(Mishap(1, "", "", 0.1))
    assert examine(network, 0.6, history) is None  # it has been slowed down already


def test_outputs_may_die_where_the_loss_falls_and_in_the_first_round() -> None:
    network, history = of_ten_outputs(), History()
    examine = Examination(network, blobs().x)
    assert examine(with_dead_outputs(network, 5), 1.0, history) is None
    history.rounds.append(Round("single", 38, 1.0, 0.0, 0.1, alive=1.0))
    assert examine(network, 0.4, history) is None
    assert examine(network, 0.6, history) is not None


def test_an_f_that_begins_with_dead_outputs_is_not_dying() -> None:
    network = with_dead_outputs(of_ten_outputs(), 5)
    history = History([Round("single", 38, 1.0, 0.0, 0.1, alive=0.5)])
    examine = Examination(network, blobs().x)
    assert examine(with_dead_outputs(network, 6), 1.0, history) is None
    assert "where it had been 50%" in str(examine(with_dead_outputs(network, 8), 1.0, history))


def test_rounds_say_which_share_of_outputs_is_alive() -> None:
    history = fit(small(), blobs(), **OPTIONS)
    assert all(one.alive is not None and 0 < one.alive <= 1 for one in history.rounds)
    assert history.rounds[-1].scalars()["alive"] == history.rounds[-1].alive
    assert History.from_dict(history.to_dict()) == history
    unseen = fit(small(), blobs(), recover=False, **OPTIONS)
    assert [one.alive for one in unseen.rounds] == [None] * 4
    assert "alive" not in unseen.rounds[-1].scalars()


def test_batch_norm_has_no_scale_before_its_averages_have_settled() -> None:
    network = Network(nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5)), nn.Linear(5, 3))
    examine = Examination(network, blobs().x)
    with torch.no_grad():
        network.embedder[1].running_var.fill_(1e-12)
    assert examine(network, 1.0, History()) is None


def test_growth_from_nothing_is_no_explosion() -> None:
    network = Network(nn.Linear(4, 5), nn.Linear(5, 3))
    with torch.no_grad():
        for parameter in network.embedder.parameters():
            parameter *= 1e-9
    examine = Examination(network, blobs().x)
    with torch.no_grad():
        network.embedder.weight.fill_(0.5)
    assert examine(network, 1.0, History()) is None
