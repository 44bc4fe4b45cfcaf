"""What ``fit(recover=True)`` saves where the learning rate is too high.

    python experiments/recovering.py

Digits, the small CNN of ``dos compare``, T = 3, seeds 0, 1 and 2, SGD with momentum 0.9 on one
thread: how many trainings are lost without it and with it, and the F1 over all classes, on a
fifth that is held out, of each that it saved.
"""

import logging
from functools import partial

import torch
from torch.optim import SGD

from deep_oversampling import TrainingError, fit, measure, predict
from deep_oversampling.data import hold_out, load
from deep_oversampling.rivals.networks import make_network

RATES = (0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0, 3.0)
SEEDS = (0, 1, 2)


def trained(rate: float, seed: int, *, recover: bool) -> float | None:
    """The F1; None where training was lost."""
    whole, test = hold_out(load("digits").train, 0.2, seed=seed)
    network = make_network("auto", whole, seed)
    optimizer = partial(SGD, lr=rate, momentum=0.9)
    options = {"rounds": 3, "batch_size": 60, "seed": seed, "device": "cpu"}
    try:
        fit(network, whole, optimizer=optimizer, recover=recover, **options)
    except TrainingError:
        return None
    return float(measure(predict(network, test.x), test.y).f1.mean())


def main() -> None:
    torch.set_num_threads(1)
    logging.disable()  # of every round that is made again
    print("| learning rate | lost without | with `recover` | F1 of each that was saved |")
    print("|---|---|---|---|")
    for rate in RATES:
        without = [trained(rate, seed, recover=False) for seed in SEEDS]
        with_it = [trained(rate, seed, recover=True) for seed in SEEDS]
        pairs = list(zip(without, with_it, strict=True))
        saved = ", ".join(f"{b:.2f}"[1:] for a, b in pairs if a is None and b is not None)
        lost = [found.count(None) for found in (without, with_it)]
        others = "" if all(a == b for a, b in pairs if a is not None) else ", another F1"
        print(f"| {rate:g} | {lost[0]} of 3 | {lost[1]} of 3{others} | {saved} |", flush=True)


if __name__ == "__main__":
    main()
