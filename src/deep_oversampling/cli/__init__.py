"""The command ``dos``; the only place that prints."""

from __future__ import annotations

import io
import logging
import sys
import traceback
import warnings
from typing import Annotated

import typer

from .. import __version__
from ..errors import DOSError
from .bench import bench
from .compare import compare
from .data import data
from .demo import demo
from .reproduce import reproduce
from .showing import columns, narrow, say, shown
from .train import train
from .use import evaluate, export, info, predict, report

__all__ = ["app", "main"]

_log = logging.getLogger("deep_oversampling")

app = typer.Typer(
    help="Deep Over-sampling: train any neural classifier on imbalanced data.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None if narrow() else "rich",
    context_settings={"terminal_width": columns()} if narrow() else {},  # else 50 at least
)
for command in (train, evaluate, predict, info, export, report):
    app.command()(command)
app.command()(demo)
app.command()(compare)
app.command()(bench)
app.command()(reproduce)
app.add_typer(data, name="data")


def _version(wanted: bool) -> None:
    if wanted:
        print(f"deep-oversampling {__version__}")
        raise typer.Exit


@app.callback()
def dos(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say and leave.")
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Show the traceback of errors.")
    ] = False,
) -> None:
    """Deep Over-sampling: train any neural classifier on imbalanced data.

    dos train pictures/   a folder for each class

    dos predict runs/pictures-1 new/*.jpg
    """
    if not _log.handlers:
        _log.addHandler(_Told())
    if verbose:
        _log.setLevel(logging.DEBUG)


class _Told(logging.Handler):
    """What the library logs, as everything else that ``dos`` has to say."""

    def emit(self, record: logging.LogRecord) -> None:
        say(f"dos: {record.getMessage()}", file=sys.stderr)


def main() -> None:
    """Run ``dos``; what goes wrong is one line and exit code 1."""
    for stream in (sys.stdout, sys.stderr):  # a name that the terminal cannot show is no reason
        if isinstance(stream, io.TextIOWrapper):  # to stop
            stream.reconfigure(errors="backslashreplace")
    warnings.formatwarning = lambda message, *_, **__: (
        f"dos: {shown(str(message))}\n"
    )  # no source lines
    try:
        app()
    except Exception as error:
        if _log.getEffectiveLevel() == logging.DEBUG:
            traceback.print_exc()
        text = str(error)
        if not isinstance(error, DOSError | OSError):  # not on purpose
            first = text.strip().partition("\n")[0]
            text = f"{type(error).__name__}: {first}; dos -v shows where, please tell us"
        say(f"dos: {text}", file=sys.stderr)
        sys.exit(1)
