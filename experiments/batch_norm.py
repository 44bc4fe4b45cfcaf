"""Does the rule for λ (R5) hold with batch norm at a large learning rate?

    python experiments/batch_norm.py CIFAR_FOLDER OUT.jsonl [--rates 0.1 0.01]

ResNet-32 on long-tailed CIFAR-10 (factor 100), no augmentation; 300 images of every class are
held out for validation before the tail is cut; the test set is not read. The step that ``fit``
takes is captured as one CUDA graph, which shows on the way that it can be.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
import torch
from torch.optim import SGD

from deep_oversampling import Network, Normalize, Plan, Samples, embed, measure, predict, resnet32
from deep_oversampling.objectives import multi_task, single_task
from deep_oversampling.oversampling import oversample
from deep_oversampling.presenting import batches
from deep_oversampling.seeding import streams
from recording import write_header

RULES = [  # method, λ, limit
    ("cnn", 0.0, None),
    ("ros", 0.0, None),
    *(("dos", pull, None) for pull in (0.0, 1.0, 3.0, 10.0, 30.0)),
    *(("dos", 10.0, limit) for limit in (0.1, 0.3, 1.0, 3.0)),
    ("dos", 100.0, 0.3),
]


def long_tailed(folder: Path) -> tuple[Samples, Samples]:
    """Training samples with exponential counts (factor 100) and balanced validation."""
    rows = np.concatenate(
        [
            np.fromfile(folder / f"data_batch_{i}.bin", np.uint8).reshape(-1, 3073)
            for i in range(1, 6)
        ]
    )
    everything = Samples(rows[:, 1:].reshape(-1, 3, 32, 32), rows[:, 0])
    order = torch.randperm(len(rows), generator=streams(0)("long tail"))
    members = [order[everything.y[order] == j] for j in range(10)]
    counts = [round(4700 * 100 ** (-j / 9)) for j in range(10)]
    train = torch.cat([rows[300 : 300 + c] for rows, c in zip(members, counts, strict=True)])
    return everything[train], everything[torch.cat([rows[:300] for rows in members])]


def graphed_round(network: Network, table, objective, optimizer, batch_size, generator) -> None:
    rows, present = (t.to(network.device) for t in batches(len(table), batch_size, generator))
    share = present / present.sum(1, keepdim=True)
    step = torch.zeros(1, dtype=torch.long, device=network.device)

    def one_step() -> None:
        optimizer.zero_grad(set_to_none=False)
        batch = table[rows.index_select(0, step).squeeze(0)]
        ell = torch.stack(objective(network, batch)) @ share.index_select(0, step).squeeze(0)
        ell.sum().backward()
        optimizer.step()
        step.add_(1)

    network.train()
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):  # these steps are the first of the round
        for _ in range(3):
            one_step()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        one_step()
    for _ in range(len(rows) - 3):
        graph.replay()


def train(samples: Samples, method, pull, limit, lr, rounds, batch_size=128, seed=0) -> Network:
    rng = streams(seed)
    network = resnet32(normalize=Normalize.of(samples.x), seed=seed).to(samples.x.device)
    plan = Plan.automatic(samples.class_counts)
    plan = {"cnn": Plan.plain(10), "ros": plan.without_neighbours(), "dos": plan}[method]
    optimizer = SGD(network.parameters(), lr=lr, momentum=0.9, weight_decay=2e-4)
    for t in range(rounds[0]):
        graphed_round(network, samples, single_task, optimizer, batch_size, rng("training", t))
    for t in range(rounds[1]):
        v = embed(network, samples.x)
        z = oversample(samples, v, plan, generator=rng("weights", t))
        objective = multi_task(pull, limit)
        generator = rng("training", rounds[0] + t)
        graphed_round(network, z, objective, optimizer, batch_size, generator)
    return network


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--rates", nargs="+", type=float, default=[0.1, 0.01])
    parser.add_argument("--rounds", nargs=2, type=int, default=[15, 4])
    parser.add_argument("--rules", nargs="+", type=int, default=range(len(RULES)))
    options = parser.parse_args()
    samples, validation = (s.to("cuda") for s in long_tailed(options.data))
    write_header(options.out, judged_on="validation")
    minority = Plan.automatic(samples.class_counts).minority.numpy()
    for lr in options.rates:
        for method, pull, limit in (RULES[i] for i in options.rules):
            begun = time.perf_counter()
            line = {"lr": lr, "method": method, "pull": pull, "limit": limit}
            line |= {"rounds": options.rounds}
            try:
                network = train(samples, method, pull, limit, lr, options.rounds)
                report = measure(predict(network, validation.x), validation.y)
                line |= {"minority": report.mean(minority), "majority": report.mean(~minority)}
            except RuntimeError as error:
                line |= {"lost": str(error)}
            with options.out.open("a") as file:
                file.write(json.dumps(line) + "\n")
            print(f"{time.perf_counter() - begun:.0f} s", line)


if __name__ == "__main__":
    main()
