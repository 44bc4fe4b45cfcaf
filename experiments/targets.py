"""Where training is augmented, what shall v be made of? A small residual network, on the CPU.

    PYTHONPATH=examples python experiments/targets.py CIFAR_FOLDER OUT.jsonl [--seeds 8]

CIFAR-10 at half its size, 3,000 images to train and 5,000 to judge, of the training set alone; one
block of every width of ResNet-32; crop and flip; T = 8. Four classes of ten lose nothing, half or
95 % of their images. Judged as `safe.py` does, paired over seeds. What OUT has already is not run
again.
"""

import argparse
from collections import defaultdict
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path

import torch
from scipy.stats import ttest_rel
from torch.optim import SGD

from deep_oversampling import Plan, predict
from deep_oversampling.algorithm import deep_over_sampling
from deep_oversampling.augmentation import CropAndFlip
from deep_oversampling.seeding import streams
from deep_oversampling.stages import train_stages
from miniature import halved_training_images, small_residual
from recording import kept, recorded
from safe import REDUCED, mean_f1, parts_of

AUGMENT, ROUNDS = CropAndFlip(2), 8


@dataclass(frozen=True)
class Kind:
    levelled: bool = True  # over-sampled
    neighbours: bool = True
    seen: bool = True  # v is that of changed copies, as training sees them
    pull: float = 10.0


KINDS = {
    "plain": Kind(levelled=False, neighbours=False),
    "over-sampled": Kind(neighbours=False),
    "v of images": Kind(seen=False),
    "v of copies": Kind(),
    "v of images, λ = 0": Kind(seen=False, pull=0.0),
}
RATES = {0.01: {"lr": 0.01}, 0.1: {"lr": 0.1, "weight_decay": 5e-4}}


def trial(job: tuple[str, float, str, int], folder: Path) -> dict[str, object]:
    imbalance, rate, name, seed = job
    torch.set_num_threads(1)
    kind, rng = KINDS[name], streams(seed)
    train, judged = parts_of(halved_training_images(folder), seed, REDUCED[imbalance], size=3000)
    judged = judged[torch.arange(5000)]
    network = small_residual(train, seed)
    plan = Plan.automatic(train.class_counts) if kind.levelled else Plan.plain(train.n)
    plan = plan if kind.neighbours else plan.without_neighbours()
    stages = deep_over_sampling(
        network,
        train,
        plan,
        rounds=ROUNDS,
        initial_rounds=ROUNDS,
        rng=rng,
        pull=kind.pull,
        augment=AUGMENT if kind.seen else None,
    )
    optimizer = partial(SGD, momentum=0.9, **RATES[rate])
    train_stages(network, stages, batch_size=60, rng=rng, optimizer=optimizer, augment=AUGMENT)
    found = predict(network, judged.x).argmax(1)
    shares = {"even": torch.ones(train.n), "as trained": train.class_counts.float()}
    measured = {how: round(mean_f1(found, judged, share), 5) for how, share in shares.items()}
    return {"imbalance": imbalance, "rate": rate, "kind": name, "seed": seed, **measured}


def table(lines: list[dict[str, object]]) -> str:
    """Evenly / as trained, and p of each against plain training."""
    found: dict[tuple[object, ...], dict[object, dict[str, object]]] = defaultdict(dict)
    for line in lines:
        found[line["kind"], line["imbalance"], line["rate"]][line["seed"]] = line
    columns = [one for one in product(REDUCED, RATES) if ("plain", *one) in found]
    rows = ["| | " + " | ".join(f"{i}, rate {rate}" for i, rate in columns) + " |"]
    rows.append("|---" * (len(columns) + 1) + "|")
    for kind in KINDS:
        cells = []
        for column in columns:
            own, plain = found[kind, *column], found["plain", *column]
            seeds = sorted(own.keys() & plain.keys())
            told = []
            for how in ("even", "as trained"):
                pairs = [(own[s][how], plain[s][how]) for s in seeds]
                told.append(_cell(pairs, alone=kind == "plain"))
            cells.append(" / ".join(told) if seeds else "–")
        rows.append(f"| {kind} | {' | '.join(cells)} |")
    return "\n".join(rows)


def _cell(pairs: list[tuple[float, float]], *, alone: bool) -> str:
    if not pairs:
        return "–"
    own, plain = zip(*pairs, strict=True)
    mean = f"{sum(own) / len(own):.3f}".removeprefix("0")
    if alone or own == plain or len(pairs) < 2:
        return mean
    return f"{mean} ({ttest_rel(own, plain).pvalue:.3f})".replace("(0.", "(.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, help="folder of the official CIFAR-10 .bin files")
    parser.add_argument("out", type=Path)
    parser.add_argument("--imbalances", nargs="+", default=list(REDUCED), choices=list(REDUCED))
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=list(KINDS))
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    lines = kept(options.out, "kind")
    done = {(one["imbalance"], one["rate"], one["kind"], one["seed"]) for one in lines}
    asked = product(range(options.seeds), options.imbalances, RATES, options.kinds)
    jobs = [(i, rate, kind, seed) for seed, i, rate, kind in asked]
    jobs = [job for job in jobs if job not in done]
    one = partial(trial, folder=options.data)
    lines += recorded(
        one, jobs, options.out, options.processes, judged_on="held-out training images"
    )
    print(table(lines))


if __name__ == "__main__":
    main()
