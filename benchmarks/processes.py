"""One training on 1, 2 and 4 processes: how far their weights end apart, and beside that a nudge.

    python benchmarks/processes.py [--data-dir FOLDER] [--out FILE]

A LeNet on MNIST: 500 images of each digit but three, of which there are 60; 3 + 3 rounds, batches
of 60, one thread in each process, gloo. In double precision, then in single precision, and last
on one process with initial weights that are a little larger or smaller.
"""

import argparse
import json
import multiprocessing
import os
import platform
import socket
from datetime import date
from pathlib import Path
from typing import Any

import torch

from deep_oversampling import Plan, Samples, fit, join_peers, lenet, measure, predict
from deep_oversampling.data import load

RARE = [2, 5, 8]
NUDGES = [1 + 1e-7, 1 - 1e-7, 1 + 2e-7]


def some(samples: Samples) -> Samples:
    """The first of each digit."""
    rows = [
        (samples.y == digit).nonzero().flatten()[: 60 if digit in RARE else 500]
        for digit in range(10)
    ]
    return samples.subset(torch.cat(rows))


def trained(rank: int, size: int, port: int, told: Any, options: dict[str, Any]) -> None:
    """In each process; the first tells its weights and F1 of the rare digits."""
    torch.set_num_threads(1)
    os.environ |= {"RANK": str(rank), "WORLD_SIZE": str(size), "MASTER_PORT": str(port)}
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    data = load("mnist", data_dir=options["data_dir"])
    network = lenet(data.train.x.shape[1:], 10, seed=0).to(options["dtype"])
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.mul_(options["nudge"])
    rare = torch.isin(torch.arange(10), torch.tensor(RARE))
    plan = Plan(k=5 * rare.long(), r=1 + 7 * rare.long())
    with join_peers("cpu") as peers:
        fit(network, some(data.train), plan, rounds=3, batch_size=60, device="cpu", peers=peers)
    if peers.first:
        f1 = measure(predict(network, data.test.x), data.test.y).mean(rare.numpy())["f1"]
        weights = torch.cat([one.detach().double().flatten() for one in network.parameters()])
        told.send((weights.numpy(), f1))


def run(size: int, options: dict[str, Any]) -> tuple[torch.Tensor, float]:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    processes = [
        context.Process(target=trained, args=(rank, size, port, theirs, options))
        for rank in range(size)
    ]
    for process in processes:
        process.start()
    weights, f1 = ours.recv()
    for process in processes:
        process.join()
    return torch.from_numpy(weights), f1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", type=Path, help="folder of the official files")
    parser.add_argument("--out", type=Path, help="a JSON lines file to write")
    given = parser.parse_args()
    lines: list[dict[str, Any]] = [
        {"date": str(date.today()), "machine": platform.machine(), "torch": torch.__version__}
    ]
    cases = [(dtype, size, 1.0) for dtype in (torch.float64, torch.float32) for size in (1, 2, 4)]
    for dtype, size, nudge in cases + [(torch.float32, 1, nudge) for nudge in NUDGES]:
        options = {"dtype": dtype, "nudge": nudge, "data_dir": given.data_dir}
        weights, f1 = run(size, options)
        if (size, nudge) == (1, 1.0):
            first = weights
        apart = float((weights - first).abs().max())
        lines.append({"precision": str(dtype), "processes": size, "times": nudge})
        lines[-1] |= {"apart": apart, "f1": f1}
        print(f"{dtype}  {size} processes  weights × {nudge}: {apart:.1e} apart, F1 {f1:.5f}")
    if given.out:
        given.out.parent.mkdir(parents=True, exist_ok=True)
        given.out.write_text("".join(json.dumps(line) + "\n" for line in lines))


if __name__ == "__main__":
    main()
