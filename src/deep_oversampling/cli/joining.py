"""``dos train`` on several processes: the first speaks, the others write down what they say."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ..errors import DOSError, InputError
from .showing import say

if TYPE_CHECKING:
    from ..peers import Peers

__all__ = ["joined"]


@contextmanager
def joined(device: str | None, out: Path | None) -> Iterator[Peers]:
    """The processes that a launcher has started, or this one alone."""
    from ..peers import join_peers

    with join_peers(device) as peers:
        try:
            if peers.size > 1 and out is None:
                peers.told = True
                raise InputError(
                    "several processes must be told the folder of their run (--out), found none; "
                    "name one, so that a process that is started again knows where to go on"
                )
            with nullcontext() if peers.first or out is None else _written_down(out, peers):
                yield peers
        except DOSError as error:
            if peers.first:
                raise
            if peers.told:  # by the first
                raise typer.Exit(1) from None
            raise DOSError(f"process {peers.rank}: {error}") from None


@contextmanager
def _written_down(out: Path, peers: Peers) -> Iterator[None]:
    from ..runs.places import LOGS
    from ..writing import refuse_links

    path = out / LOGS / f"process-{peers.rank}.txt"
    refuse_links([path.parent, path])
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        log = path.open("a", encoding="utf-8", buffering=1)  # line by line: it may be killed
    except OSError as error:
        raise InputError(f"{path} must be a file that can be written to: {error}") from None
    with log, redirect_stdout(log), redirect_stderr(log):
        try:
            yield
        except DOSError as error:
            say(f"dos: {error}")
            raise
