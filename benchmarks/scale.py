"""A training on m samples that stay on disk: time, memory, and where they go, for growing m.

    python benchmarks/scale.py [--most 7] [--out FILE]

Makes m samples of 16 bytes in a file, m from 10⁴ to 10⁷, ten classes of which four are rare (1 % of
all together, k = 5, r = 10), and trains one round of DOS on them: one layer, d = 128, batches of
1024. Each m has a process of its own, so its peak of memory is its own: without what is mapped,
which the operating system may take back. Then it times the parts of that round one by one. Seconds
are those of the processor, so that other work beside it counts little. The samples are in the
operating system's memory when they have been written.
"""

import argparse
import json
import math
import os
import platform
import subprocess
import sys
import tempfile
from datetime import date
from pathlib import Path

import numpy as np
import torch

BYTES, D = 16, 128
PARTS = ["embed", "search", "draw", "order", "steps"]

COMMON = """
import json, sys, threading, time
from pathlib import Path
import numpy as np, torch
from deep_oversampling import Network, Plan, Samples, View, fit

BATCH = 1024

def in_use(kind):
    status = Path("/proc/self/status").read_text().split()
    return 1024 * int(status[status.index(kind) + 1])

def made():
    torch.manual_seed(0)
    embedder = torch.nn.Sequential(torch.nn.Linear(x.shape[1], int(sys.argv[3])), torch.nn.ReLU())
    return Network(embedder, torch.nn.Linear(int(sys.argv[3]), 10))

torch.set_num_threads(int(sys.argv[4]))
x = torch.from_numpy(np.load(sys.argv[1], mmap_mode="c"))
y = torch.from_numpy(np.load(sys.argv[2]))
samples = Samples(View.of(x, on_disk=True), y, [str(j) for j in range(10)])
plan = Plan(k=[0] * 6 + [5] * 4, r=[1] * 6 + [10] * 4)
"""

WHOLE = """
options = {"rounds": 1, "initial_rounds": 0, "batch_size": BATCH, "device": "cpu"}
fit(made(), samples.subset(torch.arange(min(len(x), 10_000))), plan, **options)  # warm up
before, peak, done = in_use("RssAnon:"), 0, False

def watch():
    global peak
    while not done:
        peak = max(peak, in_use("RssAnon:"))
        time.sleep(0.01)

watcher = threading.Thread(target=watch)
watcher.start()
start, wall = time.process_time(), time.perf_counter()
fit(made(), samples, plan, **options)
found = {"seconds": time.process_time() - start, "wall": time.perf_counter() - wall}
done = True
watcher.join()
print(json.dumps(found | {"memory": peak - before, "mapped": in_use("RssFile:")}))
"""

BY_PART = """
from deep_oversampling.embeddings import embed_classes
from deep_oversampling.objectives import multi_task
from deep_oversampling.overloading import in_class_neighbors
from deep_oversampling.oversampling import oversample
from deep_oversampling.presenting import Presentation
from deep_oversampling.stages import sgd
from deep_oversampling.training import Trainer

def timed(name, function):
    start = time.process_time()
    made = function()
    found[name] = time.process_time() - start
    return made

def draws():
    return torch.Generator().manual_seed(0)

found, network, device = {}, made(), torch.device("cpu")
v = timed("embed", lambda: embed_classes(network, samples, plan.k > 0))
timed("search", lambda: in_class_neighbors(v.v, y[v.rows], plan.k))
z = timed("search and draw", lambda: oversample(samples, v, plan, generator=draws()))
found["draw"] = max(0.0, found.pop("search and draw") - found["search"])
options = {"batch_size": BATCH, "generators": [draws()]}
timed("order", lambda: Presentation([z], device=device, **options))
trainer, options["generators"] = Trainer([network], sgd), [draws()]
timed("steps", lambda: trainer.train_round([z], [multi_task(10.0, 0.3)], **options))
found["steps"] -= found["order"]
print(json.dumps(found))
"""


def write(folder: Path, m: int) -> list[str]:
    rng = np.random.default_rng(0)
    x = np.lib.format.open_memmap(folder / "x.npy", "w+", np.uint8, (m, BYTES))
    y = rng.choice(10, m, p=[0.99 / 6] * 6 + [0.01 / 4] * 4)
    y[:24] = np.arange(24) % 4 + 6  # six of every rare class at least
    for start in range(0, m, 2**20):
        some = slice(start, min(start + 2**20, m))
        x[some] = rng.integers(0, 200, (some.stop - start, BYTES))
        x[some] += y[some, None].astype(np.uint8) * 5
    np.save(folder / "y.npy", y)
    return [str(folder / "x.npy"), str(folder / "y.npy")]


def told(program: str, arguments: list[str]) -> dict[str, float]:
    command = [sys.executable, "-c", COMMON + program, *arguments]
    found: dict[str, float] = json.loads(subprocess.check_output(command, text=True))
    return found


def slope(points: list[tuple[float, float]]) -> float:
    """Of a line through the logarithms: by which power of m it grows."""
    xs, ys = zip(*((math.log(a), math.log(b)) for a, b in points), strict=True)
    return float(np.polyfit(xs, ys, 1)[0])


def measured(m: int, threads: int, by_part: bool) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        arguments = [*write(Path(folder), m), str(D), str(threads)]
        line: dict[str, float] = {"m": m, **told(WHOLE, arguments)}
        if by_part:
            line |= told(BY_PART, arguments)
    print(
        f"{m:>10,}  {line['seconds']:8.2f} s  {m / line['seconds']:>10,.0f} samples/s  "
        f"{line['memory'] / 2**20:8.0f} MiB"
        + "".join(f"  {name} {line[name]:.2f}" for name in PARTS if by_part),
        flush=True,
    )
    return {name: round(value, 4) for name, value in line.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--most", type=int, default=7, help="10 to this power is the largest m")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--whole", action="store_true", help="whole rounds only, not their parts")
    parser.add_argument("--out", type=Path, help="a JSON lines file to write")
    options = parser.parse_args()
    sizes = [10**power for power in range(4, options.most + 1)]
    lines = [measured(m, options.threads, not options.whole) for m in sizes]
    large = lines[-3:]
    slopes = {
        name: round(slope([(line["m"], line[name]) for line in large]), 2)
        for name in ["seconds", "memory", *(PARTS if not options.whole else [])]
    }
    print(f"grows by this power of m, from {large[0]['m']:,.0f} on: {slopes}")
    if options.out:
        head = {"date": str(date.today()), "cores": os.cpu_count(), "machine": platform.machine()}
        head |= {"threads": options.threads, "d": D, "torch": torch.__version__}
        every = [head, *lines, {"slopes": slopes}]
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text("".join(json.dumps(line) + "\n" for line in every))


if __name__ == "__main__":
    main()
