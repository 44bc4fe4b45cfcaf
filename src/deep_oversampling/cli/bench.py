"""``dos bench``: how fast is it, here?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE
from rich.console import Console
from rich.markup import escape
from rich.table import Table

if TYPE_CHECKING:
    from ..bench.records import Note, Record, Setting

__all__ = ["bench"]


def bench(
    parts: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PART]...",
            help="steps, fit, search, evaluation, scaling, cell; left out: all of them.",
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Smaller, and fewer repeats.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    out: Annotated[Path | None, typer.Option(help="Write the JSON object to a file.")] = None,
    device: Annotated[str | None, typer.Option(show_default="a GPU if there is one")] = None,
    threads: Annotated[
        int | None,
        typer.Option(min=1, help="Of the CPU.", show_default="1; beside a GPU, all"),
    ] = None,
) -> None:
    """Speed: DOS beside plain training, our search and probes beside others.

    All data is generated, so nothing has to be there. docs/speed.md says what is measured.

    dos bench --quick

    dos bench steps scaling --out speed.json
    """
    import torch

    from ..bench import choose, measure_part
    from ..bench.records import check_writable, header, to_json, write
    from ..bench.sizes import sizes_for
    from ..bench.timing import limited
    from ..network import pick_device

    chosen, place = choose(parts or []), pick_device(device)
    if out:
        check_writable(out)
    # small networks gain nothing from threads, and on a busy machine they wait for each other;
    # beside a GPU the threads are those of scikit-learn, which uses them well
    threads = threads or (torch.get_num_threads() if place.type == "cuda" else 1)
    about, sizes = header(place, threads, quick=quick), sizes_for(place, quick=quick)
    console, found = Console(stderr=True), []
    if not as_json:
        print(_in_one_line(about))
    with limited(threads):
        for name in chosen:
            with console.status(name):
                measured = list(measure_part(name, place, sizes))
            found += measured
            if out:
                write(out, to_json(about, found))  # after every part: a stopped run keeps them
            if not as_json:
                _print(name, measured)
    if as_json:
        print(to_json(about, found))
    elif out:
        print(f"figures: {out}")


def _in_one_line(about: dict[str, Any]) -> str:
    hardware, versions = about["hardware"], about["versions"]
    place = hardware["gpu"] or hardware["cpu"]
    plural = "s" if hardware["threads"] > 1 else ""
    return f"{place}, {hardware['threads']} thread{plural}, torch {versions['torch']}"


def _print(name: str, measured: list[Record | Note]) -> None:
    from ..bench.records import Note, Record

    records = [one for one in measured if isinstance(one, Record)]
    print()
    if records:
        _print_table(name, records)
    for note in measured:
        if isinstance(note, Note):
            Console().print(escape(f"{name}: {note.text}"), highlight=False)


def _print_table(name: str, records: list[Record]) -> None:
    """Ratios first; what is the same in every row is said once, above."""
    from ..bench.records import in_words

    alike = set.intersection(*(set(one.setting.items()) for one in records))
    shared = {key: value for key, value in records[0].setting.items() if (key, value) in alike}
    rows = [_cells(one, shared) for one in records]
    table = Table(
        title=escape(": ".join(filter(None, [name, in_words(shared)]))),
        box=SIMPLE,
        padding=(0, 1, 0, 0),
        show_edge=False,
    )
    told = [heading for heading in rows[0] if any(row[heading] for row in rows)]
    for heading in told:
        right = heading in ("ratio", "value")
        table.add_column(heading, justify="right" if right else "left", no_wrap=right)
    for row in rows:
        table.add_row(*(escape(row[heading]) for heading in told))
    Console().print(table)


def _cells(one: Record, shared: Setting) -> dict[str, str]:
    from ..bench.records import in_words

    own = {key: value for key, value in one.setting.items() if key not in shared}
    return {
        "ratio": "" if one.ratio is None else f"{one.ratio:.2f}",
        "to": one.ratio_to or "",
        "what": one.what,
        "setting": in_words(own),
        "value": f"{one.value:,.0f}" if one.value >= 1000 else f"{one.value:.3g}",
        "unit": one.unit,
    }
