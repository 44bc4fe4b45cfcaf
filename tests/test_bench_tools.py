"""What the benchmarks are made of: sizes, generated data, clocks, ratios, the plot."""

import importlib.util
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from types import ModuleType

import pytest
import torch

from deep_oversampling import InputError, bench
from deep_oversampling.bench import records, steps, timing
from deep_oversampling.bench.material import images, rare, shortened
from deep_oversampling.bench.records import Record, figure
from deep_oversampling.bench.rounds import overloaded
from deep_oversampling.bench.sizes import sizes_for
from deep_oversampling.models import small_network

CPU = torch.device("cpu")

# sizes and material


@pytest.mark.parametrize("quick", [True, False])
@pytest.mark.parametrize("device", ["cpu", "cuda", "mps"])
def test_sizes_suit_the_device(device: str, quick: bool) -> None:
    sizes = sizes_for(torch.device(device), quick=quick)
    on_gpu = device == "cuda"
    assert ("graph" in sizes.modes) == bool(sizes.resnet) == on_gpu
    assert any("compile" in mode for mode in (*sizes.modes, *sizes.resnet)) == (
        on_gpu and not quick
    )
    assert set(sizes.modes) | set(sizes.resnet) <= set(steps._ENGINES)
    assert sizes.cell_train / 10 * 0.01 >= 6  # k + 1
    assert max(sizes.step_k) < 0.1 * sizes.step_rows / 10
    assert all(sizes.step_rows % n == 0 for n in sizes.step_n)


@pytest.mark.parametrize(("majority", "share"), [(600, 0.01), (300, 0.01), (100, 0.1)])
def test_four_rows_of_ten_have_neighbours(majority: int, share: float) -> None:
    samples, plan = rare(majority, (1, 8, 8), share=share)
    (table,) = overloaded([small_network(samples)], samples, plan)
    assert float(table.has_neighbours.float().mean()) == pytest.approx(0.4, abs=0.01)
    some = shortened(table, len(table) // 2)
    assert len(some) == len(table) // 2
    assert float(some.has_neighbours.float().mean()) == pytest.approx(0.4, abs=0.05)
    assert shortened(table, len(table)) is table
    assert len(shortened(samples, 7)) == 7


def test_images_are_bytes_and_repeat() -> None:
    one, same, other = (images([3, 2], (3, 8, 8), seed=s) for s in (0, 0, 1))
    assert one.x.dtype == torch.uint8
    assert one.x.shape == (5, 3, 8, 8)
    assert torch.equal(one.x, same.x)
    assert not torch.equal(one.x, other.x)


# clocks, names, ratios


def test_things_take_turns_and_the_first_turn_does_not_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    order: list[str] = []
    times = {"a": [9.0, 3.0, 2.0], "b": [1.0, 4.0, 5.0], "c": [6.0, 5.0], "long": [9.0, 31.0]}

    def seconds_of(action: Callable[[], str], device: torch.device) -> float:
        order.append(action())
        return times[order[-1]].pop(0)

    monkeypatch.setattr(timing, "seconds_of", seconds_of)
    a, b, c, long = ({name: lambda name=name: name} for name in times)
    assert timing.fastest(a | b, CPU, repeats=2) == {"a": 2.0, "b": 4.0}
    assert order == ["a", "b", "a", "b", "a", "b"]
    assert timing.fastest(c | long, CPU, repeats=2) == {"c": 5.0, "long": 31.0}


def test_threads_are_as_before_afterwards() -> None:
    before = torch.get_num_threads()
    with timing.limited(2):
        assert torch.get_num_threads() == 2
    assert torch.get_num_threads() == before


def test_memory_is_not_guessed_without_a_gpu() -> None:
    assert timing.peak(lambda: "made", CPU) == ("made", None)


def test_parts_are_chosen_once_in_the_order_named_and_all_by_default() -> None:
    assert bench.choose([]) == list(bench.PARTS)
    assert bench.choose(["search", "fit", "search"]) == ["search", "fit"]
    with pytest.raises(InputError) as caught:
        bench.choose(["fit", "serach"])
    assert str(caught.value) == (
        "parts must be some of steps, fit, search, evaluation, scaling, cell, found 'serach'; "
        "did you mean search?"
    )


def test_a_ratio_is_to_what_differs() -> None:
    one = figure("p", "x", {"E": 1, "mode": "eager"}, 2.0, "s")
    assert figure("p", "y", {"E": 4, "mode": "eager"}, 3.0, "s", to=one).ratio_to == "x, E = 1"
    assert figure("p", "x", {"E": 1, "mode": "graph"}, 3.0, "s", to=one).ratio_to == "eager"
    assert figure("p", "y", {}, 1.23456, "s", to=one) == Record(
        "p", "y", {}, 1.235, "s", 0.6175, "x"
    )


def test_header_tells_machine_and_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    about = records.header(CPU, 3, quick=True)
    assert about["hardware"]["threads"] == 3
    assert about["hardware"]["cpu"]
    assert about["hardware"]["gpu"] is None
    assert set(about["versions"]) == {"deep-oversampling", "torch", "python", "scikit-learn"}
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda _: "a GPU")
    assert records.header(torch.device("cuda"), 1, quick=False)["hardware"]["gpu"] == "a GPU"


# the plot


@pytest.fixture
def plot() -> ModuleType:
    path = Path(__file__).parent.parent / "benchmarks" / "plot.py"
    spec = importlib.util.spec_from_file_location("plot", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_plot_has_every_curve_in_seconds(plot: ModuleType) -> None:
    found = [
        figure("search", "ours", {"m": 10}, 3.0, "s"),
        figure("scaling", "search against m", {}, 2.0, "slope of time"),
        figure("scaling", "search against m", {"m": 10}, 1.0, "s"),
        figure("scaling", "search against m", {"m": 20}, 4.0, "s"),
        figure("scaling", "search against m", {}, 1.0, "slope of memory"),
        figure("scaling", "search against m", {"m": 10}, 7.0, "MiB"),
        figure("scaling", "DOS step against E", {}, 0.0, "slope of time"),
        figure("scaling", "DOS step against E", {"E": 1}, 500.0, "µs/step"),
    ]
    assert plot.curves([asdict(one) for one in found]) == {
        "search": {"m": ([10, 20], [1.0, 4.0], 2.0)},
        "DOS step": {"E": ([1], [5e-4], 0.0)},
    }


def test_plot_tells_the_slopes(plot: ModuleType, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    found = {"search": {"m": ([1.0, 10.0], [1.0, 100.0], 2.0)}}
    out = tmp_path / "images" / "scaling.svg"
    plot.draw(found, "here", out)
    assert "m, slope 2.00" in out.read_text()
