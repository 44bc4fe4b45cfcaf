"""``dos train``: from a folder of pictures, or any data, to a model in a folder."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import DOSError, InputError, TrainingError
from .data import Cache, DataDir
from .showing import say
from .signals import Signals

if TYPE_CHECKING:
    from ..data import Splits
    from ..peers import Peers
    from ..runs import Outcome, Settings, Task
    from ..runs.unfinished import Unfinished
    from ..selection import Candidate
    from .train_tables import Live

__all__ = ["train"]


def train(
    data: Annotated[
        str | None,
        typer.Argument(help="A folder of pictures, a manifest, arrays, the name of a set."),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help="auto, lenet, mlp, resnet18, resnet32, timm:NAME or FILE.py:FACTORY.",
            show_default="auto",
        ),
    ] = None,
    pretrained: Annotated[
        bool | None, typer.Option("--pretrained", help="Start from the weights that timm has.")
    ] = None,
    weights: Annotated[
        Path | None, typer.Option(help="A safetensors file to start from, where names match.")
    ] = None,
    k: Annotated[
        str | None,
        typer.Option(
            help="Neighbours, or auto: tried on a part of the data.",
            show_default="5; 0 with --augment and no --pieces",
        ),
    ] = None,
    cautious: Annotated[
        bool | None,
        typer.Option(help="Neighbours once classes are known.", show_default="without --k"),
    ] = None,
    rounds: Annotated[
        int | None,
        typer.Option(min=1, help="T, after as many plain ones.", show_default="by size"),
    ] = None,
    patience: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Stop after so many rounds of DOS that are no better on validation.",
            show_default="all rounds are made",
        ),
    ] = None,
    batch_size: Annotated[int | None, typer.Option(min=1, show_default="60")] = None,
    learning_rate: Annotated[
        float | None, typer.Option(help="Of SGD with momentum 0.9.", show_default="0.01")
    ] = None,
    schedule: Annotated[
        str | None,
        typer.Option(
            help="Of the learning rate: constant, or cosine, which falls to 0.",
            show_default="constant",
        ),
    ] = None,
    weight_decay: Annotated[float | None, typer.Option(show_default="0")] = None,
    size: Annotated[
        int | None, typer.Option(min=1, help="Side of pictures.", show_default="by the pictures")
    ] = None,
    validation: Annotated[
        float | None,
        typer.Option(
            help="Share to hold out, where the data has no validation split.", show_default="0.2"
        ),
    ] = None,
    augment: Annotated[
        bool | None,
        typer.Option(
            "--augment/--no-augment",
            help="Shift and mirror at random.",
            show_default="for colour pictures of 32 pixels and more",
        ),
    ] = None,
    pieces: Annotated[
        bool | None,
        typer.Option(
            "--pieces/--no-pieces",
            help="Pictures show pieces of neighbours: for deep networks.",
            show_default="no-pieces",
        ),
    ] = None,
    tau: Annotated[
        float | None,
        typer.Option(
            help="Margin of rare classes: the larger, the more is taken for them.",
            show_default="0; 0.5 with --pieces",
        ),
    ] = None,
    no_baseline: Annotated[
        bool | None, typer.Option("--no-baseline", help="No plain training beside it.")
    ] = None,
    seed: Annotated[int | None, typer.Option(show_default="0")] = None,
    device: Annotated[str | None, typer.Option(show_default="a GPU if there is one")] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the run.", show_default="runs/NAME-1, …")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the run there.")] = False,
    config: Annotated[
        Path | None, typer.Option(help="Options from a TOML file; those given here come first.")
    ] = None,
    data_dir: DataDir = None,
    cache: Cache = None,
) -> None:
    """Train DOS on your data, and plain training beside it; keep everything in a folder.

    dos train pictures/

    dos train pictures/ --model resnet18 --size 128 --k auto --out runs/first

    dos train --config runs/first/config.toml   (the same run again)

    torchrun --nproc-per-node 4 -m deep_oversampling train pictures/ --out runs/first

    A run that was stopped or killed goes on where it was when --out names its folder.
    """
    given = {
        "data": data,
        "model": model,
        "pretrained": pretrained,
        "weights": None if weights is None else str(weights.absolute()),
        "k": int(k) if k is not None and k.strip().lstrip("-").isdigit() else k,
        "cautious": cautious,
        "rounds": rounds,
        "patience": patience,
        "batch_size": batch_size,
        "learning_rate": learning_rate,
        "weight_decay": weight_decay,
        "schedule": schedule,
        "size": size,
        "validation": validation,
        "augment": augment,
        "pieces": pieces,
        "tau": tau,
        "baseline": None if no_baseline is None else not no_baseline,
        "seed": seed,
        "device": device,
        "data_dir": None if data_dir is None else str(data_dir.absolute()),
    }
    with Signals() as signals:
        try:
            code = _train(given, config, out, overwrite, cache, signals)
        except KeyboardInterrupt:  # before there was anything to keep, or for the second time
            print("dos: stopped; what was kept before is as it was", file=sys.stderr)
            code = signals.exit_code
    raise typer.Exit(code)


def _train(
    given: dict[str, Any],
    config: Path | None,
    out: Path | None,
    overwrite: bool,
    cache: Path | None,
    signals: Signals,
) -> int:
    from ..data.load import NAMES
    from ..runs import Settings, read_settings
    from ..runs.settings import check_trusted
    from .joining import joined

    options = read_settings(config) if config else {}
    if given["model"] is None:
        check_trusted(options, config)
    options |= {name: value for name, value in given.items() if value is not None}
    if "data" not in options:
        raise typer.BadParameter("name the data, or a file of options that does (--config)")
    if options["data"] not in NAMES and Path(options["data"]).exists():
        options["data"] = str(Path(options["data"]).absolute())  # from wherever it is made again
    if not config:
        _check_use(options)
    settings = Settings(**options)
    with joined(settings.device, out) as peers:
        return _train_with(peers, settings, out, overwrite, cache, signals)


def _check_use(options: dict[str, Any]) -> None:
    """Options that never can be are wrong use; data, or a file of options, may be at fault too."""
    from ..runs import Settings

    try:
        Settings(**options | {"data": "any"})
    except InputError as error:
        raise typer.BadParameter(str(error)) from None


def _train_with(
    peers: Peers,
    settings: Settings,
    out: Path | None,
    overwrite: bool,
    cache: Path | None,
    signals: Signals,
) -> int:
    from ..runs.unfinished import Unfinished, begin, check_free, task_in_words
    from ..runs.without_gpu import largest_side
    from .loading import load_shown
    from .threads import suit_threads
    from .train_tables import print_task

    peers.from_first(lambda: None if overwrite else check_free(out))
    splits = peers.after_first(
        lambda: load_shown(
            settings.data,
            data_dir=settings.data_dir,
            cache=cache,
            size=settings.size,
            most=largest_side(settings),
        )
    )
    task = _prepared(peers, settings, splits, None if overwrite else out)
    peers.check_alike(task_in_words(task))
    suit_threads(task.network)
    print_task(task)
    with peers.after_first(
        lambda: begin(out, splits.name, task, overwrite=overwrite),
        others=lambda: Unfinished(out or Path()),  # which only the first one writes to
    ) as unfinished:
        try:
            return _finish(peers, task, unfinished, signals, held_out=splits.validation is None)
        except DOSError as error:
            hopeless = isinstance(error, TrainingError) or not unfinished.has_checkpoint
            if hopeless and peers.first:
                _remove(unfinished)  # nothing to go on from: other settings may be tried there
            raise


def _prepared(peers: Peers, settings: Settings, splits: Splits, out: Path | None) -> Task:
    """With the k that the first process has chosen, now or when the run in ``out`` was begun."""
    from ..runs import prepare
    from ..runs.unfinished import candidates_in

    chosen = peers.from_first(lambda: candidates_in(out))
    if settings.k == "auto" and not chosen:
        what = "k" if settings.pieces else "k and r"
        print(f"choosing {what}: every candidate is trained on four fifths of the samples …")
    made: list[Task] = []

    def prepare_first() -> Sequence[Candidate]:
        made.append(prepare(settings, splits, chosen))
        return made[0].candidates

    candidates = peers.from_first(prepare_first)
    return made[0] if peers.first else prepare(settings, splits, candidates)


def _finish(
    peers: Peers, task: Task, unfinished: Unfinished, signals: Signals, *, held_out: bool
) -> int:
    """Train, or go on, and keep what came of it; the first process alone has something to keep."""
    from ..runs import train as train_task
    from .train_tables import Live

    with Live(task) as live, signals.asking(unfinished.stop):
        outcome = train_task(
            task,
            live.on_round,
            unfinished=unfinished,
            on_found=live.on_found,
            on_steps=live.on_steps,
            peers=peers,
        )
    return peers.from_first(lambda: _keep(task, outcome, unfinished, signals, live, held_out))


def _keep(
    task: Task,
    outcome: Outcome | None,
    unfinished: Unfinished,
    signals: Signals,
    live: Live,
    held_out: bool,
) -> int:
    from ..report import save_story, write_report
    from ..runs.folder import save_run
    from ..runs.places import CONFIG, REPORT
    from ..runs.record import make_record
    from ..runs.telling import tell
    from ..runs.training import FINISHED
    from ..zoo import is_trusted
    from .train_tables import print_measures, waited_in_vain

    folder = unfinished.run
    own = "" if is_trusted(task.settings.model) else f" --model {_quoted(task.settings.model)}"
    go_on = f"to go on: dos train --config {_quoted(folder / CONFIG)} --out {_quoted(folder)}{own}"
    if outcome is None:
        if unfinished.has_checkpoint:
            live.say(f"dos: stopped before the first round was done; {go_on}")
        else:
            _remove(unfinished)
            live.say("dos: stopped before the first round was done; nothing was kept")
        return signals.exit_code
    record = make_record(task, outcome, held_out=held_out)
    save_run(folder, record, outcome.networks)
    story = tell(task, outcome, record)
    save_story(story, folder)
    write_report(story, folder / REPORT)
    title = f"{task.splits.name}: {len(task.validation)} validation samples"
    print_measures(outcome.measures, title)
    history = outcome.histories["dos"]
    for found in (*history.mishaps, *waited_in_vain(task.plan, history)):
        live.say(f"dos: {found}")
    say(f"run: {folder}")
    say(f"report: {folder / REPORT}")
    stopped = outcome.status != FINISHED and not outcome.error
    if stopped:
        live.say(f"dos: {outcome.status}; what was trained until then can be used; {go_on}")
        return signals.exit_code
    unfinished.finish()
    if outcome.error:
        live.say(f"dos: {outcome.status}; what was trained until then is kept")
    return 1 if outcome.error else 0


def _quoted(path: Path | str) -> str:
    return shlex.quote(str(path))


def _remove(unfinished: Unfinished) -> None:
    """Only the settings are in it, beside what there was before."""
    with suppress(DOSError, OSError):  # it may be read-only by now, or not empty
        unfinished.finish()
        (unfinished.run / "config.toml").unlink(missing_ok=True)
        unfinished.run.rmdir()
