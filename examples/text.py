"""Text, a network over word embeddings: plain training, random over-sampling and DOS.

The corpus is one that every Python carries: the docstrings of its standard library. From the words
of a docstring, tell the package it is from; three of the packages have 15 docstrings each to train
on. The figures differ a little from one Python to the next, as the corpus does.
"""

import ast
import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from deep_oversampling import Network, Plan, Samples, fit, measure, predict
from deep_oversampling.seeding import isolated, streams

PACKAGES = ["asyncio", "email", "importlib", "logging", "unittest", "http", "urllib", "xml"]
RARE = [5, 6, 7]
LENGTH, WORDS = 40, 2000  # words of a docstring, words known; 0 stands for none


@cache
def docstrings(package: str) -> tuple[str, ...]:
    """Every docstring of five words or more, once."""
    found: dict[str, None] = {}
    for file in sorted((Path(os.__file__).parent / package).rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                text = ast.get_docstring(node) or ""
                if len(text.split()) >= 5:
                    found[text] = None
    return tuple(found)


def words(text: str) -> list[str]:
    return re.findall(r"[a-z]+", text.lower())[:LENGTH]


def corpus(seed: int) -> tuple[Samples, Samples]:
    """Half of it to train on, of rare packages 15 docstrings; half to test."""
    draw = np.random.default_rng(seed)
    parts: tuple[list[tuple[str, int]], list[tuple[str, int]]] = ([], [])
    for j, package in enumerate(PACKAGES):
        texts = list(docstrings(package))
        draw.shuffle(texts)
        half = len(texts) // 2
        parts[0].extend((text, j) for text in texts[: 15 if j in RARE else half])
        parts[1].extend((text, j) for text in texts[half:])
    known = Counter(word for text, _ in parts[0] for word in words(text)).most_common(WORDS)
    number = {word: i for i, (word, _) in enumerate(known, 1)}

    def samples(part: list[tuple[str, int]]) -> Samples:
        ids = torch.zeros(len(part), LENGTH, dtype=torch.long)
        for row, (text, _) in zip(ids, part, strict=True):
            found = [number[word] for word in words(text) if word in number]
            row[: len(found)] = torch.tensor(found, dtype=torch.long)
        return Samples(ids, [j for _, j in part], PACKAGES)

    return samples(parts[0]), samples(parts[1])


class MeanOfWords(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(WORDS + 1, 64, padding_idx=0)
        self.hidden = nn.Linear(64, 64)

    def forward(self, ids: Tensor) -> Tensor:  # (b, LENGTH) -> (b, 64)
        count = (ids > 0).sum(1, keepdim=True).clamp(min=1)
        return self.hidden(self.embedding(ids).sum(1) / count).relu()


def network(seed: int) -> Network:
    with isolated(streams(seed)("network")):  # the same first weights for every method
        return Network(MeanOfWords(), nn.Linear(64, len(PACKAGES)))


def adam(parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    return torch.optim.Adam(parameters, lr=0.003)


def main(seeds: Sequence[int] = range(3)) -> dict[str, list[float]]:
    """Mean F1 of the three rare packages, a value for every seed."""
    found: dict[str, list[float]] = {}
    for seed in seeds:
        train, test = corpus(seed)
        plan = Plan.automatic(train.class_counts)
        for method, chosen in (
            ("plain", Plan.plain(train.n)),
            ("random over-sampling", plan.without_neighbours()),
            ("DOS", plan),
        ):
            trained = network(seed)
            fit(trained, train, chosen, rounds=10, optimizer=adam, seed=seed)
            report = measure(predict(trained, test.x), test.y)
            found.setdefault(method, []).append(report.mean(RARE)["f1"])
    return found


if __name__ == "__main__":
    for method, f1 in main().items():
        print(f"{method:<22} F1 of the rare packages {np.mean(f1):.3f} ± {np.std(f1, ddof=1):.3f}")
