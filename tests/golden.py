"""``python tests/golden.py``: small trainings of every kind; their numbers go to golden.json.

In double precision, so that other processors round otherwise by less than anyone's change of the
algorithm does. Make them again only where a change is meant, and say so in the changelog.
"""

import json
from pathlib import Path
from typing import Any

import torch

from deep_oversampling import Normalize, Plan, Samples, fit, measure, mlp, predict
from deep_oversampling.data import hold_out, imbalanced, load

FILE = Path(__file__).with_suffix(".json")

KINDS: dict[str, tuple[str, dict[str, Any]]] = {  # plan, and what fit is told
    "plain": ("plain", {}),
    "random over-sampling": ("random", {}),
    "DOS": ("automatic", {}),
    "DOS, unweighted": ("automatic", {"weighted": False}),
    "DOS, pull as it is": ("automatic", {"pull": 0.1, "pull_limit": None}),
    "DOS, balanced": ("uniform", {"rounds": 1}),
}


def data() -> tuple[Samples, Samples]:
    """Digits, some of them rare; a fifth is held out before, to measure on."""
    train, test = hold_out(load("digits").train, 0.2)
    train = imbalanced(train, "drop:4:0.9", seed=0).samples
    both = (Samples(one.x[:].double() / 16, one.y, one.classes) for one in (train, test))
    return next(both), next(both)


def plan_of(name: str, counts: torch.Tensor) -> Plan:
    automatic = Plan.automatic(counts)
    plans = {"plain": Plan.plain(len(counts)), "uniform": Plan.uniform(len(counts), k=3)}
    return plans.get(name, automatic.without_neighbours() if name == "random" else automatic)


def trained(kind: str, train: Samples, test: Samples) -> dict[str, Any]:
    name, options = KINDS[kind]
    plan = plan_of(name, train.class_counts)
    network = mlp(64, train.n, (32, 12), normalize=Normalize.of(train.x), seed=1).double()
    told = {"rounds": 2, "seed": 3, "device": "cpu", **options}
    history = fit(network, train, plan, **told)
    report = measure(predict(network, test.x), test.y)
    return {
        "presented": [one.presented for one in history.rounds],
        "classifier_loss": [one.classifier_loss for one in history.rounds],
        "embedding_loss": [one.embedding_loss for one in history.rounds],
        "within": [one.within for one in history.spreads],
        "between": [one.between for one in history.spreads],
        "f1": report.f1.tolist(),
        "auprc": report.auprc.tolist(),
        "weights": [float(p.detach().abs().sum()) for p in network.parameters()],
    }


def main() -> None:
    torch.set_num_threads(1)
    train, test = data()
    found = {kind: trained(kind, train, test) for kind in KINDS}
    FILE.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
