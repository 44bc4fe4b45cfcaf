"""SMOTE: every rare class on its own, and nothing else is read or copied."""

import sys
from itertools import combinations
from pathlib import Path

import imblearn.over_sampling
import numpy as np
import pytest
import torch
from torch import Tensor

from contests import contest, pictures, trained
from deep_oversampling import InputError, Plan, Samples, View
from deep_oversampling.rivals import METHODS
from deep_oversampling.rivals.smote import with_smote
from deep_oversampling.rivals.tables import Joined
from deep_oversampling.seeding import streams
from limited_memory import printed_by
from toy import blobs

close = torch.testing.assert_close
COUNTS = (40, 7, 1, 2, 4, 30)
PLAN = Plan(k=[0] * 6, r=[1, 5, 9, 20, 8, 1])
SAMPLES = blobs(COUNTS)


def made_of(samples: Samples, plan: Plan = PLAN, seed: int = 0) -> Samples:
    table = with_smote(samples, plan, streams(seed))
    assert isinstance(table, Joined)
    assert table.samples is samples  # not copied
    return table.made


def off_lines(points: Tensor, ends: Tensor, lines: list[tuple[int, int]]) -> Tensor:
    """How far each point is from the nearest of the segments between two ends."""
    a, b = ends[[i for i, _ in lines]], ends[[j for _, j in lines]]
    along, way = b - a, points.unsqueeze(1) - a
    share = ((way * along).sum(2) / along.square().sum(1)).clamp(0, 1)
    return (way - share.unsqueeze(2) * along).norm(dim=2).min(1).values


def test_every_class_has_as_many_samples_as_dos_presents() -> None:
    made = made_of(SAMPLES)
    counts = torch.tensor(COUNTS)
    assert (made.class_counts + counts).tolist() == (PLAN.r * counts).tolist()
    assert made.classes == SAMPLES.classes
    assert made.x.dtype == SAMPLES.x.dtype


@pytest.mark.parametrize("j", [1, 3, 4])
def test_made_samples_stand_between_neighbours_of_their_class(j: int) -> None:
    """Between a sample and one of its k nearest, k = min(5, m_j − 1): class 1 has 6 others."""
    made = made_of(SAMPLES)
    points, own = made.x[made.y == j], SAMPLES.x[SAMPLES.y == j]
    k = min(5, len(own) - 1)
    nearest = torch.cdist(own, own).argsort(1)[:, 1 : k + 1]
    lines = [(i, n) for i in range(len(own)) for n in nearest[i].tolist()]
    assert off_lines(points, own, lines).max() < 1e-4
    assert len(points.unique(dim=0)) == len(points)
    assert (torch.cdist(points, own).min(1).values > 1e-4).any()


def test_the_sixth_neighbour_is_none() -> None:
    """Seven in a line, the last far away: lines between lead there from itself, a seventh."""
    x = torch.tensor([0.0, 1, 2, 3, 4, 5, 100])[:, None] * torch.ones(4)
    samples = Samples(torch.cat([x, torch.rand(30, 4)]), [1] * 7 + [0] * 30)
    made = made_of(samples, Plan(k=[0, 0], r=[1, 200])).x
    far = float((made[:, 0] > 5).float().mean())
    assert 0.11 < far < 0.17  # 2/7 if it were the neighbour of the others as well


