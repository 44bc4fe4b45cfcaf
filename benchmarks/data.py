"""Pictures from the cache against decoding them: time and memory, side by side in one run.

    python benchmarks/data.py [--pictures 10000] [--data-dir DIR] [--out FILE]

Draws JPEGs into a temporary folder, then loads them four ways: a plain loop with Pillow, a torch
DataLoader over the files, and `load` for the first and for the second time. With --data-dir it
times MNIST from its official files as well. Files are in the operating system's memory for all of
them, which favours the first three.
"""

import argparse
import gzip
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path

import numpy as np
import PIL
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset

from deep_oversampling.data import load

SIDE = 64
LINES: list[dict[str, object]] = []


def report(what: str, seconds: float, reference: float) -> None:
    LINES.append(
        {"what": what, "seconds": round(seconds, 3), "ratio": round(reference / seconds, 2)}
    )
    print(f"{what:58} {seconds:8.3f} s   {reference / seconds:8.2f} ×", flush=True)


def timed(function: Callable[[], object], repeats: int = 1) -> float:
    """The fastest of the repeats."""
    found = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        found.append(time.perf_counter() - start)
    return min(found)


def draw(root: Path, count: int, low: int, high: int) -> None:
    """Photograph-like: smooth, coloured, a little noise, sizes between low and high."""
    rng = np.random.default_rng(0)
    for i in range(count):
        folder = root / f"class {i % 10}"
        folder.mkdir(parents=True, exist_ok=True)
        h, w = rng.integers(low, high + 1, 2)
        coarse = Image.fromarray(rng.integers(0, 256, (6, 8, 3), np.uint8))
        coarse.resize((int(w), int(h)), Image.Resampling.BICUBIC).save(folder / f"{i:06}.jpg")


def one(path: Path) -> np.ndarray:
    with Image.open(path) as image:
        return np.asarray(image.convert("RGB").resize((SIDE, SIDE), Image.Resampling.BILINEAR))


class Files(Dataset):
    def __init__(self, paths: list[Path]) -> None:
        self.paths = paths

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, i: int) -> torch.Tensor:
        return torch.from_numpy(one(self.paths[i]).copy())


def pictures(folder: Path, title: str, count: int, low: int, high: int) -> None:
    root, cache = folder / title, folder / "cache"
    draw(root, count, low, high)
    paths = sorted(root.rglob("*.jpg"))
    print(f"\n{count} JPEGs of {low} to {high} pixels, as {SIDE} × {SIDE}")
    plain = timed(lambda: np.stack([one(path) for path in paths]))
    report(f"{title}: plain loop", plain, plain)
    workers = os.cpu_count() or 1
    loader = DataLoader(Files(paths), batch_size=64, num_workers=workers)
    report(f"{title}: DataLoader, {workers} workers", timed(lambda: list(loader)), plain)
    report(f"{title}: load, first start", timed(lambda: load(root, cache=cache, size=SIDE)), plain)
    again = timed(lambda: load(root, cache=cache, size=SIDE), repeats=3)
    report(f"{title}: load, second start", again, plain)
    whole = timed(lambda: load(root, cache=cache, size=SIDE).train.x[:], repeats=3)
    report(f"{title}: load, second start, all read into memory", whole, plain)


MEMORY = """
import sys, threading, time
from pathlib import Path
import torch
from deep_oversampling import Network, fit
from deep_oversampling.data import load
def in_use():
    status = Path("/proc/self/status").read_text().split()
    return 1024 * int(status[status.index("RssAnon:") + 1])
peak, done = 0, False
def watch():
    global peak
    while not done:
        peak = max(peak, in_use())
        time.sleep(0.002)
torch.set_num_threads(1)
torch.nn.Conv2d(3, 8, 16, 16)(torch.zeros(4, 3, 512, 512)).sum().backward()
before = in_use()
threading.Thread(target=watch, daemon=True).start()
train = load(sys.argv[1], cache=sys.argv[2], size=512).train
embedder = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 16, 16), torch.nn.AdaptiveAvgPool2d(2))
network = Network(torch.nn.Sequential(embedder, torch.nn.Flatten()), torch.nn.Linear(32, 10))
fit(network, train, rounds=1, batch_size=16, device="cpu")
done = True
print(train.x.shape.numel(), peak - before)
"""


def memory(folder: Path) -> None:
    root = folder / "large"
    draw(root, 1000, 512, 512)
    command = [sys.executable, "-c", MEMORY, str(root), str(folder / "cache")]
    size, peak = map(int, subprocess.check_output(command, text=True).split())
    LINES.append({"what": "memory", "data": size, "peak": peak, "ratio": round(size / peak, 2)})
    print(f"\n1000 pictures of 512 × 512: {size / 1e6:.0f} MB decoded; decoding, training for two")
    print(f"rounds and two embedding passes took {peak / 1e6:.0f} MB of memory at most")


def mnist(folder: Path) -> None:
    files = sorted((folder / "mnist").glob("*.gz"))

    def plainly() -> None:
        for file in files:
            with gzip.open(file) as content:
                np.frombuffer(content.read(), np.uint8)

    print("\nMNIST, its four files, compressed as they are published")
    plain = timed(plainly, repeats=3)
    report("MNIST: gzip and NumPy", plain, plain)
    report("MNIST: load, Samples", timed(lambda: load("mnist", data_dir=folder), repeats=3), plain)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pictures", type=int, default=10_000)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--out", type=Path, help="a JSON lines file to write")
    options = parser.parse_args()
    print(f"{'':58} {'time':>8}     plain loop / it")
    with tempfile.TemporaryDirectory() as folder:
        pictures(Path(folder), "small", options.pictures, 60, 120)
        pictures(Path(folder), "photographs", options.pictures // 20, 1200, 2000)
        if sys.platform == "linux":
            memory(Path(folder))
    if options.data_dir:
        mnist(options.data_dir)
    if options.out:
        versions = {"python": platform.python_version(), "torch": torch.__version__}
        head = {"date": str(date.today()), "cores": os.cpu_count(), "machine": platform.machine()}
        lines = [head | versions | {"pillow": PIL.__version__}, *LINES]
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text("".join(json.dumps(line) + "\n" for line in lines))


if __name__ == "__main__":
    main()
