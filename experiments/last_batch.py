"""What does a last batch of a row or two do? It is a step like the others, and a blow.

    python experiments/last_batch.py OUT.jsonl [--cifar10 DATA] [--seeds 8] [--processes 2]

Plain training of small networks on digits, 901 in batches of 60, and of a small residual network on
CIFAR-10 at half its size with crop and flip, 2,946 in batches of 128, at two learning rates. Either
the last batch has what is left over, one digit or two pictures, or all have as many rows, but for
one, as `batches` makes them. Judged by the recall of held-out samples, paired over seeds. What OUT
has already is not run again.
"""

import argparse
from collections import defaultdict
from collections.abc import Callable
from functools import cache, partial
from itertools import product
from pathlib import Path
from unittest import mock

import numpy as np
import torch
from scipy.stats import ttest_rel
from torch import Generator, Tensor, nn
from torch.optim import SGD

from deep_oversampling import (
    DOSError,
    Network,
    Normalize,
    Plan,
    Samples,
    fit,
    lenet,
    measure,
    mlp,
    predict,
    presenting,
)
from deep_oversampling.augmentation import CropAndFlip
from deep_oversampling.data import load
from deep_oversampling.seeding import isolated, streams
from miniature import halved, small_residual
from recording import kept, recorded
from strangers import Rows, normed_cnn, normed_mlp

NETWORKS: dict[str, Callable[[], Network]] = {
    "lenet": partial(lenet, (1, 8, 8)),
    "mlp": partial(mlp, 64, 10),
    "gru": lambda: Network(Rows(), nn.Linear(64, 10)),
    "cnn with batch norm": normed_cnn,
    "mlp with batch norm and dropout": normed_mlp,
}
RESIDUAL = "small residual network"
RATES, KINDS = (0.01, 0.1), ("short", "even")
Job = tuple[str, float, str, int]


def with_a_short_one(
    size: int, batch_size: int, generator: Generator
) -> tuple[Tensor, Tensor]:  # as `batches`
    """All full but the last, which has what is left over."""
    steps = -(-size // batch_size)
    order = torch.randperm(size, generator=generator)
    rows = order.repeat(2)[: steps * batch_size].view(steps, batch_size)
    return rows, (torch.arange(steps * batch_size) < size).view_as(rows)


@cache
def pictures(folder: Path) -> Samples:
    return halved(load("cifar10", data_dir=folder).train)


def trial(job: Job, folder: Path | None) -> dict[str, object]:
    """A training that is given up counts with the weights it left."""
    name, rate, kind, seed = job
    torch.set_num_threads(1)
    residual, rng = name == RESIDUAL, streams(seed)
    whole = pictures(folder) if residual and folder else load("digits").train
    size, batch_size = (2946, 128) if residual else (901, 60)
    order = torch.randperm(len(whole), generator=rng("last batch"))
    train, judged = whole[order[:size]], whole[order[size : size + 5000]]
    with isolated(rng("network")):
        network = small_residual(train, seed) if residual else NETWORKS[name]()
    network.normalize = Normalize.of(train.x)
    made = with_a_short_one if kind == "short" else presenting.batches
    line: dict[str, object] = {"network": name, "rate": rate, "kind": kind, "seed": seed}
    with mock.patch.object(presenting, "batches", made):
        try:
            fit(
                network,
                train,
                Plan.plain(train.n),
                rounds=20 if residual else 15,
                batch_size=batch_size,
                optimizer=partial(SGD, lr=rate, momentum=0.9),
                augment=CropAndFlip(2) if residual else None,
                seed=seed,
            )
        except DOSError as error:
            line["lost"] = str(error)
    recall = measure(predict(network, judged.x), judged.y).recall
    return line | {"recall": round(float(recall.mean()), 5)}


def table(lines: list[dict[str, object]]) -> str:
    """Recall in per cent, its deviation over seeds, trainings that were lost, and p."""
    found: dict[tuple[object, ...], dict[object, dict[str, object]]] = defaultdict(dict)
    for line in lines:
        found[line["network"], line["rate"], line["kind"]][line["seed"]] = line
    rows = ["| | rate | a last batch of one or two | even batches | p |", "|---|---|---|---|---|"]
    for name, rate in product([*NETWORKS, RESIDUAL], RATES):
        short, even = (found[name, rate, kind] for kind in KINDS)
        if seeds := sorted(short.keys() & even.keys()):
            pairs = [[one[s]["recall"] for s in seeds] for one in (short, even)]
            cells = [_cell([one[s] for s in seeds]) for one in (short, even)]
            p = f"{ttest_rel(*pairs).pvalue:.3f}" if len(seeds) > 1 else "–"
            rows.append(f"| {name} | {rate} | {' | '.join(cells)} | {p} |")
    return "\n".join(rows)


def _cell(lines: list[dict[str, object]]) -> str:
    values = 100 * np.array([line["recall"] for line in lines])
    lost = sum("lost" in line for line in lines)
    told = (
        f"{values.mean():.1f} ± {values.std(ddof=1):.1f}" if len(values) > 1 else f"{values[0]:.1f}"
    )
    return f"{told}, {lost} lost" if lost else told


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--cifar10", type=Path, help="folder of its official .bin files")
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    lines = kept(options.out, "kind")
    done = {(one["network"], one["rate"], one["kind"], one["seed"]) for one in lines}
    names = [*NETWORKS, *([RESIDUAL] if options.cifar10 else [])]
    asked = product(names, RATES, KINDS, range(options.seeds))
    jobs = [job for job in asked if job not in done]
    one = partial(trial, folder=options.cifar10)
    lines += recorded(one, jobs, options.out, options.processes, judged_on="held-out samples")
    print(table(lines))


if __name__ == "__main__":
    main()
