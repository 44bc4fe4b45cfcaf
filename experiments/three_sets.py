"""The default rule on the paper's imbalanced sets: CNN, random over-sampling and DOS, on test.

    python experiments/three_sets.py DATA OUT.jsonl [--sets mnist] [--seeds 10] [--processes 2]

k = 5, λ and its limit as ``fit`` has them, learning rate 0.01, the paper's rounds and batch
sizes. Nothing is chosen here; the test set is read once per training, after its last round.
SVHN trains on the 63,257 images that did not validate the rule.
"""

import argparse
import inspect
import time
from pathlib import Path

import torch

from deep_oversampling import fit
from pull_rule import SETTINGS, evaluate
from recording import recorded
from sets import SETS
from stacked import Member, imbalanced

Job = tuple[str, Member, Path]


def trial(job: Job) -> dict[str, object]:
    """One training, as a user would run it."""
    name, member, data = job
    torch.set_num_threads(1)
    p, rounds, batch_size = SETTINGS[name]
    pool, _, test = SETS[name](data)
    subset, plan, minority, network = imbalanced(pool, member, p)
    begun = time.perf_counter()
    fit(network, subset, plan, rounds=rounds, batch_size=batch_size, seed=member.seed)
    seconds = time.perf_counter() - begun
    line = {"set": name, "p": p, "method": member.method, "seed": member.seed}
    line |= {"lr": member.lr, "seconds": round(seconds, 1)}
    return line | evaluate(network, minority, test.to(network.device))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--sets", nargs="+", default=list(SETTINGS), choices=SETTINGS)
    parser.add_argument("--methods", nargs="+", default=["cnn", "ros", "dos"])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    defaults = {name: p.default for name, p in inspect.signature(fit).parameters.items()}
    chosen = {name: defaults[name] for name in ("pull", "pull_limit")}
    facts = {"judged_on": "test", "k": 5, "processes": options.processes, **chosen}
    jobs: list[Job] = [
        (name, Member(seed, 0.01, method), options.data)
        for name in options.sets
        for method in options.methods
        for seed in range(options.seeds)
    ]
    for line in recorded(trial, jobs, options.out, options.processes, **facts):
        print(line["set"], line["method"], line["seed"], line["minority"]["f1"])


if __name__ == "__main__":
    main()
