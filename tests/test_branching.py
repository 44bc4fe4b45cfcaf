"""Methods that begin alike: the rounds they share are trained once, and nothing else changes."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

import pytest
import torch

from contests import contest, pictures, small_lenet
from deep_oversampling import TrainingError
from deep_oversampling.branching import Trunk
from deep_oversampling.data import Splits
from deep_oversampling.rivals import METHODS, Method, compare
from deep_oversampling.rivals.compare import run_trials
from deep_oversampling.rivals.recipes import RECIPES, filled_up
from deep_oversampling.rivals.trials import Setting, Trial
from deep_oversampling.seeding import streams
from deep_oversampling.stages import Member, Stage, train_members
from deep_oversampling.training import Trainer
from toy import weights

SPLITS = Splits("pictures", pictures((40, 20, 9)), test=pictures((8, 8, 8)))
GIVEN = {"data": "pictures", "contents": "", "imbalance": "none", "k": 2, "test_share": 0.2}
SMALL = {"rounds": 3, "batch_size": 16, "model": "C4-F6", "learning_rate": 0.02}
SETTINGS = {name: filled_up(recipe, size=60, **GIVEN, **SMALL) for name, recipe in RECIPES.items()}
on_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
FAMILIES = sorted({m.training.begins_as for m in METHODS.values()} - {""})


def family(begins: str) -> list[Method]:
    """One method for each training that begins so."""
    found = [m for m in METHODS.values() if m.training.begins_as == begins]
    return list({m.training.name: m for m in found}.values())


def run(methods: list[Method], setting: Setting, seeds: tuple[int, ...] = (0, 1)) -> list[Trial]:
    return list(run_trials(SPLITS, setting, methods, seeds, device="cpu"))


def told(trials: list[Trial]) -> dict[tuple[str, int], Trial]:
    return {(one.method, one.seed): replace(one, seconds=0.0) for one in trials}


@pytest.fixture
def rounds_trained(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How many rounds there were in all."""
    found: Counter[str] = Counter()
    train_in_parts = Trainer.train_in_parts

    def counted(self: Trainer, *arguments: object, **options: object) -> Iterator[None]:
        found["rounds"] += 1
        return train_in_parts(self, *arguments, **options)

    monkeypatch.setattr(Trainer, "train_in_parts", counted)
    return found


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("begins", FAMILIES)
def test_every_method_ends_where_it_would_end_alone(begins: str, recipe: str) -> None:
    methods, setting = family(begins), SETTINGS[recipe]
    assert len(methods) > 1
    alone = [trial for method in methods for trial in run([method], setting)]
    for order in (methods, methods[::-1]):
        assert told(run(order, setting)) == told(alone)


@pytest.mark.parametrize("begins", FAMILIES)
def test_families_begin_with_the_same_stages(begins: str) -> None:
    """Of the same tables, in whole rounds: what is kept after T0 is the same for all of them."""
    own = contest(pictures())
    for method in family(begins):
        network = small_lenet()
        network = method.training.prepare(network) if method.training.prepare else network
        first = list(islice(method.training.stages(network, own), own.initial_rounds))
        assert len({stage.task for stage in first}) == 1
        assert all(isinstance(stage, Stage) and len(stage.table) == 24 for stage in first)
        assert all(stage.ends_round and not stage.starts_anew for stage in first)


def test_what_is_alike_is_trained_once(rounds_trained: Counter[str]) -> None:
    methods = [METHODS[name] for name in ("cnn", "ros", "dos", "logit-adjustment", "dos-la")]
    trials = run(methods, SETTINGS["plain"])
    assert rounds_trained["rounds"] == 2 * ((6 + 3 + 3) + (6 + 3))  # of 5 × 6 for each seed
    presented = {one.method: one.presented for one in trials}
    assert presented["ros"] == presented["dos"] > presented["cnn"] == 6 * 69


