"""Measures and probes against scikit-learn: time and agreement, side by side in one run.

    PYTHONPATH=src python benchmarks/evaluation.py [--quick] [--json] [--device cuda]

Ours run on the device (the first there is of cuda, mps and cpu), for E = 1 and 10 networks at once;
scikit-learn runs on the CPU with all its cores, one network after the other, from arrays that are
there already. Embeddings are drawn: ReLU features of classes that overlap. Every time is the best
of up to five, taken in turns after one run to warm up; "apart" is the largest difference between
two numbers. scikit-learn's logistic regression stops at its default tolerance, as a probe by it
would; it is also timed once with one at which it comes close to the optimum.
"""

import argparse
import json
import math
import os
import platform
import time
import warnings
from collections.abc import Callable
from datetime import date
from typing import Any

import numpy as np
import sklearn
import torch
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, precision_recall_fscore_support
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import Tensor

from deep_oversampling.metrics import MEASURES, measure_all
from deep_oversampling.network import pick_device
from deep_oversampling.probes import logistic_probe_all, neighbour_votes

N = 10  # classes
D = 120  # dimensions of an embedding, as the paper's CNN has
Member = tuple[Tensor, Tensor, Tensor]  # embeddings, labels, queries


def timed(function: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = function()  # NumPy arrays: the device has finished
    return time.perf_counter() - start, result


def embeddings(m: int, queries: int, seed: int) -> Member:
    draw = torch.Generator().manual_seed(seed)
    y = torch.randint(N, (m + queries,), generator=draw)
    z = torch.randn(N, 20, generator=draw)[y] + torch.randn(len(y), 20, generator=draw)
    mixed = z @ torch.randn(20, D, generator=draw) / math.sqrt(20)
    v = (mixed + 0.3 * torch.randn(len(y), D, generator=draw) + 0.2).relu()
    return v[:m], y[:m], v[m:]


def digits() -> Member:
    x, y = load_digits(return_X_y=True)
    v = torch.from_numpy(x).float()
    return v, torch.from_numpy(y), v


def measured(p: np.ndarray, y: np.ndarray) -> np.ndarray:
    *columns, _ = precision_recall_fscore_support(
        y, p.argmax(1), labels=np.arange(N), zero_division=0.0
    )
    return np.array([*columns, [average_precision_score(y == j, p[:, j]) for j in range(N)]])


def neighbours(v: Tensor, y: Tensor, queries: Tensor) -> np.ndarray:
    model = KNeighborsClassifier(n_neighbors=5).fit(v.numpy(), y.numpy())
    return model.predict_proba(queries.numpy())


def logistic(v: Tensor, y: Tensor, queries: Tensor, tol: float = 1e-4) -> np.ndarray:
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=10_000, tol=tol))
    dtype = np.float32 if tol == 1e-4 else np.float64  # as embeddings are, unless it is to converge
    return model.fit(v.numpy().astype(dtype), y.numpy()).predict_proba(
        queries.numpy().astype(dtype)
    )


class Table:
    def __init__(self, device: torch.device, as_json: bool) -> None:
        self.device, self.as_json = device, as_json

    def head(self) -> None:
        chip = torch.cuda.get_device_name(self.device) if self.device.type == "cuda" else "cpu"
        facts = {
            "date": str(date.today()),
            "device": chip,
            "machine": platform.machine(),
            "cores": os.cpu_count(),
            "threads": torch.get_num_threads(),
            "python": platform.python_version(),
            "torch": torch.__version__,
            "scikit-learn": sklearn.__version__,
            "numpy": np.__version__,
        }
        if self.as_json:
            print(json.dumps(facts), flush=True)
        else:
            print(", ".join(f"{name} {value}" for name, value in facts.items()))
            print(f"{'':54}{'E':>3} {'scikit-learn':>13} {'ours':>11} {'ratio':>8} {'apart':>8}")

    def row(
        self, what: str, members: int, theirs: Callable[[], Any], ours: Callable[[], Any]
    ) -> None:
        found = ours()  # and to warm up
        times: list[tuple[float, float]] = []
        while len(times) < 5 and sum(map(sum, times)) < 2:  # in turns: both meet what else runs
            (taken, expected), (by_us, _) = timed(theirs), timed(ours)
            times.append((taken, by_us))
        reference, seconds = map(min, zip(*times, strict=True))
        apart = float(np.abs(np.asarray(found) - np.asarray(expected)).max())
        if self.as_json:
            line = {"what": what, "E": members, "scikit-learn": reference, "ours": seconds}
            print(json.dumps({**line, "ratio": reference / seconds, "apart": apart}), flush=True)
        else:
            print(
                f"{what:54}{members:3} {1e3 * reference:10.1f} ms {1e3 * seconds:8.1f} ms "
                f"{reference / seconds:6.1f} × {apart:8.0e}",
                flush=True,
            )


def arrays(found: list[Tensor]) -> list[np.ndarray]:
    return [one.cpu().numpy() for one in found]


def measures(table: Table, m: int, e: int) -> None:
    draw = torch.Generator().manual_seed(0)
    p = torch.randn(e, m, N, generator=draw).softmax(2)
    y = torch.randint(N, (m,), generator=draw)
    there, labels = p.to(table.device), y.to(table.device)
    table.row(
        f"measures, {m:,} samples, {N} classes",
        e,
        lambda: [measured(one.numpy(), y.numpy()) for one in p],
        lambda: [[getattr(r, name) for name in MEASURES] for r in measure_all(there, labels)],
    )


def probes(table: Table, name: str, members: list[Member], *, knn: bool) -> None:
    there = [tuple(part.to(table.device) for part in member) for member in members]
    v, _, queries = members[0]
    size = f"{name}, {len(v):,} × {v.shape[1]}"
    e = len(members)
    if knn:
        table.row(
            f"5 neighbours, {size}, {len(queries):,} queries",
            e,
            lambda: [neighbours(*member) for member in members],
            lambda: arrays([neighbour_votes(v, y, q, N) for v, y, q in there]),
        )
    ours = lambda: arrays(  # noqa: E731
        logistic_probe_all([(v, y) for v, y, _ in there], [q for *_, q in there], N)
    )
    table.row(
        f"logistic regression, {size}", e, lambda: [logistic(*member) for member in members], ours
    )
    if e == 1:
        to_the_end = lambda: [logistic(*members[0], tol=1e-8)]  # noqa: E731
        table.row("… and scikit-learn with tol=1e-8", e, to_the_end, ours)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the samples")
    parser.add_argument("--json", action="store_true", help="lines of JSON instead of a table")
    parser.add_argument("--device")
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)  # rounding may end a fit before tol does
    table = Table(pick_device(options.device), options.json)
    table.head()
    m, queries = (3_600, 1_000) if options.quick else (36_000, 10_000)
    for e in (1, 10):
        measures(table, queries, e)
    for e in (1, 10):
        probes(table, "digits", [digits()] * e, knn=True)
    for e in (1, 10):
        members = [embeddings(m, queries, seed) for seed in range(e)]
        probes(table, "embeddings", members, knn=e == 1)


if __name__ == "__main__":
    main()
