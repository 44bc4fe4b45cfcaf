"""From how many rounds on do pieces gain? Calls of `fit` with a small residual network, on the CPU.

    PYTHONPATH=examples python experiments/how_long.py DATA OUT.jsonl [--set svhn] [--seeds 5]

CIFAR-10, or another set, at half its size, 3,000 images to train and 5,000 to judge, of the
training set alone; one block of every width of ResNet-32; crop and flip, a rate of 0.1 that falls
along a cosine. Four classes of ten lose nothing, half or 95 % of their images. As many rounds for
all kinds. Judged as `safe.py` does, paired over seeds. What OUT has already is not run again.
"""

import argparse
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.optim import SGD

from deep_oversampling import Plan, Samples, fit, predict
from deep_oversampling.rivals import logit_adjusted
from miniature import halved_training_images, small_residual
from recording import kept, recorded
from safe import REDUCED, difference, mean_f1, parts_of, short
from targets import AUGMENT

OTHERS = ("plain", "default", "logit adjustment")
KINDS = (*OTHERS, "pieces", "pieces, τ = 0.5")
FORMS = KINDS[len(OTHERS) :]
SAME = ("default", "logit adjustment", "pieces, τ = 0.5")  # as another kind, where balanced
JUDGED = ("even", "as trained")

Job = tuple[int, str, str, int]  # T, imbalance, kind, seed
Line = dict[str, Any]


def options_of(kind: str, counts: torch.Tensor) -> dict[str, Any]:
    plain = {"plan": Plan.plain(len(counts))}
    return {
        "plain": plain,
        "default": {},
        "logit adjustment": plain | {"loss": logit_adjusted(counts)},
        "pieces": {"pieces": 0.5, "tau": 1.0},
        "pieces, τ = 0.5": {"pieces": 0.5, "tau": 0.5},  # q of it: no margin beyond the shares
    }[kind]


def trial(job: Job, whole: Callable[[], Samples]) -> Line:
    rounds, imbalance, kind, seed = job
    torch.set_num_threads(1)
    train, judged = parts_of(whole(), seed, REDUCED[imbalance], size=3000)
    judged = judged[torch.arange(5000)]
    network = small_residual(train, seed)
    history = fit(
        network,
        train,
        rounds=rounds,
        optimizer=partial(SGD, lr=0.1, momentum=0.9, weight_decay=5e-4),
        schedule="cosine",
        augment=AUGMENT,
        seed=seed,
        **options_of(kind, train.class_counts),
    )
    found = predict(network, judged.x).argmax(1)
    shares = {"even": torch.ones(train.n), "as trained": train.class_counts.float()}
    told = dict(zip(("T", "imbalance", "kind", "seed"), job, strict=True))
    told |= {how: round(mean_f1(found, judged, share), 5) for how, share in shares.items()}
    return told | {"presented": sum(one.presented for one in history.rounds)}


def table(lines: Sequence[Line]) -> str:
    """Evenly / as trained, and what forms with pieces have more than others; p of a paired test."""
    found: dict[tuple[int, str], dict[str, dict[int, Line]]] = defaultdict(
        lambda: defaultdict(dict)
    )
    for line in lines:
        found[line["T"], line["imbalance"]][line["kind"]][line["seed"]] = line
    columns = sorted(found, key=lambda one: (one[0], list(REDUCED).index(one[1])))
    heads = " | ".join(f"{imbalance}, T = {rounds}" for rounds, imbalance in columns)
    rows = [f"| | {heads} |", "|---" * (len(columns) + 1) + "|"]
    for kind in KINDS:
        cells = [_both(found[one][kind], found[one][kind], _mean) for one in columns]
        rows.append(f"| {kind} | {' | '.join(cells)} |")
    for form, other in product(FORMS, OTHERS):
        cells = [_both(found[one][form], found[one][other], _difference) for one in columns]
        rows.append(f"| {form} − {other} | {' | '.join(cells)} |")
    return "\n".join(rows)


def _both(own: dict[int, Line], other: dict[int, Line], tell: Callable[[Any, Any], str]) -> str:
    seeds = sorted(own.keys() & other.keys())
    pairs = ([np.array([one[s][how] for s in seeds]) for one in (own, other)] for how in JUDGED)
    return " / ".join(tell(*pair) for pair in pairs) if seeds else "–"


def _mean(own: Any, _: Any) -> str:
    return short(own.mean())


def _difference(own: Any, other: Any) -> str:
    return difference(own, other) if len(own) > 1 else "–"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("data", type=Path, help="folder of the set's official files")
    parser.add_argument("out", type=Path)
    parser.add_argument("--set", default="cifar10")
    parser.add_argument("--imbalances", nargs="+", default=list(REDUCED), choices=list(REDUCED))
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=list(KINDS))
    parser.add_argument("--rounds", nargs="+", type=int, default=[8, 32, 100], help="T")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    lines = kept(options.out, "kind")
    done = {(one["T"], one["imbalance"], one["kind"], one["seed"]) for one in lines}
    asked = product(options.rounds, range(options.seeds), options.imbalances, options.kinds)
    jobs: list[Job] = [
        (t, imbalance, kind, seed)
        for t, seed, imbalance, kind in asked
        if (t, imbalance, kind, seed) not in done and (imbalance != "balanced" or kind not in SAME)
    ]
    one = partial(trial, whole=partial(halved_training_images, options.data, options.set))
    lines += recorded(
        one, jobs, options.out, options.processes, judged_on="held-out training images"
    )
    print(table(lines))


if __name__ == "__main__":
    main()
