"""``dos demo``: see it work, without a download."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from .bars import bar

__all__ = ["demo"]

TITLES = {"cnn": "CNN", "random_oversampling": "random over-sampling", "dos": "DOS"}


def demo(
    trials: Annotated[int, typer.Option(min=1, help="Trainings of each method.")] = 5,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds T, after as many plain ones.")] = 20,
    seed: Annotated[int, typer.Option(help="Seed of the first trial.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Imbalanced digits: plain CNN, random over-sampling and DOS side by side.

    Four of the ten classes, drawn by the seed, lose 90 % of their training samples. Needs no
    download.
    """
    import torch  # here, so that help and errors need not wait for it

    from ..demo import METHODS, run_demo

    torch.set_num_threads(1)  # so small a network gains nothing from threads on a free machine,
    # and on a busy one they wait for each other many times longer than they work
    with bar() as progress:
        task = progress.add_task("training", total=trials * len(METHODS))
        result = run_demo(
            trials=trials, seed=seed, rounds=rounds, on_training=lambda: progress.advance(task)
        )
    if as_json:
        print(json.dumps(result, indent=2))
        return
    plural = "s" if trials > 1 else ""
    title = f"Digits, four classes reduced by 90 %: {trials} trial{plural}, mean ± sd"
    table = Table(title=title, box=SIMPLE, pad_edge=False)  # fits 80 columns
    for heading in ("", "precision", "recall", "F1", "AUPRC"):
        table.add_column(heading, justify="right" if heading else "left", overflow="fold")
    for group in ("minority", "majority"):
        table.add_row(f"[bold]{group} classes")
        for method in METHODS:
            measured = result[method][group]
            cells = [
                f"{measured[m]:.3f} ± {measured[f'{m}_sd']:.3f}".replace("0.", ".")
                for m in ("precision", "recall", "f1", "auprc")
            ]
            table.add_row(TITLES[method], *cells, end_section=method == METHODS[-1])
    Console().print(table)
