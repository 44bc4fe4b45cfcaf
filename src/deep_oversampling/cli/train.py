"""``dos train``: from a folder of pictures, or any data, to a model in a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from .data import Cache, DataDir

__all__ = ["train"]

_STOPPED = 130  # as the shell has it for ctrl-C


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
        typer.Option(help="Neighbours, or auto: tried on a part of the data.", show_default="5"),
    ] = None,
    rounds: Annotated[
        int | None,
        typer.Option(min=1, help="T, after as many plain ones.", show_default="by size"),
    ] = None,
    batch_size: Annotated[int | None, typer.Option(min=1, show_default="60")] = None,
    learning_rate: Annotated[
        float | None, typer.Option(help="Of SGD with momentum 0.9.", show_default="0.01")
    ] = None,
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
    """
    given = {
        "data": data,
        "model": model,
        "pretrained": pretrained,
        "weights": None if weights is None else str(weights.absolute()),
        "k": int(k) if k is not None and k.strip().lstrip("-").isdigit() else k,
        "rounds": rounds,
        "batch_size": batch_size,
        "learning_rate": learning_rate,
        "size": size,
        "validation": validation,
        "augment": augment,
        "baseline": None if no_baseline is None else not no_baseline,
        "seed": seed,
        "device": device,
        "data_dir": None if data_dir is None else str(data_dir.absolute()),
    }
    raise typer.Exit(_train(given, config, out, overwrite, cache))


def _train(
    given: dict[str, Any],
    config: Path | None,
    out: Path | None,
    overwrite: bool,
    cache: Path | None,
) -> int:
    from ..data.load import NAMES
    from ..report import save_story, write_report
    from ..runs import Settings, prepare, read_settings
    from ..runs import train as train_task
    from ..runs.folder import REPORT, new_folder, save_run
    from ..runs.record import make_record
    from ..runs.settings import check_trusted
    from ..runs.telling import tell
    from .loading import load_shown
    from .threads import suit_threads
    from .train_tables import Live, print_measures, print_task

    options = read_settings(config) if config else {}
    if given["model"] is None:
        check_trusted(options, config)
    options |= {name: value for name, value in given.items() if value is not None}
    if "data" not in options:
        raise typer.BadParameter("name the data, or a file of options that does (--config)")
    if options["data"] not in NAMES and Path(options["data"]).exists():
        options["data"] = str(Path(options["data"]).absolute())  # from wherever it is made again
    settings = Settings(**options)
    splits = load_shown(settings.data, data_dir=settings.data_dir, cache=cache, size=settings.size)
    if settings.k == "auto":
        print("choosing k and r: every candidate is trained on four fifths of the samples …")
    task = prepare(settings, splits)
    suit_threads(task.network)
    print_task(task)
    folder = new_folder(out, splits.name, task.settings, overwrite=overwrite)
    with Live(task) as live:
        outcome = train_task(task, live.on_round)
    if outcome is None:
        _remove(folder)
        live.say("dos: stopped before the first round was done; nothing was kept")
        return _STOPPED
    record = make_record(task, outcome, held_out=splits.validation is None)
    save_run(folder, record, outcome.networks)
    story = tell(task, outcome)
    save_story(story, folder)
    write_report(story, folder / REPORT)
    print_measures(outcome.measures, f"{splits.name}: {len(task.validation)} validation samples")
    print(f"run: {folder}")
    print(f"report: {folder / REPORT}")
    if outcome.status == "finished":
        return 0
    live.say(f"dos: {outcome.status}; what was trained until then is kept")
    return 1 if outcome.error else _STOPPED


def _remove(folder: Path) -> None:
    """Only the settings are in it."""
    (folder / "config.toml").unlink(missing_ok=True)
    folder.rmdir()
