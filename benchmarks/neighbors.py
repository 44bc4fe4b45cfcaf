"""In-class neighbours against FAISS and scikit-learn, side by side in one run.

    python benchmarks/neighbors.py [--quick] [--json] [--threads 2] [--embeddings FILE]

All of them search one class of m_j Gaussian points, d = 120, k = 10, in turns and with the same
number of threads. Printed are the least and the median time of the turns, and how many times the
least of ours the others take. Then many small classes, the approximate search with its recall,
and, where there is an NVIDIA GPU, large classes on it. FAISS is left out where it is not
installed. --embeddings: a tensor (m, d) from torch.save, searched approximately as well.
"""

import argparse
import json
import os
import platform
import statistics
import time
from collections.abc import Callable
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch
from sklearn.neighbors import NearestNeighbors
from threadpoolctl import threadpool_limits
from torch import Tensor

from deep_oversampling.overloading import in_class_neighbors

try:
    import faiss
except ImportError:
    faiss = None

D, K = 120, 10


def report(as_json: bool, **line: object) -> None:
    text = json.dumps(line) if as_json else "   ".join(f"{a} {b}" for a, b in line.items())
    print(text.removeprefix("what "), flush=True)


def in_turns(
    functions: dict[str, Callable[[], object]], seconds: float
) -> dict[str, tuple[float, float]]:
    """The least and the median time of each, in ms, from turns that take about so long."""
    found: dict[str, list[float]] = {name: [] for name in functions}
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(found[next(iter(found))]) < 4:
        for name, function in functions.items():
            start = time.perf_counter()
            function()
            found[name].append(1000 * (time.perf_counter() - start))
    return {name: (min(all_), statistics.median(all_)) for name, all_ in found.items()}


def ours(v: Tensor, y: Tensor | None = None, **options: int) -> Tensor:
    y = torch.zeros(len(v), dtype=torch.long, device=v.device) if y is None else y
    k = torch.full((int(y.max()) + 1,), K)
    return in_class_neighbors(v, y, k, **options).index[:, 1:]


def by_sklearn(v: Tensor, y: Tensor | None = None) -> None:
    for j in range(1 if y is None else int(y.max()) + 1):
        points = (v if y is None else v[y == j]).numpy()
        NearestNeighbors(n_neighbors=K, algorithm="brute").fit(points).kneighbors()


def by_faiss(v: Tensor, y: Tensor | None = None) -> None:
    for j in range(1 if y is None else int(y.max()) + 1):
        points = (v if y is None else v[y == j]).numpy()
        index = faiss.IndexFlatL2(points.shape[1])
        index.add(points)
        index.search(points, K + 1)  # the first is the point itself


def relu_blobs(m: int) -> Tensor:
    """Fifty clusters of 16 dimensions each, as a ReLU layer of 120 might give them."""
    cluster = torch.arange(m) % 50
    v = torch.empty(m, D)
    for j in range(50):
        mean, spread = 2 * torch.randn(D), torch.randn(16, D) / 4
        v[cluster == j] = mean + torch.randn(int((cluster == j).sum()), 16) @ spread
    return torch.relu(v + 0.3 * torch.randn(m, D))


def compare(as_json: bool, what: str, v: Tensor, y: Tensor | None, seconds: float) -> None:
    functions: dict[str, Callable[[], object]] = {"ours": lambda: ours(v, y)}
    functions["scikit-learn"] = lambda: by_sklearn(v, y)
    if faiss:
        functions["FAISS"] = lambda: by_faiss(v, y)
    times = in_turns(functions, seconds)
    line = {f"{name} (ms)": [round(one, 1) for one in found] for name, found in times.items()}
    least = times.pop("ours")[0]
    ratios = {f"{name} / ours": round(found[0] / least, 2) for name, found in times.items()}
    report(as_json, what=what, **line, **ratios)


def approximate(as_json: bool, what: str, v: Tensor) -> None:
    times, found = {}, {}
    for name, above in (("exact", None), ("approximate", 1)):
        options = {} if above is None else {"approximate_above": above}
        start = time.perf_counter()
        found[name] = ours(v, **options)
        times[name] = time.perf_counter() - start
    hits = (found["exact"].unsqueeze(2) == found["approximate"].unsqueeze(1)).any(2)
    line = {f"{name} s": round(seconds, 2) for name, seconds in times.items()}
    report(as_json, what=what, **line, recall=round(float(hits.float().mean()), 4))


def on_gpu(as_json: bool) -> None:
    for m in (5_000, 14_000, 100_000):
        v = torch.randn(m, D, device="cuda")

        def search(v: Tensor = v) -> None:
            ours(v)
            torch.cuda.synchronize()

        search()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        least, median = (round(one, 1) for one in in_turns({"ours": search}, 2)["ours"])
        used = (torch.cuda.max_memory_allocated() - before) / 2**20
        what, device = f"{m} on the GPU", torch.cuda.get_device_name()
        report(as_json, what=what, device=device, ms=[least, median], MiB=round(used))


def processor() -> str:
    info = Path("/proc/cpuinfo")
    names = [one for one in info.read_text().splitlines() if "model name" in one]
    return names[0].split(":")[1].strip() if names else platform.processor()


def installed(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a minute instead of ten")
    parser.add_argument("--json", action="store_true", help="JSON lines")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--embeddings", type=Path)
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(options.threads)
    if faiss:
        faiss.omp_set_num_threads(options.threads)
    packages = ("torch", "scikit-learn", "faiss-cpu", "numpy")
    head = {"date": str(date.today()), "processor": processor(), "threads": options.threads}
    report(options.json, **head, **{name: installed(name) for name in packages})
    with threadpool_limits(options.threads):
        for m in (1_000, 5_000, 20_000):
            v = torch.randn(m, D)
            compare(options.json, f"{m}", v, None, 5 if options.quick else 30)
        for c, m_j in ((10, 60), (100, 500)):
            y = torch.arange(c).repeat_interleave(m_j)
            v = torch.randn(len(y), D)
            compare(options.json, f"{c} x {m_j}", v, y, 3 if options.quick else 15)
        if faiss:
            for m in (20_000,) if options.quick else (20_000, 100_000):
                approximate(options.json, f"{m} in clusters, approximately", relu_blobs(m))
            if options.embeddings:
                v = torch.load(options.embeddings)
                approximate(options.json, f"{len(v)} embeddings, approximately", v)
    if torch.cuda.is_available():
        on_gpu(options.json)


if __name__ == "__main__":
    main()
