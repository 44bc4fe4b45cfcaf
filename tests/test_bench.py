"""Speed figures: what is compared is alike, and ratios are those of the values. No times."""

import json
import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from deep_oversampling import bench
from deep_oversampling.bench import evaluation, fit, search, steps, timing
from deep_oversampling.bench.material import images, vectors
from deep_oversampling.bench.records import Note, Record, figure, in_words, slope
from deep_oversampling.bench.sizes import Sizes
from deep_oversampling.metrics import MEASURES, measure
from deep_oversampling.models import small_network
from deep_oversampling.probes import knn_probe, logistic_probe

CPU = torch.device("cpu")
TINY = Sizes(
    repeats=1,
    side=8,
    majority=60,
    steps=2,
    modes={"eager": (1, 2)},
    resnet=(),
    resnet_majority=12,
    rounds=1,
    trainings=1,
    fits=(1,),
    test=100,
    search=(50, 100),
    search_alone=(200,),
    search_m=(50, 100, 200),
    search_d=(4, 8),
    at_m=50,
    embed_m=(50, 100),
    step_k=(1, 5),
    step_n=(10, 20),
    step_e=(1, 2),
    step_rows=600,
    cell_train=6_000,  # so that 1 % of a class is k + 1
    cell_test=200,
    cell_rounds=1,
    cell_seeds=1,
)

_done: dict[str, list[Record | Note]] = {}


def measured(part: str) -> list[Record]:
    """Each part is run once for all tests."""
    if part not in _done:
        with timing.limited(1):
            _done[part] = list(bench.measure_part(part, CPU, TINY))
    return [one for one in _done[part] if isinstance(one, Record)]


def notes(found: list[Record | Note]) -> list[str]:
    return [one.text for one in found if isinstance(one, Note)]


def only(found: list[Record], what: str, unit: str | None = None, **setting: object) -> Record:
    (one,) = [
        one
        for one in found
        if one.what == what
        and unit in (None, one.unit)
        and all(one.setting.get(name) == value for name, value in setting.items())
    ]
    return one


# every part


@pytest.mark.parametrize("part", bench.PARTS)
def test_figures_are_finite_and_named_and_no_two_are_the_same(part: str) -> None:
    found = measured(part)
    assert found
    for one in found:
        assert one.part == part
        assert one.what
        assert one.unit
        assert math.isfinite(one.value)
        assert one.value >= 0 or one.unit.startswith("slope")
        assert (one.ratio is None) == (one.ratio_to is None)
        assert json.loads(json.dumps(asdict(one))) == asdict(one)
    keys = {(one.what, in_words(one.setting), one.unit) for one in found}
    assert len(keys) == len(found)


@pytest.mark.parametrize("part", bench.PARTS)
def test_ratios_are_of_values_that_are_there(part: str) -> None:
    found = measured(part)
    for one in found:
        if one.ratio is not None:
            ratios = [one.value / other.value for other in found if other.value]
            assert any(float(f"{ratio:.4g}") == one.ratio for ratio in ratios)


# steps


def test_steps_have_every_task_and_number_of_trainings() -> None:
    found = measured("steps")
    for e in (1, 2):
        plain, dos = (only(found, f"{task} step", "µs/step", E=e) for task in ("plain", "DOS"))
        assert dos.ratio == pytest.approx(dos.value / plain.value, rel=1e-3)
        assert dos.ratio_to == "plain step"
        assert plain.ratio is None
    for task in ("plain", "DOS"):
        alone, both = (only(found, f"{task} step", "µs/step", E=e) for e in (1, 2))
        each = only(found, f"{task} step", "µs/step/trial", E=2)
        assert each.value == pytest.approx(both.value / 2, rel=1e-3)
        assert each.ratio == pytest.approx(each.value / alone.value, rel=1e-3)
        assert each.ratio_to == "E = 1"


def test_steps_of_a_resnet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "_RESNET_BATCH", 4)
    sizes = replace(TINY, modes={}, resnet=("eager", "graph"), steps=1)
    found = list(steps.figures(CPU, sizes))
    assert [(one.setting["mode"], one.what) for one in found] == [
        (mode, f"{task} step") for mode in sizes.resnet for task in ("plain", "DOS")
    ]
    assert {one.setting["network"] for one in found} == {"ResNet-32"}


def test_a_mode_that_the_machine_refuses_is_left_out_and_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Refusing(steps.Trainer):
        def __init__(self, *arguments, engine, **options) -> None:
            if engine.compile:
                raise RuntimeError("no compiler here\nand much more")
            super().__init__(*arguments, engine=engine, **options)

    monkeypatch.setattr(steps, "Trainer", Refusing)
    found = list(steps.figures(CPU, replace(TINY, modes={"compile": (1,), "eager": (1,)})))
    assert notes(found) == ["LeNet, compile: left out, no compiler here"]
    assert {one.setting["mode"] for one in found if isinstance(one, Record)} == {"eager"}


# fit


