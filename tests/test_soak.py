"""Load: many runs, many processes, many classes and samples, and sizes at their limits."""

import gc
import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import deep_oversampling
from deep_oversampling import Network, Plan, Samples, fit, measure, mlp, predict
from deep_oversampling.data import Splits
from deep_oversampling.overloading import in_class_neighbors
from deep_oversampling.runs import Run, Settings, evaluate, prepare, train
from deep_oversampling.runs.folder import save_run
from deep_oversampling.runs.places import write_config
from deep_oversampling.runs.record import make_record
from picture_files import folder_of
from toy import blobs, generator, small, weights
from toy import train as trained

MiB = 1 << 20


def resident() -> int:
    """Bytes of this process that are in memory now."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208


def one_run(folder: Path, seed: int) -> str:
    """Train, keep, open again, evaluate: a fingerprint of the weights."""
    settings = Settings("blobs", rounds=1, seed=seed, device="cpu")
    task = prepare(settings, Splits("blobs", blobs((40, 30, 9))))
    outcome = train(task)
    assert outcome is not None
    folder.mkdir(exist_ok=True)
    write_config(folder, task.settings)
    run = save_run(folder, make_record(task, outcome, held_out=True), outcome.networks)
    network = Run.open(run.folder).network(device="cpu")
    assert evaluate(run, task.validation, network).groups == outcome.measures["dos"]
    return hashlib.sha256(weights(network).numpy().tobytes()).hexdigest()


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is told by Linux")
def test_two_hundred_runs_in_one_process_leave_nothing_behind(tmp_path: Path) -> None:
    prints: dict[int, set[str]] = {}
    memory, files = 0, 0
    for i in range(200):
        if i == 50:  # whatever is loaded once is loaded
            memory, files = resident(), open_files()
        prints.setdefault(i % 5, set()).add(one_run(tmp_path / "run", seed=i % 5))
    assert resident() - memory < 20 * MiB
    assert open_files() <= files
    assert [len(found) for found in prints.values()] == [1] * 5  # a seed is a seed
    assert len(set.union(*prints.values())) == 5


# one of many at once: decodes pictures into the cache that all share, trains, says what it got
PROGRAM = """
import hashlib, sys
import torch
torch.set_num_threads(1)
from deep_oversampling import fit, lenet
from deep_oversampling.data import load
splits = load(sys.argv[1], cache=sys.argv[2])
network = lenet((3, 8, 8), splits.train.n, "C4-F8", seed=int(sys.argv[3]))
fit(network, splits.train, rounds=1, seed=int(sys.argv[3]), device="cpu")
values = torch.cat([p.detach().flatten() for p in network.parameters()])
print(hashlib.sha256(values.numpy().tobytes()).hexdigest())
"""


@pytest.mark.slow
def test_twenty_processes_at_once_do_not_meddle(tmp_path: Path) -> None:
    folder_of(tmp_path / "set", {"a": 30, "b": 20, "c": 6}, (8, 8, 3))
    place = {**os.environ, "PYTHONPATH": str(Path(deep_oversampling.__file__).parents[1])}

    def start(seed: int) -> subprocess.Popen[str]:
        arguments = [str(tmp_path / "set"), str(tmp_path / "cache"), str(seed)]
        command = [sys.executable, "-c", PROGRAM, *arguments]
        return subprocess.Popen(command, env=place, stdout=subprocess.PIPE, text=True)

    processes = [start(seed % 10) for seed in range(20)]
    found = [process.communicate()[0].strip() for process in processes]
    assert [process.returncode for process in processes] == [0] * 20
    assert found[:10] == found[10:]
    assert len(set(found)) == 10
    kept = [path for path in (tmp_path / "cache").iterdir() if path.name != "states"]
    assert len(kept) == 1  # one won, and no part is left


# one of many at once in one folder: says what it got, or that another one is at work
ALONE = """
import hashlib, sys
import torch
torch.set_num_threads(1)
sys.path.insert(0, sys.argv[1])
from deep_oversampling import Checkpoints, InputError, fit
from toy import blobs, small, weights
network = small()
checkpoints = Checkpoints(sys.argv[2], minutes=1e-6)
try:
    fit(network, blobs(), rounds=20, batch_size=5, device="cpu", checkpoint=checkpoints)
    print(hashlib.sha256(weights(network).numpy().tobytes()).hexdigest())
