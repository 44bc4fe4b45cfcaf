"""``dos reproduce``: the paper's tables, ours beside the printed numbers."""

from __future__ import annotations

import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape

from .bars import bar
from .data import Cache, DataDir
from .signals import Signals
from .workers import GpusPerTask, ProcessCount, RayAddress, chosen_place

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..paper.experiments import Experiment
    from ..paper.run import Laboratory

__all__ = ["reproduce"]

_FIGURES = "figures"  # typed like a table


def reproduce(
    tables: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[TABLE]...",
            help="classwise, datasets, baseline, reduction, over-k, balanced, runtime, figures; "
            "left out: all of them.",
        ),
    ] = None,
    trials: Annotated[int, typer.Option(min=1, help="Seeds 0, 1, ….")] = 10,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder of the results; a stopped run goes on there.",
            show_default="results; runs/quick with --quick",
        ),
    ] = None,
    page: Annotated[
        Path | None, typer.Option(help="The page of results.", show_default="OUT/results.md")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Everything in small: a look, not a result.")
    ] = False,
    render: Annotated[
        bool, typer.Option("--render", help="Only make the page, from the trials in the folder.")
    ] = False,
    device: Annotated[str | None, typer.Option(show_default="a GPU if there is one")] = None,
    data_dir: DataDir = None,
    cache: Cache = None,
    processes: ProcessCount = None,
    ray: RayAddress = None,
    gpus_per_task: GpusPerTask = 0.0,
) -> None:
    """Every table of the paper, beside the printed numbers; finished trials are not repeated.

    dos reproduce --quick

    dos reproduce reduction over-k --trials 10 --out results

    dos reproduce --render --out results --page docs/results.md
    """
    from ..paper.run import Laboratory
    from ..paper.store import check_results, copy_printed

    chosen = _chosen(tables or [])
    out = out or Path("runs/quick" if quick else "results")
    page = page or out / "results.md"
    failed: dict[str, str] = {}
    if render:
        check_results(out)
    else:
        place = chosen_place(
            processes=processes, ray=ray, gpus_per_task=gpus_per_task, device=device
        )
        laboratory = Laboratory(
            out,
            trials=trials,
            quick=quick,
            data_dir=data_dir,
            cache=cache,
            device=device,
            workers=place,
        )
        copy_printed(out)
        with Signals() as signals:
            try:
                with place:
                    for name in chosen:
                        _make(laboratory, name, failed)
                        _write(out, page, failed)  # after every table: of what is done, if stopped
            except KeyboardInterrupt:
                told = f"what is finished is in {out}; the same command goes on there"
                print(f"dos: stopped; {told}", file=sys.stderr)
                raise typer.Exit(signals.exit_code) from None
    _write(out, page, failed, last=True, tell_broken=render)
    if "page" not in failed:
        print(f"page: {page}")
    if failed:
        print("not made:", file=sys.stderr)
        for reason in dict.fromkeys(failed.values()):  # a set that is missing is named once
            what = "; ".join(one for one, why in failed.items() if why == reason)
            print(f"  {what}: {reason}", file=sys.stderr)
        raise typer.Exit(1)


def _chosen(names: list[str]) -> list[str]:
    from ..paper.experiments import TABLES

    known = [*TABLES, _FIGURES]
    for name in names:
        if name not in known:
            raise typer.BadParameter(f"tables must be some of {', '.join(known)}, found {name!r}")
    # where all are made, the longest is the last
    return list(dict.fromkeys(names or sorted(known, key=lambda name: name == "baseline")))


def _make(laboratory: Laboratory, name: str, failed: dict[str, str]) -> None:
    """Run what the table lacks; what cannot be run is noted, and the rest goes on."""
    from ..errors import DOSError
    from ..paper.experiments import LOOKS, TABLES
    from ..paper.settings import SETS

    parts: dict[str, Callable[[], None]] = {}
    if name == "datasets":
        parts = {one: partial(laboratory.look_at, one) for one in SETS}
    elif name == _FIGURES:
        parts = {one.name: partial(_look, laboratory, one) for one in LOOKS}
    else:
        parts = {one.name: partial(_run, laboratory, name, one) for one in TABLES[name].experiments}
    for what, make in parts.items():
        try:
            make()
        except DOSError as error:
            failed[f"{name}, {what}"] = str(error)


def _write(
    out: Path, page: Path, failed: dict[str, str], *, last: bool = False, tell_broken: bool = False
) -> None:
    """The page; figures, which take their time, only the last time.

    Broken lines are told where nothing is run: else they have been, with what is run again.
    """
    from ..errors import InputError
    from ..paper.figures import NoMatplotlib, draw_figures
    from ..paper.page import write_page
    from ..paper.store import read_stored

    try:
        if last:
            stored = read_stored(out)
            for note in stored.broken if tell_broken else ():
                print(f"dos: {note}", file=sys.stderr)
            draw_figures(stored, out)
    except NoMatplotlib as error:
        print(f"dos: {error}", file=sys.stderr)
    except InputError:  # the page fails by it, too, and says so
        pass
    try:
        write_page(out, page)
    except InputError as error:
        failed["page"] = str(error)


def _look(laboratory: Laboratory, experiment: Experiment) -> None:
    with Console(stderr=True).status(f"{_FIGURES}: {experiment.name}"):
        laboratory.look_into(experiment)


def _run(laboratory: Laboratory, table: str, experiment: Experiment) -> None:
    console = Console(stderr=True)
    what = f"{table}: {experiment.name}"
    with console.status(what):  # a set may have to be decoded
        job = laboratory.job(experiment)
    for note in job.notes:
        print(f"dos: {note}", file=sys.stderr)
    if not job.trials:
        return
    begun, left_out = time.perf_counter(), dict[str, str]()
    with bar(console) as progress:
        task = progress.add_task(escape(what), total=job.trials)
        for trial in laboratory.run(job):
            progress.advance(task)
            if trial.left_out:
                left_out[trial.method] = trial.left_out
    seconds = time.perf_counter() - begun
    print(f"{what}: {job.trials} trials in {seconds:.0f} s", file=sys.stderr, flush=True)
    for method, reason in left_out.items():
        print(f"dos: {what}: {method} is left out: {reason}", file=sys.stderr, flush=True)