def test_each_class_uses_its_own_number_of_neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    used = []

    class Watched(imblearn.over_sampling.SMOTE):
        def _fit_resample(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            used.append((int((y == 1).sum()), self.k_neighbors, self.random_state))
            return super()._fit_resample(x, y)

    monkeypatch.setattr(imblearn.over_sampling, "SMOTE", Watched)
    made_of(SAMPLES)
    assert {(m, k) for m, k, _ in used} == {(7, 5), (2, 1), (4, 3)}  # in any order: threads
    assert len(used) == 3
    assert len({seed for *_, seed in used}) == 3


def test_a_class_does_not_depend_on_the_others() -> None:
    """Neither its neighbours nor its draws: only the labels of the rest change."""
    made = made_of(SAMPLES)
    alone = made_of(SAMPLES, Plan(k=[0] * 6, r=[1, 5, 1, 1, 1, 1]))
    assert torch.equal(alone.x, made.x[made.y == 1])


def test_a_lone_sample_is_repeated_and_the_others_still_interpolate() -> None:
    made = made_of(SAMPLES)
    (lone,) = SAMPLES.x[SAMPLES.y == 2]
    assert torch.equal(made.x[made.y == 2], lone.expand(8, -1))
    for j in (1, 3, 4):
        own = SAMPLES.x[SAMPLES.y == j]
        assert (torch.cdist(made.x[made.y == j], own).min(1).values > 1e-4).any()


def test_repeatable_and_other_with_another_seed() -> None:
    first, again, other = (made_of(SAMPLES, seed=seed).x for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


@pytest.mark.parametrize("samples", [SAMPLES, blobs((9, 9))], ids=["imbalanced", "balanced"])
def test_where_nothing_is_to_be_made_the_samples_are_all(samples: Samples) -> None:
    assert with_smote(samples, Plan.uniform(samples.n, k=3), streams(0)) is samples


def test_imbalanced_learn_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "imblearn.over_sampling", None)
    with pytest.raises(
        InputError, match=r"cannot be imported .*; pip install 'deep-oversampling\[rivals"
    ):
        with_smote(SAMPLES, PLAN, streams(0))


# where samples are stored


def test_pixels_stay_whole_numbers() -> None:
    images = pictures()
    made = made_of(images, Plan(k=[0, 0, 3], r=[1, 1, 30]))
    own = images.x[images.y == 2]
    assert made.x.dtype == torch.uint8
    assert made.x.shape == (116, 1, 8, 8)
    lines = list(combinations(range(4), 2))
    flat = made.x.flatten(1).float(), own.flatten(1).float()
    assert off_lines(*flat, lines).max() <= 0.5 * 64**0.5  # half a step of each pixel


@pytest.mark.parametrize("dtype", [torch.float16, torch.float64], ids=str)
def test_floats_keep_their_type(dtype: torch.dtype) -> None:
    samples = Samples(SAMPLES.x.to(dtype), SAMPLES.y)
    made = made_of(samples)
    assert made.x.dtype == dtype
    close(made.x.float(), made_of(SAMPLES).x, rtol=1e-2, atol=1e-2)


class CountingTensor(torch.Tensor):
    """Counts the rows that are read."""

    read = 0

    def __getitem__(self, key: Tensor) -> Tensor:  # type: ignore[override]
        CountingTensor.read += len(key)
        return super().__getitem__(key).as_subclass(Tensor)


def test_of_a_view_only_the_rare_rows_are_read() -> None:
    images = pictures((500, 8, 3))
    plan = Plan(k=[0, 0, 0], r=[1, 60, 160])
    view = View.of(images.x.as_subclass(CountingTensor))
    samples = Samples(view, images.y)
    CountingTensor.read = 0
    table = with_smote(samples, plan, streams(0))
    assert CountingTensor.read == 8 + 3
    assert torch.equal(table.made.x, made_of(images, plan).x)
    CountingTensor.read = 0
    table[torch.tensor([3, 900, 5])]
    assert CountingTensor.read == 3


@pytest.mark.parametrize("name", ["smote", "embedding-smote"])
def test_it_is_presented_in_the_last_rounds(name: str) -> None:
    *_, before, last = trained(METHODS[name], contest()).stages
    assert isinstance(last.table, Joined)
    assert before.table is last.table


PROGRAM = """
import resource, sys
from pathlib import Path
import numpy as np, torch
from deep_oversampling import Plan, Samples, View
from deep_oversampling.rivals.smote import with_smote
from deep_oversampling.samples import as_tensor
from deep_oversampling.seeding import streams

def in_use():
    status = Path("/proc/self/status").read_text().split()
    return 1024 * int(status[status.index("VmData:") + 1])

stored = np.load(sys.argv[1], mmap_mode="r")
y = [0] * (len(stored) - 20) + [1] * 20
warm_up = Samples(torch.rand(9, 4), [0, 1, 1] * 3)
with_smote(warm_up, Plan(k=[0, 0], r=[1, 2]), streams(0))
resource.setrlimit(resource.RLIMIT_DATA, (in_use() + stored.nbytes // 2,) * 2)
try:
    np.ones(stored.nbytes, np.uint8)
    sys.exit("the limit does not hold")
except MemoryError:
    pass
samples = Samples(View.of(as_tensor(stored, "x")), y)
table = with_smote(samples, Plan(k=[0, 5], r=[1, 20]), streams(0))
for start in range(0, len(table), 10):
    batch = table[torch.arange(start, start + 10)]
print(len(table), batch.x.dtype, batch.y.unique().tolist())
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited in Linux's way")
def test_samples_larger_than_memory_are_joined_with_made_ones(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    x = np.lib.format.open_memmap(path, "w+", np.uint8, (32_000, 3, 64, 64))
    x[-20:] = np.random.default_rng(0).integers(256, size=(20, 3, 64, 64))
    x.flush()
    assert printed_by(PROGRAM, path) == "32380 torch.uint8 [1]\n"