except InputError as error:
    print("refused" if "one process at a time" in str(error) else error)
"""


@pytest.mark.slow
def test_twenty_processes_at_once_in_one_folder(tmp_path: Path) -> None:
    place = {**os.environ, "PYTHONPATH": str(Path(deep_oversampling.__file__).parents[1])}
    command = [sys.executable, "-c", ALONE, str(Path(__file__).parent), str(tmp_path / "c")]

    def start() -> subprocess.Popen[str]:
        return subprocess.Popen(command, env=place, stdout=subprocess.PIPE, text=True)

    processes = [start() for _ in range(20)]
    found = [process.communicate()[0].strip() for process in processes]
    assert [process.returncode for process in processes] == [0] * 20
    assert len(set(found) - {"refused"}) == 1  # who came later found it finished: the same weights
    assert "refused" in found
    assert sorted(path.suffix for path in (tmp_path / "c").iterdir()) == [".checkpoint"] * 2


@pytest.mark.slow
def test_a_thousand_classes() -> None:
    n, d = 1000, 16
    means = 3 * torch.randn(n, d, generator=generator())
    counts = torch.tensor([20 if j % 4 else 5 for j in range(n)])
    y = torch.arange(n).repeat_interleave(counts)
    samples = Samples(means[y] + torch.randn(len(y), d, generator=generator(1)), y)
    network = mlp(d, n, (64, 32))
    plan = Plan.automatic(samples.class_counts, k=4)
    history = fit(network, samples, plan, rounds=2, batch_size=250, device="cpu")
    assert history.rounds[-1].presented == 750 * 20 + 250 * 5 * 4
    assert history.rounds[1].classifier_loss < history.rounds[0].classifier_loss
    report = measure(predict(network, samples.x), samples.y)
    assert report.recall.mean() > 5 / n


@pytest.mark.slow
def test_a_million_samples() -> None:
    counts = (900_000, 90_000, 10_000)
    samples = blobs(counts, d=2)
    before = resident()
    history = trained(small(3, d=2), samples, batch_size=20_000)
    assert [one.presented for one in history.rounds] == [1_000_000, 2_700_000]
    assert resident() - before < 1024 * MiB


@pytest.mark.parametrize("counts", [(30, 1), (30, 2), (5, 1, 1), (2, 1)], ids=str)
def test_classes_of_one_sample(counts: tuple[int, ...]) -> None:
    samples = blobs(counts)
    with pytest.warns(UserWarning, match=r"has \d sample\(s\), so k="):
        history = trained(small(len(counts)), samples, Plan.automatic(samples.class_counts, 5))
    assert all(torch.tensor(r.classifier_loss).isfinite() for r in history.rounds)


@pytest.mark.parametrize("m", [2, 3, 40, 257])
def test_all_of_a_class_are_neighbours(m: int) -> None:
    """k = m_j − 1, the most there are."""
    samples = blobs((300, m))
    found = in_class_neighbors(samples.x, samples.y, torch.tensor([0, m - 1]))
    rows = (samples.y == 1).nonzero().flatten()
    assert all(found.index[i].sort().values.equal(rows) for i in rows.tolist())
    network = small(2)
    trained(network, samples, Plan(k=[0, m - 1], r=[1, 2]))
    assert weights(network).isfinite().all()


class _Wide(nn.Module):
    """An embedding of any width without as many weights: columns again and again."""

    def __init__(self, d: int) -> None:
        super().__init__()
        self.first, self.d = nn.Linear(4, min(d, 8)), d

    def forward(self, x: Tensor) -> Tensor:
        v = self.first(x)
        return v.repeat(1, self.d // v.shape[1])


@pytest.mark.parametrize("d", [1, 8192])
def test_embeddings_of_one_dimension_and_of_thousands(d: int) -> None:
    network = Network(_Wide(d), nn.Linear(d, 3))
    history = trained(network, blobs(), Plan(k=[0, 3, 5], r=[1, 1, 3]))
    assert history.rounds[-1].embedding_loss > 0
    assert weights(network).isfinite().all()
