"""``dos compare``: does it help, and against what?"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .bars import bar
from .compare_table import print_table
from .data import Cache, DataDir
from .showing import say
from .signals import Signals
from .workers import GpusPerTask, ProcessCount, RayAddress, chosen_place

if TYPE_CHECKING:
    from ..data import Splits
    from ..locking import Lock
    from ..rivals import Method
    from ..rivals.missing import Missing
    from ..rivals.summary import Row
    from ..rivals.trials import Trial
    from ..samples import Samples

__all__ = ["compare"]

_BY_RECIPE = "by recipe"
_NOT_KEPT = "without a folder (--out) nothing is kept"


def compare(
    data: Annotated[str, typer.Option(help="The name of a set, a folder, a manifest, arrays.")],
    imbalance: Annotated[
        str, typer.Option(help="drop:4:0.99, gaussian:0.2, exp:100, step:10 or none.")
    ] = "none",
    methods: Annotated[
        str, typer.Option(help="Names with commas between, 'all' or 'paper'.")
    ] = "cnn,ros,dos",
    trials: Annotated[int, typer.Option(min=1, help="Each with a subset and weights anew.")] = 5,
    seed: Annotated[int, typer.Option(help="Of the first trial; the others follow.")] = 0,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the results; a stopped run goes on there.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    recipe: Annotated[
        str, typer.Option(help="plain, or cifar-lt: fills up what is not given below.")
    ] = "plain",
    judge: Annotated[
        str, typer.Option(help="test, or removed: to choose by, what the imbalance took away.")
    ] = "test",
    model: Annotated[
        str | None,
        typer.Option(
            help="auto (a LeNet or an MLP), resnet32, or layers: C6-C16-F120.",
            show_default=_BY_RECIPE,
        ),
    ] = None,
    k: Annotated[int, typer.Option(min=0, help="Neighbours of DOS.")] = 5,
    rounds: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="T, after as many initial ones.",
            show_default="by recipe and size",
        ),
    ] = None,
    batch_size: Annotated[int | None, typer.Option(min=1, show_default=_BY_RECIPE)] = None,
    learning_rate: Annotated[
        float | None,
        typer.Option(min=0, help="Of SGD with momentum 0.9.", show_default=_BY_RECIPE),
    ] = None,
    weight_decay: Annotated[float | None, typer.Option(min=0, show_default=_BY_RECIPE)] = None,
    schedule: Annotated[
        str | None,
        typer.Option(
            help="Of the learning rate: constant, cosine from round to round, or steps.",
            show_default=_BY_RECIPE,
        ),
    ] = None,
    augment: Annotated[
        str | None, typer.Option(help="none or crop-flip.", show_default=_BY_RECIPE)
    ] = None,
    tau: Annotated[
        float,
        typer.Option(min=0, help="Of logit adjustment, and of the margin of DOS with pieces."),
    ] = 1.0,
    bf16: Annotated[bool, typer.Option("--bf16", help="Mixed precision, on a GPU.")] = False,
    test_share: Annotated[
        float, typer.Option(help="Held out to test on, where the data has no test set.")
    ] = 0.2,
    size: Annotated[int | None, typer.Option(min=1, help="Side of pictures.")] = None,
    device: Annotated[str | None, typer.Option(show_default="a GPU if there is one")] = None,
    data_dir: DataDir = None,
    cache: Cache = None,
    processes: ProcessCount = None,
    ray: RayAddress = None,
    gpus_per_task: GpusPerTask = 0.0,
) -> None:
    """Every method on the same network, subset, rounds and test set, over several seeds.

    dos compare --data digits --imbalance drop:4:0.9 --methods all

    dos compare --data pictures/ --methods cnn,weights,logit-adjustment,dos --out runs/pictures

    dos compare --data cifar10 --imbalance exp:100 --recipe cifar-lt --methods cnn,drs,ldam-drw,dos
    """
    from ..data import load, parse_protocol
    from ..data.load import check_size
    from ..rivals.compare import check_setting, contents
    from ..rivals.missing import missing_trials
    from ..rivals.recipes import filled_up, recipe_of
    from ..rivals.summary import TEST, summarize
    from ..rivals.trials import append_trial, check_writable, read_trials
    from ..workers import Order

    place = chosen_place(processes=processes, ray=ray, gpus_per_task=gpus_per_task, device=device)
    chosen = _chosen(methods)
    protocol = str(parse_protocol(imbalance))
    splits = load(data, data_dir=data_dir, cache=cache, size=size)
    check_size(splits, size)
    chosen_recipe = recipe_of(recipe)
    setting = filled_up(
        chosen_recipe,
        size=len(splits.train),
        data=splits.name,
        contents=contents(splits),
        imbalance=protocol,
        model=model,
        k=k,
        rounds=rounds,
        batch_size=batch_size,
        learning_rate=learning_rate,
        weight_decay=weight_decay,
        schedule=schedule,
        augment=augment,
        test_share=test_share,
        judge=judge,
        bf16=bf16,
        tau=tau,
    )
    check_setting(setting, splits.train)
    path = out / "trials.jsonl" if out else None
    if path:
        check_writable(path)
    _suit_threads(setting.model, splits.train)
    seeds = range(seed, seed + trials)
    source = _source(data, data_dir=data_dir, cache=cache, size=size)
    with Signals() as signals, _alone(path) as lock:
        found = read_trials(path, setting, on_broken=partial(_broken, path)) if path else []
        found = [trial for trial in found if not trial.left_out]  # those are tried again
        missing = missing_trials(found, chosen, seeds)
        try:
            if any(missing.values()):
                with place:
                    order = Order(splits, setting, missing, source)
                    for trial in _shown(place.run(order), missing):
                        found.append(trial)
                        if path and lock:
                            lock.check_there()
                            append_trial(path, trial)
        except KeyboardInterrupt:
            kept = f"{len(found)} trials are in {path}; the same command goes on there"
            print(f"dos: stopped; {kept if path else _NOT_KEPT}", file=sys.stderr)
            raise typer.Exit(signals.exit_code) from None
    wanted = [method.name for method in chosen]
    found = [t for name in wanted for t in found if t.method == name and t.seed in seeds]
    measure = chosen_recipe.measure
    rare = measure == "f1" and any(trial.minority for trial in found)
    group = "minority" if rare else "all"
    rows = summarize(found, group=group, measure=measure)
    if as_json:
        compared = f"{group} {'F1' if measure == 'f1' else measure}"
        about = {"classes": splits.train.classes, "compared": compared, "test": TEST}
        print(json.dumps(_without_nan(asdict(setting) | about, rows, found), indent=2))
    else:
        judged = "" if judge == "test" else ", judged by what was removed"
        title = f"{splits.name}, {protocol}, T = {setting.rounds}{judged}"
        print_table(rows, found, group, title, measure)
        if path:
            say(f"trials: {path}")


def _source(
    data: str, *, data_dir: Path | None, cache: Path | None, size: int | None
) -> Callable[[], Splits]:
    """How the same is loaded by a worker, which may stand in another folder."""
    from ..data import load
    from ..data.cache import cache_folder, data_folder
    from ..data.load import NAMES

    return partial(
        load,
        data if data in NAMES else Path(data).expanduser().absolute(),
        data_dir=data_folder(data_dir).absolute(),
        cache=cache_folder(cache).absolute(),
        size=size,
    )


def _shown(trials: Iterator[Trial], missing: Missing) -> Iterator[Trial]:
    """With a bar."""
    with bar() as progress:
        task = progress.add_task("trials", total=sum(map(len, missing.values())))
        for trial in trials:
            yield trial
            progress.advance(task)


def _broken(path: Path, number: int) -> None:
    say(f"dos: {path}, line {number} is broken and set aside; the others are kept", file=sys.stderr)


def _alone(path: Path | None) -> AbstractContextManager[Lock | None]:
    from ..locking import Lock

    return Lock(path, of=str(path), keep=True) if path else nullcontext()


def _suit_threads(model: str, samples: Samples) -> None:
    """As for the network that all methods are given."""
    import torch

    from ..rivals.networks import make_network
    from .threads import suit_threads

    some = samples.subset(torch.arange(min(2, len(samples))))
    suit_threads(make_network(model, some, seed=0))


def _chosen(text: str) -> list[Method]:
    import difflib

    from ..errors import InputError
    from ..rivals import METHODS, PAPER

    groups = {"all": list(METHODS), "paper": list(PAPER)}
    words = [word.strip() for word in text.lower().split(",") if word.strip()]
    names = list(dict.fromkeys(name for word in words for name in groups.get(word, [word])))
    for name in names:
        if name not in METHODS:
            near = difflib.get_close_matches(name, METHODS, n=2)
            hint = f"; did you mean {' or '.join(near)}?" if near else ""
            raise InputError(
                f"methods must be 'all', 'paper' or some of {', '.join(METHODS)}, found "
                f"{name!r}{hint}"
            )
    if not names:
        raise InputError("methods must name at least one method, found none")
    return [METHODS[name] for name in names]


def _without_nan(setting: dict[str, object], rows: list[Row], trials: list[Trial]) -> object:
    """NaN is no JSON."""
    from ..rivals.summary import places

    content = {
        "setting": setting,
        "where_differs": places(trials),
        "methods": [asdict(row) for row in rows],
        "trials": [asdict(trial) for trial in trials],
    }
    return json.loads(json.dumps(content), parse_constant=lambda _: None)
