"""Cells: what a worker is given, what it refuses, and that it runs what this process would run."""

import logging
import pickle
import re
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

import commands
from deep_oversampling import DOSError, InputError
from deep_oversampling.cli.workers import chosen_place
from deep_oversampling.data import load
from deep_oversampling.paper.experiments import TABLES
from deep_oversampling.paper.run import Laboratory
from deep_oversampling.rivals import METHODS
from deep_oversampling.rivals.compare import contents
from deep_oversampling.workers import Here, Order, Processes, RayCluster, ray_cluster
from deep_oversampling.workers.cells import Cell, cells_of, run_cell
from deep_oversampling.workers.processes import _portable
from orders import digits, facts
from paper_sets import Shelf, shelf

__all__ = ["shelf"]  # a fixture


def cells(order: Order, device: str = "cpu") -> list[tuple[tuple[str, ...], tuple[int, ...]]]:
    return [(cell.methods, cell.seeds) for cell in cells_of(order, device, threads=1)]


# what a cell is


def test_on_the_cpu_a_cell_is_one_training_of_one_seed() -> None:
    order = digits("cnn", "dos", "dos-lr", seeds=(3, 4))
    alike = [("cnn",), ("dos", "dos-lr")]  # which share a training
    assert cells(order) == [(names, (seed,)) for seed in (3, 4) for names in alike]


def test_on_a_gpu_seeds_are_stacked_and_what_is_there_is_in_no_cell() -> None:
    order = digits("cnn", "ros", seeds=(0, 1, 2))
    assert cells(order, "cuda") == [(("cnn",), (0, 1, 2)), (("ros",), (0, 1, 2))]
    left = {0: [METHODS["ros"]], 1: [], 2: [METHODS["cnn"], METHODS["ros"]]}
    found = cells(replace(order, missing=left), "cuda")
    assert found == [(("ros",), (0,)), (("cnn",), (2,)), (("ros",), (2,))]


def test_a_cell_gives_the_trials_of_this_process_bit_by_bit() -> None:
    order = digits("cnn", "dos", "dos-lr")
    sent = pickle.loads(pickle.dumps(cells_of(order, "cpu", threads=1)))
    elsewhere = [trial for cell in sent for trial in run_cell(cell).trials]
    assert facts(elsewhere) == facts(Here("cpu").run(order))


def test_threads_are_those_of_the_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[int] = []
    monkeypatch.setattr(torch, "set_num_threads", found.append)
    for threads in (1, 3):
        (cell,) = cells_of(digits("cnn"), "cpu", threads)
        run_cell(cell)
    assert found == [1, 3]


