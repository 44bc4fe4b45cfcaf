"""Each method's best learning rate, out of what `studies.py` and `rates.py` found on validation.

    python experiments/choose_rates.py results/studies > src/deep_oversampling/paper/rates.csv

Best is the highest mean F1: of minority and majority classes over the three reduction rates where
four classes are reduced, of all classes otherwise, over the seeds that all rates of the method
were tried with. All rates fall by the same cosine.
"""

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np

NAMES = {"mnist": "mnist", "back-rotation": "mnist-back-rotation", "svhn": "svhn"}
Found = tuple[str, str, str, float, int, float]  # set, kind, method, rate, seed, F1


def reduced(file: Path) -> Iterator[Found]:
    for line in map(json.loads, file.read_text().splitlines()):
        if line.get("study") == "R9 schedule" and line["cosine"]:
            f1 = np.mean([line[group]["f1"] for group in ("minority", "majority")])
            yield NAMES[line["set"]], "drop", line["method"], line["lr"], line["seed"], float(f1)


def others(file: Path) -> Iterator[Found]:
    for line in map(json.loads, file.read_text().splitlines()):
        if "setting" not in line:
            continue
        setting = line["setting"]
        name, _, copies = file.stem.rpartition("-")[0].partition("-x")
        kind = f"x{copies}" if copies else "none"  # of a set that is even, or nearly
        f1 = float(np.mean([value for value in line["measures"]["f1"] if value is not None]))
        yield name, kind, line["method"], setting["learning_rate"], line["seed"], f1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("studies", type=Path)
    folder = parser.parse_args().studies
    scores = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))  # of rate, of seed
    found = [one for file in sorted(folder.glob("*.jsonl")) for one in reduced(file)]
    found += [one for file in sorted(folder.glob("rates/*.jsonl")) for one in others(file)]
    for name, kind, method, rate, seed, f1 in found:
        scores[name, kind, method][rate][seed].append(f1)
    print("data,kind,method,rate")
    for (name, kind, method), of in sorted(scores.items()):
        seeds = set.intersection(*map(set, of.values()))
        means = {rate: np.mean([np.mean(tried[s]) for s in seeds]) for rate, tried in of.items()}
        best = max(means, key=lambda rate: means[rate])
        told = ", ".join(f"{rate:g} {mean:.4f}" for rate, mean in sorted(means.items()))
        print(f"{name} {kind} {method}: {told}; {len(seeds)} seeds", file=sys.stderr)
        print(f"{name},{kind},{method},{best:g}")


if __name__ == "__main__":
    main()
