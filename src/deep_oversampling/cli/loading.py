"""Data loaded with a bar while pictures are decoded."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import Progress

if TYPE_CHECKING:
    from ..data import Splits

__all__ = ["load_shown"]


def load_shown(
    source: str,
    *,
    data_dir: Path | str | None,
    cache: Path | None,
    size: int | tuple[int, int] | None,
    most: int | None = None,
    grey: bool | None = None,
) -> Splits:
    from ..data import load

    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("decoding", total=None, visible=False)

        def on_progress(done: int, total: int) -> None:
            progress.update(task, completed=done, total=total, visible=True)

        return load(
            source,
            data_dir=data_dir,
            cache=cache,
            size=size,
            most=most,
            grey=grey,
            on_progress=on_progress,
        )
