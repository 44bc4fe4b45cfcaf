"""More samples than memory has room for: what training keeps of them is little."""

import sys
from pathlib import Path

import numpy as np
import pytest

from limited_memory import printed_by

PROGRAM = """
import resource, sys
from pathlib import Path
import numpy as np, torch
from deep_oversampling import Network, Plan, Samples, View, fit

def in_use():
    status = Path("/proc/self/status").read_text().split()
    return 1024 * int(status[status.index("VmData:") + 1])

torch.set_num_threads(1)
stored = torch.from_numpy(np.load(sys.argv[1], mmap_mode="c"))
m, d, limit = len(stored), 128, int(sys.argv[2])
y = (torch.arange(m) % 100 == 0).long()
samples = Samples(View.of(stored), y)

def train(some):
    torch.manual_seed(0)
    network = Network(torch.nn.Sequential(torch.nn.Linear(16, d), torch.nn.Tanh()),
                      torch.nn.Linear(d, 2))
    plan = Plan(k=[0, 3], r=[1, 4])
    return fit(network, some, plan, rounds=1, initial_rounds=0, batch_size=2000, device="cpu")

train(samples.subset(torch.arange(2000)))  # warm up
resource.setrlimit(resource.RLIMIT_DATA, (in_use() + limit,) * 2)
try:
    np.ones(m * d * 4, np.uint8)
    sys.exit("the limit does not hold")
except MemoryError:
    pass
print(train(samples).rounds[0].presented)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited in Linux's way")
def test_training_takes_less_memory_than_all_embeddings(tmp_path: Path) -> None:
    """Two fifths of v of all samples, of which chunks of batches may take 64 MiB at any m."""
    m, d = 400_000, 128
    draw = np.random.default_rng(0)
    np.save(tmp_path / "x.npy", draw.integers(0, 256, (m, 16), np.uint8))
    arguments = [tmp_path / "x.npy", 4 * m * d * 2 // 5]
    assert printed_by(PROGRAM, *arguments) == f"{m + 3 * m // 100}\n"
