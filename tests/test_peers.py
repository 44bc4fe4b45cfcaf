"""A training on several processes: the same as on one, whoever has which rows."""

import platform
import resource
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from deep_oversampling import (
    Checkpoints,
    Engine,
    InputError,
    Network,
    Peers,
    Samples,
    Stopped,
    TrainingError,
    fit,
    join_peers,
)
from deep_oversampling import peers as peers_module
from deep_oversampling.embeddings import embed_classes
from deep_oversampling.overloading import in_class_neighbors
from deep_oversampling.training import Trainer
from many_processes import on_processes
from shared_trainings import COUNTS, KINDS, all_kinds, normed
from toy import blobs, generator, small, weights

close = partial(torch.testing.assert_close, rtol=1e-4, atol=1e-5)
same = partial(torch.testing.assert_close, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("size", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_as_many_processes_as_you_like_train_the_same_network(size: int) -> None:
    alone = all_kinds(Peers())
    everyone = on_processes(size, all_kinds)
    for i in range(len(KINDS)):
        state, losses, rounds = alone[i]
        for rank, (theirs, own_losses, own_rounds) in enumerate(one[i] for one in everyone):
            assert (theirs == everyone[0][i][0]).all()  # to the last bit
            same(torch.tensor(theirs), torch.tensor(state), msg=lambda m, i=i: KINDS[i] + m)
            same(own_losses, losses)
            assert own_rounds == (rounds if rank == 0 else [])


def with_own_statistics(peers: Peers) -> Any:
    network = normed()
    fit(network, blobs(COUNTS), rounds=1, device="cpu", peers=peers, sync_batch_norm=False)
    return torch.cat([t.flatten().double() for t in network.state_dict().values()]).numpy()


def found_neighbours(peers: Peers) -> Any:
    """Who they are, and, where many are equally near, how far: any of those will do."""
    draw = generator(3)
    counts = torch.tensor([301, 40, 3, 2, 1])
    y = torch.arange(5).repeat_interleave(counts)
    v = torch.randn(len(y), 6, generator=draw)
    k = torch.tensor([5, 0, 2, 1, 0])
    who = in_class_neighbors(v, y, k, peers=peers).index
    v = v.round()
    near = v[in_class_neighbors(v, y, k, peers=peers).index]
    return torch.cat([who, (near - v.unsqueeze(1)).square().sum(2)], 1).numpy()


def embedded(peers: Peers) -> list[int]:
    """So few that some have none of their own."""
    return peers.gathered(lambda rows: torch.arange(3)[rows], 3).tolist()


def kept(peers: Peers, count: int = 72) -> tuple[Any, float, Any]:
    """Rare samples are where some processes have none; with few samples each has them all."""
    samples = blobs(COUNTS)
    samples = samples.subset(samples.y.argsort(stable=True)[:count])
    found = embed_classes(small(), samples, torch.tensor([False, False, True]), peers=peers)
    return found.v.numpy(), float(found.variance), found.spread


def broken(peers: Peers) -> str:
    """One process alone sees it."""
    network, samples = small(), blobs(COUNTS)
    samples.x[71] = torch.nan
    with pytest.raises(TrainingError) as caught:
        embed_classes(network, samples, torch.tensor([True, False, False]), peers=peers)
    return str(caught.value)


def parts(peers: Peers) -> tuple[Any, Any, list[int], Any]:
    streamed = kept(peers), kept(peers, 3), broken(peers)
    return with_own_statistics(peers), found_neighbours(peers), embedded(peers), streamed


def test_parts_that_are_shared() -> None:
    everyone = on_processes(4, parts)
    own, neighbours, few, streamed = zip(*everyone, strict=True)
    assert all((one == own[0]).all() for one in own)  # still one network
    assert abs(own[0] - with_own_statistics(Peers())).max() > 1e-3  # but another one
    assert all((one == found_neighbours(Peers())).all() for one in neighbours)
    assert few == ([0, 1, 2],) * 4
    for all_, three, said in streamed:
        assert "for sample 71;" in said
        for (v, variance, spread), alone in ((all_, kept(Peers())), (three, kept(Peers(), 3))):
            close(torch.tensor(v), torch.tensor(alone[0]))
            assert variance == pytest.approx(alone[1])
            assert spread.ratio == pytest.approx(alone[2].ratio)
            assert variance == streamed[0][0][1] or len(v) == 0  # the same to the last digit


def held_by_one(peers: Peers, size: int) -> tuple[Any, float]:
    """What the second process alone has, and the memory that each needs for it, in sizes."""
    own = torch.arange(size, dtype=torch.uint8) if peers.rank == 1 else torch.empty(0).byte()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = peers.collected(own, [0, size, 0, 0])
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return (len(found), int(found[-1])), most * 1024 / size


@pytest.mark.skipif(sys.platform != "linux", reason="memory is measured in Linux's way")
def test_what_one_has_takes_no_room_for_what_the_others_have_not() -> None:
    """As v does, where samples are sorted: the rare classes are all in one part."""
    size = 2**25
    for found, most in on_processes(4, held_by_one, size):
        assert found == (size, 255)
        assert most < 2  # all_gather would take nine times the size


def with_weights(peers: Peers) -> Any:
    """A weighted mean of a batch's rows, the last of which is not full."""

    def objective(network: Network, batch: Samples) -> Any:
        ell = network(batch.x).logsumexp(1)
        return ell, torch.zeros_like(ell), 1.0 + batch.y

    network = small()
    trainer = Trainer([network], partial(torch.optim.SGD, lr=0.1), peers=peers)
    trainer.train_round([blobs()], [objective], batch_size=7, generators=[generator()])
    trainer.close()
    return weights(network).numpy()


def refusals(peers: Peers, folder: str) -> list[Any]:
    said: list[Any] = []
    other, seed = blobs(COUNTS, seed=peers.rank), peers.rank

    def refused(network: Network, samples: Samples, place: str = "cpu", **options: Any) -> None:
        with pytest.raises(InputError) as caught:
            fit(network, samples, peers=peers, device=place, **options)
        said.append(str(caught.value))

    refused(small(), blobs(), seed=seed)
    refused(small(), other)
    refused(small(), blobs(), checkpoint=folder if seed else None)
    refused(small(), blobs(), validation=blobs() if seed else None)
    refused(small(), blobs(), batch_size=1)
    refused(small(), blobs(), engine=Engine(compile=True))
    refused(small(), blobs(), place="meta")
    peers_module.platform = SimpleNamespace(python_version_tuple=lambda: ("3", str(seed)))
    refused(small(), blobs())
    peers_module.platform = platform
    said.append(with_weights(peers))
    return said


def test_what_differs_is_named_to_all(tmp_path: Path) -> None:
    for said in on_processes(2, refusals, str(tmp_path)):
        *said, weighted = said
        assert "found that process 1 differs from process 0: seed 1 not 0;" in said[0]
        assert "process 0: samples '" in said[1]
        assert "process 0: kept True not False;" in said[2]
        assert "process 0: validation '" in said[3]
        assert "a batch_size of 1 for 2 processes" in said[4]
        assert "Engine(compile=True)" in said[5]
        assert "found meta; use device='cpu'" in said[6]
        assert "process 1 differs from process 0: Python '3.1' not '3.0';" in said[7]
        close(torch.tensor(weighted), torch.tensor(with_weights(Peers())))
    assert not list(tmp_path.iterdir())


def going_on(peers: Peers, folder: str, stop_at: int | None) -> Any:
    """One process alone wants to stop, and not the one that writes."""
    folder += f"-of-{peers.rank}" if peers.rank else ""  # where nothing is looked for, or written
    network, checkpoints, calls = small(), Checkpoints(folder, minutes=100), []

    def schedule(optimizer: torch.optim.Optimizer) -> Any:
        return torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)

    class Counted(torch.optim.SGD):
        def step(self, closure: Any = None) -> None:  # type: ignore[override]
            super().step(closure)
            calls.append(1)
            if len(calls) == stop_at and peers.rank == peers.size - 1:
                checkpoints.stop()

    options: dict[str, Any] = {"rounds": 2, "batch_size": 9, "device": "cpu", "peers": peers}
    options |= {"optimizer": partial(Counted, lr=0.05, momentum=0.9), "schedule": schedule}
    try:
        fit(network, blobs(COUNTS), checkpoint=checkpoints, **options)
    except Stopped as stopped:
        return str(stopped)
    return weights(network).numpy()


def test_it_goes_on_with_another_number_of_processes(tmp_path: Path) -> None:
    alone = going_on(Peers(), str(tmp_path / "alone"), None)
    folder = str(tmp_path / "shared")
    for said in on_processes(2, going_on, folder, 13):
        assert "stopped after 1 rounds and " in said
    assert "stopped after 2 rounds and " in going_on(Peers(), folder, 9)
    for said in on_processes(4, going_on, folder, 5):
        assert "stopped after 3 rounds and " in said
    for one in on_processes(2, going_on, folder, None):
        close(torch.tensor(one), torch.tensor(alone))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["alone", "shared"]


def leaves_early(peers: Peers) -> str:
    if peers.rank:
        return "gone"
    with pytest.raises(Exception, match="must stay until its end") as caught:
        fit(small(), blobs(), device="cpu", peers=peers)
    return type(caught.value).__name__


def first_fails(peers: Peers) -> Any:
    def fails() -> int:
        raise InputError("there is nothing here")

    with pytest.raises(InputError, match="nothing here"):
        peers.from_first(fails)
    made = peers.after_first(lambda: "first", others=lambda: "another")
    return peers.told, peers.from_first(lambda: peers.rank), made, peers.most(peers.rank)


def in_a_group_of_others(peers: Peers) -> tuple[int, int, bool]:
    """As in a worker of Ray Train, which makes the group itself, and ends it."""
    with join_peers("cpu") as found:
        fit(small(), blobs(), rounds=1, device="cpu", peers=found)
    return found.rank, found.size, peers.most(1) == 1  # who made it can still use it


def test_a_group_that_is_there_is_used_and_left_as_it_is() -> None:
    assert on_processes(2, in_a_group_of_others) == [(0, 2, True), (1, 2, True)]


def test_one_that_is_gone_is_told() -> None:
    assert on_processes(2, leaves_early) == ["PeerLost", "gone"]


def test_what_the_first_says_is_said_to_all() -> None:
    assert on_processes(2, first_fails) == [(True, 0, "first", 1), (True, 0, "another", 1)]


def test_without_a_launcher_it_is_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    with join_peers() as peers:
        assert (peers.rank, peers.size, peers.total) == (0, 1, None)
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(InputError, match="found no RANK and no MASTER_ADDR and no MASTER_PORT"):
        join_peers()
    monkeypatch.setenv("WORLD_SIZE", "two")
    with pytest.raises(InputError, match="WORLD_SIZE in the environment must be a whole number"):
        join_peers()


def test_each_process_takes_a_gpu_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "5")
    assert [peers_module._own_gpu("cuda", there) for there in (1, 4, 8)] == [0, 1, 5]
    monkeypatch.setenv("LOCAL_RANK", "3")
    assert [peers_module._own_gpu("None", there) for there in (1, 4, 8)] == [0, 3, 3]
    with pytest.raises(InputError, match="found 2 and process 4; start fewer"):
        peers_module._own_gpu("cuda", 2)
    with pytest.raises(InputError, match="must be cuda, found 'cuda:1'; leave the number out"):
        peers_module._own_gpu("cuda:1", 8)
    peers_module._check_apart(["a", "b", "c"])
    with pytest.raises(InputError, match="processes 1 and 2 share one"):
        peers_module._check_apart(["a", "b", "b"])
