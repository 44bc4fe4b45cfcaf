"""Samples on disk: read by threads and ahead of use, in the order in which memory gives them."""

import threading
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from deep_oversampling import Plan, Samples, View, fit_many, resnet32, views
from deep_oversampling import presenting as room
from deep_oversampling.data import load
from deep_oversampling.presenting import Presentation
from toy import blobs, generator, small, train, weights

CPU = torch.device("cpu")
STORED = torch.randn(3000, 4, 2, generator=generator())


@pytest.fixture(autouse=True)
def _threads_for_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views, "_FEW", 100)


def on_disk(stored: Tensor, **options: Tensor) -> View:
    return View(stored, torch.arange(len(stored)), on_disk=True, **options)


@pytest.mark.parametrize("count", [0, 1, 15, 16, 17, 1000, 2999])
@pytest.mark.parametrize("stored", [STORED, STORED.transpose(1, 2)], ids=["rows", "transposed"])
def test_threads_read_what_indexing_gives(stored: Tensor, count: int) -> None:
    rows = torch.randint(3000, (count,), generator=generator())
    assert torch.equal(on_disk(stored)[rows], stored[rows])


def test_batches_of_rows_and_changes_are_read_alike() -> None:
    u = torch.rand(3000, 1, generator=generator())
    view = View(STORED, torch.arange(3000), lambda x, u: x * u.unsqueeze(1), u, on_disk=True)
    rows = torch.randint(3000, (5, 40), generator=generator())
    assert torch.equal(view[rows], (STORED * u.unsqueeze(1))[rows])


def test_what_is_picked_stays_on_disk_and_what_is_moved_does_not() -> None:
    view = on_disk(STORED)
    assert view.select(torch.tensor([3, 4])).on_disk
    assert not view.to("meta").on_disk


def test_too_much_for_a_gpu_stays_on_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    view = on_disk(STORED)
    size = STORED.numel() * 4
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _: (2 * size - 1, 3 * size))
    moved = Samples(view, torch.arange(3000) % 2).x.to("cuda")
    assert moved.device == torch.device("cuda")
    assert moved.stored is view.stored
    assert moved.select(slice(9)).device == torch.device("cuda")
    back = moved.to("cpu")
    assert back.stored is view.stored
    assert torch.equal(back[5:7], STORED[5:7])
    assert View.of(STORED).to("meta").stored is not STORED  # what is in memory can be copied


def test_rows_are_delivered_with_their_change() -> None:
    u = torch.rand(3000, 1, generator=generator())
    change = lambda x, u: x * u.unsqueeze(1)  # noqa: E731
    view = View(STORED, torch.arange(3000), change, u, on_disk=True, delivered=CPU)
    rows = torch.randint(3000, (5, 40), generator=generator())
    assert torch.equal(view[rows], (STORED * u.unsqueeze(1))[rows])


def test_parts_are_read_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    found = torch.cat(list(views.chunks(on_disk(STORED), most=700)))
    assert torch.equal(found, STORED)
    before = threading.active_count()
    some = views.chunks(on_disk(STORED), most=700)
    next(some)
    some.close()  # type: ignore[attr-defined]
    assert threading.active_count() == before


@pytest.mark.skipif(not torch.cuda.is_available(), reason="rows go to a GPU")
@pytest.mark.usefixtures("deterministic")
@pytest.mark.parametrize("together", [1, 3])
def test_a_gpu_is_trained_from_disk(together: int, monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.randint(0, 256, (900, 3, 16, 16), generator=generator(), dtype=torch.uint8)
    y, plan = torch.arange(900) % 5 % 4, Plan(k=[0, 0, 3, 3], r=[1, 1, 2, 2])
    found = []
    for samples in (Samples(x, y), Samples(on_disk(x), y)):
        networks = [resnet32(3, 4, seed=seed) for seed in range(together)]
        options = {"rounds": 2, "batch_size": 32, "device": "cuda", "at_once": together}
        with monkeypatch.context() as small_gpu:
            small_gpu.setattr(views, "_SHARE", 0)
            fit_many(networks, samples, [plan] * together, **options)
        found.append([weights(network) for network in networks])
    for one, other in zip(*found, strict=True):
        assert torch.equal(one, other)


def test_an_error_in_a_thread_is_raised_as_it_is() -> None:
    view = View(STORED, torch.arange(2000) + 2000, on_disk=True)
    with pytest.raises(IndexError, match="out of range"):
        view[torch.arange(2000)]
    before = threading.active_count()
    with pytest.raises(IndexError, match="out of range"):
        list(presented(Samples(view, torch.arange(2000) % 2)))
    assert threading.active_count() == before


def presented(samples: Samples) -> Presentation:
    return Presentation([samples], batch_size=10, generators=[generator()], device=CPU)


@pytest.fixture
def _short_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "_STEPS", 7)


@pytest.mark.usefixtures("_short_chunks")
@pytest.mark.parametrize("done", [0, 7, 40])
def test_chunks_are_those_of_samples_in_memory(done: int) -> None:
    y = torch.arange(3000) % 3
    found, expected = (
        list(presented(Samples(x, y)).chunks(done, 4)) for x in (on_disk(STORED), STORED)
    )
    assert len(found) == len(expected) > 10
    for one, other in zip(found, expected, strict=True):
        assert torch.equal(one.batch.x, other.batch.x)
        assert torch.equal(one.batch.y, other.batch.y)
        assert torch.equal(one.share, other.share)


@pytest.mark.usefixtures("_short_chunks")
def test_the_next_chunk_is_read_while_one_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    before, second, gathered = threading.active_count(), threading.Event(), []
    whole = Presentation._gathered

    def noted(self: Presentation, span: range) -> list:
        gathered.append((span.start, threading.current_thread() is threading.main_thread()))
        if len(gathered) == 2:
            second.set()
        return whole(self, span)

    monkeypatch.setattr(Presentation, "_gathered", noted)
    chunks = presented(Samples(on_disk(STORED), torch.arange(3000) % 3)).chunks()
    next(chunks)
    assert second.wait(20)  # nobody has asked for it
    assert gathered == [(0, False), (7, False)]
    chunks.close()  # as an interruption does
    assert threading.active_count() == before
    assert len(gathered) == 2


def test_samples_in_memory_start_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading.Thread, "start", None)
    assert len(list(presented(Samples(View.of(STORED), torch.arange(3000) % 3)))) > 1


def test_training_is_the_same_from_disk_and_memory() -> None:
    samples, plan = blobs((300, 40)), Plan(k=[0, 3], r=[1, 4])
    stored = Samples(View.of(samples.x, on_disk=True), samples.y)
    one, other = small(2), small(2)
    train(one, samples, plan)
    train(other, stored, plan)
    assert torch.equal(weights(one), weights(other))


def test_arrays_in_files_are_known_to_be_on_disk(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros((4, 3, 3), np.uint8))
    np.save(tmp_path / "y.npy", np.arange(4) % 2)
    splits = load(tmp_path)
    assert isinstance(splits.train.x, View)
    assert splits.train.x.on_disk
    assert splits.train.subset(torch.tensor([0, 1])).x.on_disk  # type: ignore[union-attr]
