"""Cells of the paper's tables once more, beside the trials that are stored: did they move?

    python experiments/paper_again.py OUT --data-dir DATA [--sets mnist svhn] [--trials 10]

Four classes reduced by p, as in the table over reduction rates. After a change of how networks are
trained, each cell is run again under OUT and paired with its stored trials, seed by seed: the same
subset and initial weights. Nothing is chosen by it. A Markdown table; what OUT has already is not
run again.
"""

import argparse
from dataclasses import replace
from pathlib import Path

from deep_oversampling.paper.experiments import REDUCED_SETS, TABLES, Experiment
from deep_oversampling.paper.run import Laboratory
from deep_oversampling.rivals.summary import cell, compared
from deep_oversampling.rivals.trials import Trial, read_trials

STORED = Path(__file__).parents[1] / "results" / "trials"
METHODS = ("cnn", "dos")


def cells(sets: list[str]) -> list[Experiment]:
    """Of the table over reduction rates, with two of its methods."""
    experiments = TABLES["reduction"].experiments
    return [replace(one, methods=METHODS) for one in experiments if one.data in sets]


def by_seed(trials: list[Trial], method: str) -> dict[int, Trial]:
    return {one.seed: one for one in trials if one.method == method and not one.left_out}


def line(name: str, method: str, before: dict[int, Trial], after: dict[int, Trial]) -> str:
    seeds = sorted(before.keys() & after.keys())
    told = [name, method, str(len(seeds))]
    for group in ("minority", "majority"):
        pairs = [(after[s].mean("f1", group), before[s].mean("f1", group)) for s in seeds]
        new, old = (cell(list(values)).mean for values in zip(*pairs, strict=True))
        difference, p = compared(pairs)
        told.append(f"{old:.3f} → {new:.3f} ({difference:+.4f}, p = {p:.3f})")
    return f"| {' | '.join(told)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--sets", nargs="+", default=list(REDUCED_SETS), choices=REDUCED_SETS)
    parser.add_argument("--trials", type=int, default=10)
    options = parser.parse_args()
    laboratory = Laboratory(options.out, trials=options.trials, data_dir=options.data_dir)
    print("| cell | method | trials | rare classes' F1 | frequent classes' F1 |")
    print("|---|---|---|---|---|")
    for experiment in cells(options.sets):
        job = laboratory.job(experiment)
        after = job.stored + list(laboratory.run(job))
        before = read_trials(STORED / f"{experiment.name}.jsonl")
        for method in METHODS:
            pair = by_seed(before, method), by_seed(after, method)
            print(line(experiment.name, method, *pair), flush=True)


if __name__ == "__main__":
    main()
