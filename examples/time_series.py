"""Time series, a 1-D convolutional network of one's own: plain, SMOTE, random over-sampling, DOS.

Generated heartbeats: most are regular, a few have an extra beat and a few a beat too wide. Every
recording starts at another moment, so what SMOTE mixes of two of them has the beats of both, each
half as high.
"""

from collections.abc import Iterable, Sequence

import numpy as np
import torch
from imblearn.over_sampling import SMOTE
from torch import nn

from deep_oversampling import Network, Plan, Samples, fit, measure, predict
from deep_oversampling.seeding import isolated, streams

LENGTH, PERIOD = 128, 32
CLASSES = ["regular", "extra", "wide"]
COUNTS = [300, 15, 15]


def heartbeats(counts: Sequence[int], seed: int) -> Samples:
    draw = np.random.default_rng(seed)
    signals, labels = [], np.repeat(np.arange(3), counts)
    time = np.arange(LENGTH)
    for label in labels:
        beats = np.arange(-1, 5) * PERIOD + draw.uniform(0, PERIOD) + draw.normal(0, 2, 6)
        widths = np.full(6, 1.5)
        odd = draw.integers(1, 4)  # which beat it is that differs
        if CLASSES[label] == "extra":
            beats, widths = np.append(beats, beats[odd] + PERIOD / 2), np.append(widths, 1.5)
        if CLASSES[label] == "wide":
            widths[odd] = 3.0
        signal = np.exp(-(((time[:, None] - beats) / widths) ** 2) / 2).sum(1)
        signals.append(signal + draw.normal(0, 0.25, LENGTH))
    return Samples(np.array(signals, np.float32)[:, None], labels, CLASSES)


def network(seed: int) -> Network:
    with isolated(streams(seed)("network")):  # the same first weights for every method
        embedder = nn.Sequential(
            nn.Conv1d(1, 16, 9, stride=2),
            nn.LeakyReLU(0.1),
            nn.Conv1d(16, 32, 9, stride=2),
            nn.LeakyReLU(0.1),
            nn.AdaptiveMaxPool1d(1),
            nn.Flatten(),
        )
        return Network(embedder, nn.Linear(32, 3))


def with_smote(samples: Samples, seed: int) -> Samples:
    x, y = SMOTE(random_state=seed).fit_resample(samples.x.flatten(1).numpy(), samples.y.numpy())
    return Samples(x.reshape(-1, 1, LENGTH), y, CLASSES)


def adam(parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    return torch.optim.Adam(parameters, lr=0.005)


def main(seeds: Sequence[int] = range(3)) -> dict[str, list[float]]:
    """Mean F1 of the two rare classes, a value for every seed."""
    found: dict[str, list[float]] = {}
    for seed in seeds:
        train, test = heartbeats(COUNTS, seed), heartbeats([200, 200, 200], 1000 + seed)
        plan = Plan.automatic(train.class_counts)
        for method, samples, chosen in (
            ("plain", train, Plan.plain(3)),
            ("SMOTE", with_smote(train, seed), Plan.plain(3)),
            ("random over-sampling", train, plan.without_neighbours()),
            ("DOS", train, plan),
        ):
            trained = network(seed)
            fit(trained, samples, chosen, rounds=15, batch_size=32, optimizer=adam, seed=seed)
            report = measure(predict(trained, test.x), test.y)
            found.setdefault(method, []).append(report.mean([1, 2])["f1"])
    return found


if __name__ == "__main__":
    for method, f1 in main().items():
        print(f"{method:<22} F1 of the rare beats {np.mean(f1):.3f} ± {np.std(f1, ddof=1):.3f}")