def test_both_trainings_present_as_many_images(monkeypatch: pytest.MonkeyPatch) -> None:
    presented, train_members = [], fit.train_members

    def watched(members, **options) -> None:
        train_members(members, **options)
        presented.append([sum(r.presented for r in m.history.rounds) for m in members])

    monkeypatch.setattr(fit, "train_members", watched)
    found = list(fit.figures(CPU, replace(TINY, fits=(2,))))
    assert len(presented) == 4  # plain and DOS, twice
    assert presented == [presented[0]] * 4
    plain, dos = only(found, "plain training"), only(found, "DOS training")
    assert dos.ratio == pytest.approx(dos.value / plain.value, rel=1e-3)


def test_shares_of_a_round_make_it_up() -> None:
    parts = [one for one in measured("fit") if one.what.startswith("of it")]
    names = ["embedding", "search", "weights", "steps"]
    assert [one.what for one in parts] == [f"of it {name}" for name in names]
    assert sum(one.ratio for one in parts) == pytest.approx(1, abs=1e-2)
    whole = only(measured("fit"), "DOS round")
    assert sum(one.value for one in parts) == pytest.approx(whole.value, rel=1e-2)


# search


def test_others_find_the_same_neighbours() -> None:
    v = vectors(200, 30, CPU)  # of few numbers many are all 0, and as near
    ours, theirs = search.of_one_class(v, 5), search.by_scikit_learn(v.numpy(), 5)
    assert np.array_equal(ours.numpy(), theirs)


def test_faiss_takes_part_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    class IndexFlatL2:
        def __init__(self, d: int) -> None:
            self.d = d

        def add(self, v: np.ndarray) -> None:
            assert v.shape[1] == self.d

        def search(self, v: np.ndarray, k: int) -> tuple[None, None]:
            asked.append((len(v), k))
            return None, None

    faiss = SimpleNamespace(IndexFlatL2=IndexFlatL2, omp_set_num_threads=lambda _: None)
    monkeypatch.setitem(sys.modules, "faiss", faiss)
    found = list(search.figures(CPU, TINY))
    assert not notes(found)
    assert asked == [(m, 11) for m in (50, 100) for _ in range(2)]
    assert only(found, "FAISS, flat", m=50).ratio_to == "ours"


def test_search_says_that_faiss_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "faiss", None)
    found = list(search.figures(CPU, TINY))
    (note,) = notes(found)
    assert "FAISS is not installed" in note
    assert {one.what for one in found if isinstance(one, Record)} == {
        "ours",
        "scikit-learn, brute force",
    }
    assert only(found[1:], "ours", m=200).ratio is None  # ours alone


# evaluation


def test_measures_that_are_timed_are_the_same() -> None:
    p = torch.rand(80, 4, generator=torch.Generator().manual_seed(0)).softmax(1)
    y = torch.arange(80) % 4
    ours = np.stack([getattr(measure(p, y), name) for name in MEASURES])
    assert np.allclose(ours, evaluation.measured_by_scikit_learn(p, y), atol=1e-6)


@pytest.mark.parametrize(
    ("probe", "model"),
    [(knn_probe, evaluation.neighbours_model), (logistic_probe, evaluation.regression)],
)
def test_probes_that_are_timed_say_the_same(probe: Callable, model: Callable) -> None:
    train, test = (images([30] * 3, (1, 8, 8), seed=s) for s in (0, 1))
    network = small_network(train)
    ours, theirs = probe(network, train, test), evaluation.probed(model(), network, train, test)
    assert ours.shape == theirs.shape
    assert np.mean(np.asarray(ours).argmax(1) == theirs.argmax(1)) > 0.95


# scaling and the cell


def test_slopes_are_those_of_the_points() -> None:
    found = measured("scaling")
    curves = {
        "search against m": TINY.search_m,
        "search against d": TINY.search_d,
        "embedding against m": TINY.embed_m,
        "DOS step against k": TINY.step_k,
        "DOS step against n": TINY.step_n,
        "DOS step against E": TINY.step_e,
    }
    assert list(dict.fromkeys(one.what for one in found)) == list(curves)
    for what, x in curves.items():
        first, *points = [one for one in found if one.what == what]
        assert first.unit == "slope of time"
        assert [one.setting for one in points] == [{what[-1]: value} for value in x]
        assert first.value == pytest.approx(slope(x, [one.value for one in points]), abs=5e-3)
    assert notes(_done["scaling"]) == ["memory is measured on cuda only"]


def test_the_cell_is_training_and_the_rest() -> None:
    whole, training, rest = measured("cell")
    assert whole.setting == {"methods": 5, "seeds": 1, "train": 6_000, "T": 1}
    assert training.value + rest.value == pytest.approx(whole.value, rel=1e-2)
    assert 0 < training.ratio < 1


def test_where_memory_does_not_suffice_the_rest_of_a_part_is_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def greedy(device: torch.device, sizes: Sizes) -> Iterator[Record]:
        yield figure("fit", "one", {}, 1.0, "s")
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setitem(bench.PARTS, "fit", greedy)
    one, note = bench.measure_part("fit", CPU, TINY)
    assert one.what == "one"
    assert note == Note("fit", "out of memory on cpu: what is missing was left out")