def test_another_learning_rate_is_another_beginning(rounds_trained: Counter[str]) -> None:
    setting = replace(SETTINGS["plain"], rates=(("ros", 0.01),))
    run([METHODS[name] for name in ("cnn", "ros")], setting, seeds=(0,))
    assert rounds_trained["rounds"] == 12


@pytest.mark.parametrize("model", ["C4-F6", "C8-C8-C8-F8"], ids=["in a stack", "in turns"])
@pytest.mark.parametrize("recipe", RECIPES)
def test_trainings_at_once_share_as_well(
    recipe: str, model: str, rounds_trained: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compare, "how_many", lambda trainings, device: trainings)
    setting = replace(SETTINGS[recipe], model=model)
    methods = [METHODS[name] for name in ("cnn", "ros", "dos", "drw", "crt")]
    alone = [trial for method in methods for trial in run([method], setting)]
    apart = rounds_trained.pop("rounds")
    assert told(run(methods, setting)) == told(alone)
    rounds = 3 * len(methods[1:]) * (1 if model == "C4-F6" else 2)
    assert rounds_trained["rounds"] == apart - rounds


def test_where_memory_is_short_the_rest_of_a_stack_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Half as many at once as when the rounds were trained that they share."""
    methods = [METHODS[name] for name in ("cnn", "ros")]
    seeds = (0, 1, 2)
    monkeypatch.setattr(compare, "how_many", lambda trainings, device: trainings)
    expected = told(run(methods, SETTINGS["plain"], seeds))
    sizes = iter((3, 2))
    monkeypatch.setattr(compare, "how_many", lambda trainings, device: next(sizes))
    found = told(run(methods, SETTINGS["plain"], seeds))
    for key, one in expected.items():
        for name, column in one.measures.items():
            assert found[key].measures[name] == pytest.approx(column, abs=0.05)


def begun(trunk: Trunk, stages: Iterator[Stage] | None = None) -> Member:
    network = small_lenet()
    stages = stages or METHODS["cnn"].training.stages(network, contest(pictures()))
    return Member(network, stages, streams(0), trunk=trunk)


def test_a_beginning_that_is_lost_is_not_shared() -> None:
    """Whoever comes next begins by itself."""
    trunk = Trunk(2)

    def lost() -> Iterator[Stage]:
        yield from islice(METHODS["cnn"].training.stages(small_lenet(), contest(pictures())), 1)
        raise TrainingError("lost")

    first, second = begun(trunk, lost()), begun(trunk)
    train_members([first], batch_size=8)
    assert first.error
    assert trunk.done is None
    train_members([second], batch_size=8)
    assert trunk.done is not None


def test_what_is_kept_does_not_go_on_with_who_made_it() -> None:
    trunk = Trunk(2)
    member = begun(trunk)
    train_members([member], batch_size=8)
    assert len(member.history.rounds) == 4
    assert trunk.done is not None
    assert len(trunk.done.history.rounds) == trunk.done.rounds == 2
    other = begun(trunk).grow()
    assert not weights(other.network).equal(weights(member.network))
    train_members([other], batch_size=8)
    assert weights(other.network).equal(weights(member.network))
    assert len(trunk.done.history.rounds) == 2


@on_gpu
@pytest.mark.usefixtures("deterministic")
def test_recorded_steps_go_on_from_what_is_shared() -> None:
    """Their optimisers too, on streams of their own."""
    setting = replace(SETTINGS["cifar-lt"], model="resnet32", learning_rate=1e-3)
    methods = [METHODS[name] for name in ("cnn", "ros", "dos", "crt")]
    alone = [t for m in methods for t in run_trials(SPLITS, setting, [m], (0, 1), device="cuda")]
    found = told(list(run_trials(SPLITS, setting, methods, (0, 1), device="cuda")))
    for key, one in told(alone).items():
        for name, column in one.measures.items():
            assert found[key].measures[name] == pytest.approx(column, abs=0.02)