def test_what_a_worker_would_say_is_handed_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Warnings and log lines; nothing else is left of them."""

    def noisy(*_: object, **__: object) -> Iterator[Any]:
        logging.getLogger("deep_oversampling.anywhere").warning("half as many")
        import warnings

        warnings.warn("class 'b' is rare", stacklevel=1)
        yield from ()

    monkeypatch.setattr("deep_oversampling.rivals.compare.run_trials", noisy)
    (cell,) = cells_of(digits("cnn"), "cpu", threads=1)
    outcome = run_cell(cell)
    assert outcome.trials == []
    assert outcome.notes == ["half as many", "class 'b' is rare"]


# what a worker refuses


def one_cell() -> Cell:
    (cell,) = cells_of(digits("cnn"), "cpu", threads=1)
    return cell


@pytest.mark.parametrize("name", ["deep-oversampling", "torch", "python"])
def test_other_versions_are_refused_and_named(name: str) -> None:
    cell = one_cell()
    found = re.escape(f"{name} {cell.versions[name]} instead of 0.0; install the same there")
    with pytest.raises(InputError, match=f"versions of the command, found on .* {found}"):
        run_cell(replace(cell, versions={**cell.versions, name: "0.0"}))


def test_torch_for_another_device_is_the_same_release() -> None:
    cell = one_cell()
    torch_ = cell.versions["torch"].partition("+")[0] + "+cu999"
    assert run_cell(replace(cell, versions={**cell.versions, "torch": torch_})).trials


def test_other_data_are_refused(tmp_path: Path) -> None:
    cell = one_cell()
    setting = replace(cell.setting, contents="c0ffee")
    with pytest.raises(InputError, match=r"same data, found on .* another Digits .*instead of c0f"):
        run_cell(replace(cell, setting=setting))
    gone = replace(cell, setting=setting, source=partial(load, tmp_path / "gone"))
    with pytest.raises(InputError, match=r"found no .*gone"):
        run_cell(gone)


def test_data_are_loaded_once() -> None:
    times: list[int] = []

    def counted() -> Any:
        times.append(1)
        return replace(load("digits"), name="again")

    order = digits("cnn", seeds=(0, 1))
    other = replace(load("digits"), test=None, train=load("digits").train.subset(torch.arange(500)))
    run_cell(replace(one_cell(), source=lambda: other, setting=_of(order, contents(other))))
    for cell in cells_of(replace(order, source=counted), "cpu", threads=1):
        run_cell(cell)
    assert times == [1]


def _of(order: Order, found: str) -> Any:
    return replace(order.setting, contents=found)


# the options


def refused(*arguments: str) -> str:
    return commands.refused("compare", "--data", "digits", *arguments)


def test_options_that_contradict_each_other() -> None:
    assert "found no --ray" in refused("--gpus-per-task", "1")
    assert "found --processes; leave it out" in refused("--ray", "auto", "--processes", "2")
    assert "found --device; leave it out" in refused("--ray", "auto", "--device", "cpu")


def test_processes_are_for_the_cpu() -> None:
    place = partial(chosen_place, ray=None, gpus_per_task=0.0)
    assert isinstance(place(processes=2, device="cpu"), Processes)
    assert isinstance(place(processes=None, device="cpu"), Here)
    with pytest.raises(InputError, match=r"share the cores, so .* found meta"):
        place(processes=2, device="meta")
    with pytest.raises(InputError, match="one process or more, found 0"):
        Processes(0)


def test_a_task_has_the_device_it_asks_for() -> None:
    assert RayCluster("auto").device == "cpu"
    assert RayCluster("auto", gpus_per_task=0.5).device == "cuda"


# a cluster that is not there


@pytest.mark.parametrize("address", ["somewhere", "ray://here:10001", "here:port", ""])
def test_an_address_that_is_none(address: str) -> None:
    pytest.importorskip("ray", reason="Ray is not installed")
    with pytest.raises(InputError, match="must be HOST:PORT, auto or local, found"):
        RayCluster(address).__enter__()


def test_an_address_that_does_not_answer() -> None:
    pytest.importorskip("ray", reason="Ray is not installed")
    with socket.socket() as taken:  # bound, but nobody listens
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        assert f"must answer at {address}, found: " in refused("--ray", address)


@pytest.mark.parametrize(
    ("reply", "found"), [(b"HTTP/1.1 400 Bad", "a server of another kind"), (b"", "timed out")]
)
def test_a_port_where_something_else_listens(
    reply: bytes, found: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ray itself would wait for it without end."""
    pytest.importorskip("ray", reason="Ray is not installed")
    monkeypatch.setattr(ray_cluster, "_PATIENCE", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"

        def answer() -> None:
            connection, _ = server.accept()
            with connection, suppress(ConnectionResetError):
                connection.recv(100)
                if reply:
                    connection.sendall(reply)
                connection.recv(100)  # until the other side has had enough

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(InputError, match=f"must answer at {address}, found: {found}"):
            RayCluster(address).__enter__()
        thread.join()


def test_without_ray_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    assert "pip install 'deep-oversampling[ray]'" in refused("--ray", "local")


# the paper's experiments


@pytest.mark.parametrize("quick", [False, True])
def test_workers_load_what_the_laboratory_loads(shelf: Shelf, tmp_path: Path, quick: bool) -> None:
    laboratory = Laboratory(tmp_path, trials=1, quick=quick, device="cpu")
    for table in ("baseline", "balanced"):  # ten-fold copies, and images in colour
        job = laboratory.job(TABLES[table].experiments[0])
        order = laboratory._order(job)
        assert contents(order.source()) == job.setting.contents
        pickle.dumps(order.source)


# errors that travel


def test_errors_arrive_as_they_were_or_as_words() -> None:
    class Odd(Exception):
        def __init__(self, one: int, two: Callable[[], None]) -> None:
            super().__init__("odd")

    kept = _portable(InputError("no"))
    assert (type(kept), str(kept)) == (InputError, "no")
    told = _portable(Odd(1, lambda: None))
    assert (type(told), str(told)) == (DOSError, "Odd in a worker: odd")
