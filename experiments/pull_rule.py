"""Which rule for λ needs no tuning (R5)? Sweep λ and its limit over learning rates and scales.

    python experiments/pull_rule.py DATA OUT.jsonl [--sets mnist svhn back-rotation] [--seeds 3]

Every training is judged on validation images, never on the test set. One JSON line per
training: set, member, minority and majority measures; the first line says where it ran.
"""

import argparse
import json
import time
from dataclasses import asdict
from pathlib import Path

from deep_oversampling import Network, Samples, measure, predict
from deep_oversampling.network import pick_device
from recording import write_header
from sets import SETS
from stacked import Member, train

SETTINGS = {  # p, rounds, batch size: the paper's table
    "mnist": (0.99, 3, 60),
    "back-rotation": (0.90, 5, 40),
    "svhn": (0.99, 3, 60),
}
RATES = (0.001, 0.003, 0.01, 0.03, 0.1)
FIXED = (0.0, 1.0, 3.0, 10.0, 30.0)  # λ without a limit
LIMITED = ((10.0, 0.3), (10.0, 1.0), (10.0, 3.0), (100.0, 0.3), (100.0, 1.0), (100.0, 3.0))


def evaluate(network: Network, minority: list[int], data: Samples) -> dict[str, object]:
    probabilities = predict(network, data.x, batch_size=8192)
    if not bool(probabilities.isfinite().all()):
        return {"diverged": True, "minority": {"f1": 0.0}, "majority": {"f1": 0.0}}
    report = measure(probabilities, data.y)
    others = [j for j in range(data.n) if j not in minority]
    groups = {"minority": minority, "majority": others}
    return {name: report.mean(classes) for name, classes in groups.items() if classes}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--sets", nargs="+", default=list(SETTINGS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rates", nargs="+", type=float, default=RATES)
    parser.add_argument("--scales", nargs="+", type=float, default=[1.0])
    parser.add_argument("--fixed", nargs="*", type=float, default=FIXED)
    parser.add_argument("--limited", nargs="*", default=[f"{a}:{b}" for a, b in LIMITED])
    parser.add_argument("--stack", type=int, default=45, help="members trained at once")
    options = parser.parse_args()
    device = pick_device()
    limited = [tuple(map(float, pair.split(":"))) for pair in options.limited]
    write_header(options.out, judged_on="validation")
    for name in options.sets:
        p, rounds, batch_size = SETTINGS[name]
        pool, validation, _ = (part.to(device) for part in SETS[name](options.data))
        for scale in options.scales:
            free = [("cnn", 0.0), ("ros", 0.0), *(("dos", pull) for pull in options.fixed)]
            groups: dict[float | None, list[tuple[str, float]]] = {None: free}
            for pull, limit in limited:
                groups.setdefault(limit, []).append(("dos", pull))
            for limit, methods in groups.items():
                members = [
                    Member(seed, lr, method, pull)
                    for lr in options.rates
                    for method, pull in methods
                    for seed in range(options.seeds)
                ]
                for start in range(0, len(members), options.stack):
                    stack, begun = members[start : start + options.stack], time.perf_counter()
                    networks, minorities = train(
                        pool,
                        stack,
                        p=p,
                        rounds=rounds,
                        batch_size=batch_size,
                        limit=limit,
                        scale=scale,
                    )
                    with options.out.open("a") as file:
                        for member, network, minority in zip(
                            stack, networks, minorities, strict=True
                        ):
                            line = {"set": name, "p": p, "scale": scale, "limit": limit}
                            line |= asdict(member) | evaluate(network, minority, validation)
                            file.write(json.dumps(line) + "\n")
                    seconds = time.perf_counter() - begun
                    print(f"{name} scale {scale} limit {limit}: {len(stack)} in {seconds:.0f} s")


if __name__ == "__main__":
    main()
