"""A folder as practitioners have it: ten thousand JPEGs, or more than fits into memory."""

import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from deep_oversampling import DOSClassifier, Normalize, Plan, fit, lenet, measure, predict
from deep_oversampling.data import load
from deep_oversampling.views import View
from limited_memory import printed_by

COUNTS = {"common": 7000, "often": 2500, "rare": 450, "hardly": 50}


def draw_shapes(root: Path, counts: dict[str, int]) -> None:
    """Noisy bars: each class at an angle of its own, anywhere, of any brightness."""
    rng = np.random.default_rng(0)
    grid = np.mgrid[-1:1:16j, -1:1:16j]
    for j, (name, count) in enumerate(counts.items()):
        (root / name).mkdir(parents=True)
        angle = np.pi * j / len(counts) + rng.normal(0, 0.08, (count, 1, 1))
        off = rng.uniform(-0.5, 0.5, (count, 1, 1))
        bar = np.exp(-(((grid[0] * np.cos(angle) + grid[1] * np.sin(angle) - off) / 0.2) ** 2))
        image = bar * rng.uniform(100, 200, (count, 1, 1)) + rng.normal(20, 15, bar.shape)
        for i, pixels in enumerate(image.clip(0, 255).astype(np.uint8)):
            Image.fromarray(pixels).convert("RGB").save(root / name / f"{i}.jpg", quality=90)


@pytest.mark.slow
def test_ten_thousand_jpegs_train_through_fit_and_through_the_classifier(tmp_path: Path) -> None:
    draw_shapes(tmp_path / "bars", COUNTS)
    splits = load(tmp_path / "bars", cache=tmp_path / "cache").with_validation(0.2)
    train, held_out = splits.train, splits.validation
    assert held_out is not None
    assert len(train) + len(held_out) == 10_000
    assert isinstance(train.x, View)
    chance = 1 / len(COUNTS)

    network = lenet((3, 16, 16), train.n, normalize=Normalize.of(train.x))
    fit(network, train, Plan.automatic(train.class_counts), rounds=1, device="cpu")
    report = measure(predict(network, held_out.x), held_out.y)
    assert report.recall.mean() > 2 * chance

    classifier = DOSClassifier(rounds=1, device="cpu").fit(train.x, train.labels)
    assert sorted(classifier.classes_) == sorted(COUNTS)
    found = classifier.predict(held_out.x)
    recalls = [np.mean(found[held_out.labels == name] == name) for name in COUNTS]
    assert np.mean(recalls) > 2 * chance
    assert classifier.transform(held_out.x).shape[0] == len(held_out)


PROGRAM = """
import resource, sys
from pathlib import Path
import numpy as np, torch
from deep_oversampling import Network, fit, predict
from deep_oversampling.data import load

def in_use():
    status = Path("/proc/self/status").read_text().split()
    return 1024 * int(status[status.index("VmData:") + 1])

torch.set_num_threads(1)
torch.manual_seed(0)
torch.nn.Conv2d(3, 4, 16, 16)(torch.zeros(1, 3, 768, 768)).sum().backward()  # warm up
limit, size = int(sys.argv[3]), int(sys.argv[4])
resource.setrlimit(resource.RLIMIT_DATA, (in_use() + limit,) * 2)
try:
    np.ones(size, np.uint8)
    sys.exit("the limit does not hold")
except MemoryError:
    pass
splits = load(sys.argv[1], cache=sys.argv[2]).with_validation(0.2)
embedder = torch.nn.Sequential(
    torch.nn.Conv2d(3, 4, 16, 16),
    torch.nn.AdaptiveAvgPool2d(4),
    torch.nn.Flatten(),
)
network = Network(embedder, torch.nn.Linear(64, 2))
# a small rate: the network is given bytes as they are
options = {"optimizer": lambda p: torch.optim.SGD(p, lr=1e-6), "device": "cpu"}
fit(network, splits.train, rounds=1, batch_size=3, **options)
print(len(splits.train), len(predict(network, splits.validation.x)))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited in Linux's way")
def test_pictures_larger_than_memory_are_decoded_split_and_trained_on(tmp_path: Path) -> None:
    side, counts = 768, {"a": 240, "b": 60}
    ramp = np.linspace(0, 200, side)[:, None, None] * np.ones((1, side, 3))
    for j, (name, count) in enumerate(counts.items()):
        (tmp_path / "set" / name).mkdir(parents=True)
        for i in range(count):
            image = np.roll(ramp, 5 * i, j).astype(np.uint8)
            Image.fromarray(image).save(tmp_path / "set" / name / f"{i}.jpg")
    size = side * side * 3 * sum(counts.values())
    limit = size * 3 // 4
    arguments = [tmp_path / "set", tmp_path / "cache", limit, size]
    # asked for by size: without it pictures as large as these would become 224 × 224
    program = PROGRAM.replace("cache=sys.argv[2])", f"cache=sys.argv[2], size={side})")
    assert printed_by(program, *arguments) == "240 60\n"
