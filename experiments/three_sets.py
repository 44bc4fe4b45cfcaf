"""The default rule on the paper's imbalanced sets: CNN, random over-sampling and DOS, on test.

    python experiments/three_sets.py DATA OUT.jsonl [--seeds 10]

k = 5, λ and its limit as ``fit`` has them, learning rate 0.01, the paper's rounds and batch
sizes. Nothing is chosen here; the test set is read once per training, after its last round.
SVHN trains on the 63,257 images that did not validate the rule.
"""

import argparse
import inspect
import json
import time
from dataclasses import asdict
from pathlib import Path

import torch

from deep_oversampling import fit
from pull_rule import SETTINGS, evaluate, write_header
from sets import SETS
from stacked import Member, train


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seeds", type=int, default=10)
    options = parser.parse_args()
    defaults = {name: p.default for name, p in inspect.signature(fit).parameters.items()}
    pull, limit = defaults["pull"], defaults["pull_limit"]
    write_header(options.out, judged_on="test", pull=pull, limit=limit)
    device = torch.accelerator.current_accelerator() or torch.device("cpu")
    for name, (p, rounds, batch_size) in SETTINGS.items():
        pool, _, test = (part.to(device) for part in SETS[name](options.data))
        seeds, begun = range(options.seeds), time.perf_counter()
        members = [Member(s, 0.01, m, pull) for m in ("cnn", "ros", "dos") for s in seeds]
        networks, minorities = train(
            pool, members, p=p, rounds=rounds, batch_size=batch_size, limit=limit
        )
        with options.out.open("a") as file:
            for member, network, minority in zip(members, networks, minorities, strict=True):
                line = {"set": name, "p": p} | asdict(member)
                file.write(json.dumps(line | evaluate(network, minority, test)) + "\n")
        print(f"{name}: {len(members)} trainings in {time.perf_counter() - begun:.0f} s")


if __name__ == "__main__":
    main()
