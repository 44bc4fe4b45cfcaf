"""``dos data``: what sets there are, fetched, checked and looked at."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.box import SIMPLE
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from .showing import cell, say

if TYPE_CHECKING:
    from ..data import Splits
    from ..samples import Samples

__all__ = ["Cache", "DataDir", "data"]

data = typer.Typer(help="Sets of pictures: list, fetch, verify, show.", no_args_is_help=True)

DataDir = Annotated[
    Path | None,
    typer.Option(help="Folder of the official files.", envvar="DOS_DATA", show_default="the cache"),
]
Cache = Annotated[
    Path | None,
    typer.Option(help="Folder of decoded pictures.", envvar="DOS_CACHE", show_default="the cache"),
]


@data.command("list")
def list_sets(data_dir: DataDir = None, cache: Cache = None) -> None:
    """The sets that are known by name, and which of them are here."""
    from ..data.cache import cache_folder, data_folder
    from ..data.official.catalogue import CATALOGUE

    folder = data_folder(data_dir)
    table = Table(box=SIMPLE, pad_edge=False)
    for heading in ("name", "training + test samples", "here"):
        table.add_column(heading)
    for source in CATALOGUE.values():
        here = [(folder / file.path).is_file() for file in source.files]
        words = "yes" if all(here) else f"{sum(here)} of {len(here)} files" if any(here) else "no"
        if source.made_from and not all(here):
            words = f"re-created from {source.made_from}"
        table.add_row(source.name, source.about, words)
    Console().print(table)
    say(f"official files: {folder}")
    say(f"decoded pictures: {cache_folder(cache)}")


@data.command()
def fetch(name: str, data_dir: DataDir = None) -> None:
    """Download the official files of a set; what broke off goes on where it stopped."""
    from ..data.cache import data_folder
    from ..data.official.download import fetch

    console = Console(stderr=True)
    progress = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    with progress:
        tasks: dict[str, int] = {}

        def on_progress(file: str, done: int, total: int | None) -> None:
            if file not in tasks:
                tasks[file] = progress.add_task(file, total=total)
            progress.update(tasks[file], completed=done, total=total)  # type: ignore[arg-type]

        result = fetch(name.removesuffix("-full"), data_dir, on_progress)
    for file in result.new:
        print(f"fetched {file.path}")
    for note in result.notes:
        print(note)
    where = f"is in {data_folder(data_dir)}" if result.source.files else "needs no files"
    print(f"{result.source.title} {where}: {result.source.terms}")


@data.command()
def verify(
    name: Annotated[str | None, typer.Argument(help="A set; left out: all.")] = None,
    data_dir: DataDir = None,
) -> None:
    """Compare files with the official ones; exit code 1 if one that should be there is not so."""
    from ..data.official.catalogue import CATALOGUE, look_up
    from ..data.official.download import State, in_words, verify

    bad = {State.DIFFERS} if name is None else {State.DIFFERS, State.MISSING}
    good = True
    for source in CATALOGUE.values() if name is None else [look_up(name.removesuffix("-full"))]:
        if not source.files:
            print(f"{source.name}: has no files, it comes with scikit-learn")
        for file, state in verify(source.name, data_dir):
            say(f"{source.name}: {state}: {in_words(source, file, state)}")
            good &= state not in bad
    raise typer.Exit(0 if good else 1)


@data.command()
def show(
    source: Annotated[str, typer.Argument(help="The name of a set, a folder, a manifest, arrays.")],
    picture: Annotated[
        Path | None,
        typer.Option(help="PNG of samples of each class.", show_default="NAME-classes.png"),
    ] = None,
    imbalance: Annotated[
        str, typer.Option(help="drop:4:0.99, gaussian:0.2, exp:100, step:10 or none.")
    ] = "none",
    seed: Annotated[int, typer.Option(help="Of the imbalance.")] = 0,
    index: Annotated[
        Path | None, typer.Option(help="Write a JSON file that re-creates the subset.")
    ] = None,
    size: Annotated[int | None, typer.Option(min=1, help="Side of the pictures.")] = None,
    strict: Annotated[bool, typer.Option(help="Stop at a picture that cannot be read.")] = False,
    data_dir: DataDir = None,
    cache: Cache = None,
) -> None:
    """Shapes and class counts of a set or of your own data, and a picture of each class.

    dos data show pictures/ --size 64

    dos data show cifar10 --imbalance exp:100 --index cifar10-lt.json
    """
    from ..data import imbalanced, load, parse_protocol, save_index
    from ..data.contact_sheet import is_image, save_contact_sheet
    from ..data.load import check_size

    protocol = parse_protocol(imbalance)  # a slip of the pen is found before anything is decoded
    console = Console(stderr=True)
    progress = Progress(console=console, transient=True, disable=not console.is_terminal)
    with progress:
        task = progress.add_task("decoding", total=None, visible=False)

        def on_progress(done: int, total: int) -> None:
            progress.update(task, completed=done, total=total, visible=True)

        splits = load(
            source,
            data_dir=data_dir,
            cache=cache,
            size=size,
            strict=strict,
            on_progress=on_progress,
        )
    check_size(splits, size)
    subset = imbalanced(splits.train, protocol, seed=seed, source=splits.name)
    _print_splits(splits, subset.samples, imbalance)
    if index:
        save_index(subset, index)
        say(f"index of the subset: {index}")
    if picture or is_image(subset.samples):
        picture = picture or Path(f"{splits.name.lower().replace(' ', '-')}-classes.png")
        save_contact_sheet(subset.samples, picture)
        say(f"samples of each class: {picture}")


def _print_splits(splits: Splits, train: Samples, imbalance: str) -> None:
    parts = {"train": train, "validation": splits.validation, "test": splits.test}
    found = {name: samples for name, samples in parts.items() if samples is not None}
    shape = " × ".join(map(str, train.x.shape[1:]))
    say(f"{splits.name}: samples of {shape}, {str(train.x.dtype).removeprefix('torch.')}")
    if imbalance != "none":
        print(f"train: {len(train)} of {len(splits.train)} samples, {imbalance}")
    table = Table(box=SIMPLE, pad_edge=False)
    table.add_column("class")
    for name in found:
        table.add_column(name, justify="right")
    for j, label in enumerate(train.classes):
        table.add_row(cell(label), *(str(int(part.class_counts[j])) for part in found.values()))
    table.add_section()
    table.add_row("all", *(str(len(part)) for part in found.values()))
    Console().print(table)
    for one in splits.skipped[:10]:
        say(f"skipped {one.file}: {one.reason}")
    if splits.skipped:
        print(f"{len(splits.skipped)} unreadable pictures were skipped; --strict stops at them")
