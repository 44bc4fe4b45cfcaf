"""Trials that a file keeps: what it has, and what is added, line by line as they end."""

import json
import platform
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

import torch

Job = TypeVar("Job")
Line = dict[str, Any]


def write_header(out: Path, **facts: object) -> None:
    """When and on what the lines after it were made."""
    hardware = torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"
    facts |= {"hardware": hardware, "torch": torch.__version__}
    facts |= {"python": platform.python_version(), "date": time.strftime("%Y-%m-%d")}
    out.parent.mkdir(parents=True, exist_ok=True)
    with out.open("a") as file:
        file.write(json.dumps({"header": facts}) + "\n")


def kept(out: Path, key: str) -> list[Line]:
    """The lines of trials, which have that key; headers have not."""
    lines = [json.loads(text) for text in out.read_text().splitlines()] if out.exists() else []
    return [line for line in lines if key in line]


def recorded(
    trial: Callable[[Job], Line], jobs: Sequence[Job], out: Path, processes: int, **facts: object
) -> Iterator[Line]:
    """Every job's line, several at once, after a header; each is written when it is there."""
    if not jobs:
        return
    write_header(out, **facts)
    # not forked: who has looked at a GPU cannot be
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        for line in pool.map(trial, jobs):
            with out.open("a") as file:
                file.write(json.dumps(line) + "\n")
            print(line, file=sys.stderr, flush=True)
            yield line
