"""Trials that a file keeps: what it has, and what is added, line by line as they end."""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

Job = TypeVar("Job")
Line = dict[str, Any]


def kept(out: Path, key: str) -> list[Line]:
    """The lines of trials, which have that key; headers have not."""
    lines = [json.loads(text) for text in out.read_text().splitlines()] if out.exists() else []
    return [line for line in lines if key in line]


def recorded(
    trial: Callable[[Job], Line], jobs: Sequence[Job], out: Path, processes: int
) -> Iterator[Line]:
    """Every job's line, several at once; each is written when it is there."""
    # not forked: who has looked at a GPU cannot be
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        for line in pool.map(trial, jobs):
            with out.open("a") as file:
                file.write(json.dumps(line) + "\n")
            print(line, file=sys.stderr, flush=True)
            yield line
