"""The learning rates of the paper's tables, by validation: seeds and images that no table uses.

    python experiments/rates.py DATA OUT [--sets svhn cifar10] [--rates 0.003 0.01 0.03]

What `studies.py` does not cover: balanced sets, and the methods of the baseline comparison. Each
rate has a file of trials in OUT, whose test set is the validation set; what is there already is
not run again. At the end, mean F1 of all classes, and the best rate of each method.
"""

import argparse
from dataclasses import replace
from pathlib import Path

from deep_oversampling.data import Splits, load, mirrored_and_rotated
from deep_oversampling.paper.settings import SCHEDULE, SETS
from deep_oversampling.rivals import METHODS
from deep_oversampling.rivals.compare import contents
from deep_oversampling.rivals.missing import missing_trials, run_missing
from deep_oversampling.rivals.trials import Setting, Trial, append_trial, read_trials
from deep_oversampling.seeding import streams

SEEDS = (100, 101)
_BASELINES = ("gaussian:0.2", "by counts", ("cnn", "ros", "tl-rs-csl", "lmle", "dos"))
CONTESTS = {
    "svhn": ("none", "uniform", ("cnn", "dos")),
    "cifar10": ("none", "uniform", ("cnn", "dos")),
    "stl10": ("none", "uniform", ("cnn", "dos")),
    "mnist-back-rotation": _BASELINES,
    "mnist-back-rotation-x10": _BASELINES,
}


def judged_on_validation(name: str, folder: Path) -> Splits:
    name, _, copies = name.partition("-x")
    splits = load(name, data_dir=folder).with_validation(0.1)
    splits = replace(splits, test=splits.validation, validation=None)
    if copies:
        train = mirrored_and_rotated(splits.train, int(copies), generator=streams(0)("copies"))
        splits = replace(splits, train=train.with_x(train.x[:]))
    return splits


def trials(name: str, splits: Splits, rate: float, out: Path) -> list[Trial]:
    imbalance, plan, methods = CONTESTS[name]
    of = SETS[name.partition("-x")[0]]
    setting = Setting(
        data=f"{splits.name}, validation",
        contents=contents(splits),
        imbalance=imbalance,
        model=of.layers,
        k=5,
        rounds=of.rounds,
        batch_size=of.batch_size,
        learning_rate=rate,
        test_share=0.2,
        plan=plan,
        schedule=SCHEDULE,
    )
    path = out / f"{name}-{rate}.jsonl"
    found = read_trials(path, setting)
    missing = missing_trials(found, [METHODS[method] for method in methods], SEEDS)
    for trial in run_missing(splits, setting, missing):
        append_trial(path, trial)
        found.append(trial)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--sets", nargs="+", default=list(CONTESTS), choices=CONTESTS)
    parser.add_argument("--rates", nargs="+", type=float, default=[0.003, 0.01, 0.02, 0.03, 0.05])
    options = parser.parse_args()
    for name in options.sets:
        splits = judged_on_validation(name, options.data)
        scores: dict[str, dict[float, float]] = {}
        for rate in options.rates:
            for trial in trials(name, splits, rate, options.out):
                of = scores.setdefault(trial.method, {})
                of[rate] = of.get(rate, 0.0) + trial.mean("f1", "all") / len(SEEDS)
        for method, of in scores.items():
            told = ", ".join(f"{rate:g}: {score:.4f}" for rate, score in of.items())
            print(f"{name} {method}: {told}; best {max(of, key=of.__getitem__):g}", flush=True)


if __name__ == "__main__":
    main()
