"""What the open readings change, on validation images: seeds and images that no table uses.

    python experiments/studies.py DATA OUT.jsonl [--sets mnist] [--studies R4 R6] [--seeds 3]

All trainings of a choice, three reduction rates and all seeds, go on at once on a GPU. A choice
that is there in OUT already is not trained again.
"""

import argparse
import json
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import torch
from torch import Tensor
from torch.optim import SGD, Optimizer
from torch.optim.lr_scheduler import LambdaLR

import variants
from deep_oversampling import Normalize, Plan, Samples, lenet
from deep_oversampling.algorithm import deep_over_sampling
from deep_oversampling.data.imbalance import drop_from_classes
from deep_oversampling.losses import entropy
from deep_oversampling.network import pick_device
from deep_oversampling.rivals import METHODS, Contest, logit_adjusted
from deep_oversampling.seeding import streams
from deep_oversampling.stages import Member, Stage
from deep_oversampling.together import how_many, train_together
from pull_rule import evaluate
from recording import write_header
from sets import SETS

RATES = (0.90, 0.95, 0.99)  # p
SETTINGS = {"mnist": (3, 60), "back-rotation": (5, 40), "svhn": (3, 60)}  # T, batch size
FIRST_SEED = 100  # the tables have 0 … 9
Change = Callable[[Iterator[Stage], Contest], Iterator[Stage]]


@dataclass(frozen=True)
class Choice:
    """One answer to one question; what is not said is as `fit` has it."""

    study: str
    choice: str
    method: str = "dos"
    lr: float = 0.01
    cosine: bool = False  # the learning rate falls from round to round
    rounds: tuple[float, float] = (1.0, 1.0)  # initial and multi-task, in T
    k: int = 5
    r_times: float = 1.0
    split: str | None = None
    pull: float = 10.0
    limit: float | None = 0.3
    weighted: bool = True
    levelled: bool = True  # False: r = 1
    even: bool = False  # nothing is taken away, and all classes have neighbours
    change: Change | None = None


def choices() -> list[Choice]:
    found = [Choice("default", "ours")]
    for method in ("cnn", "ros", "smote", "logit-adjustment", "ldam-drw", "dos", "dos-la"):
        found += [Choice("R9 lr", f"{lr}", method, lr=lr) for lr in (0.003, 0.01, 0.03)]
        found += [
            Choice("R9 schedule", f"cosine from {lr}", method, lr=lr, cosine=True)
            for lr in (0.0003, 0.001, 0.003, 0.01, 0.02, 0.03, 0.05, 0.1)
        ]
    found += [
        Choice("R5 schedule", f"limit {limit:g}, cosine from {lr}", lr=lr, cosine=True, limit=limit)
        for lr in (0.01, 0.03)
        for limit in (1.0, 3.0)
    ]
    found += [
        Choice("R9 state", "forgotten once", change=lambda s, _: variants.forgetting(s, False)),
        Choice("R9 state", "forgotten", change=lambda s, _: variants.forgetting(s, True)),
        Choice("R2", "stored, λ = 1", change=lambda s, _: variants.stale(s, 1.0)),
        Choice("R2", "stored, λ = 0.1", change=lambda s, _: variants.stale(s, 0.1)),
        *(
            Choice("R2 schedule", f"{name}, cosine from {lr}", lr=lr, cosine=True, change=change)
            for lr in (0.01, 0.02, 0.03, 0.05)
            for name, change in {
                "stored, λ = 1": lambda s, _: variants.stale(s, 1.0),
                "stored, λ = 0.1": lambda s, _: variants.stale(s, 0.1),
                "stored, λ = 0": lambda s, _: variants.stale(s, 0.0),
                "live, held, λ = 0.1": lambda s, _: variants.stale(s, 0.1, live=True),
                "live, held, λ = 1": lambda s, _: variants.stale(s, 1.0, live=True),
                "live, f once": _once,
            }.items()
        ),
        *(
            Choice(
                "R2 at last",
                f"stored for {last}, λ = {pull:g}, cosine from {lr}",
                lr=lr,
                cosine=True,
                change=partial(_at_last, last=last, pull=pull),
            )
            for lr in (0.01, 0.02, 0.03)
            for last in (1, 2)
            for pull in (0.0, 0.1)
        ),
        *(
            Choice(
                "R2 later",
                f"stored, λ = 0.1, cosine from {lr}",
                lr=lr,
                cosine=True,
                rounds=(5 / 3, 1 / 3),
                change=lambda s, _: variants.stale(s, 0.1),
            )
            for lr in (0.01, 0.02, 0.03)
        ),
        *(
            Choice("LA", name, "dos-la", lr=lr, cosine=True, levelled=levelled, limit=limit)
            for lr in (0.01, 0.02, 0.03)
            for name, levelled, limit in (
                (f"levelled, limit 1, from {lr}", True, 1.0),
                (f"as they are, from {lr}", False, 0.3),
                (f"as they are, limit 1, from {lr}", False, 1.0),
            )
        ),
        *(
            Choice(
                "R2 by size",
                f"stored below {size}, cosine from 0.02",
                lr=0.02,
                cosine=True,
                change=partial(_by_size, size=size),
            )
            for size in (100, 1000)
        ),
        Choice("even", "plain", "cnn", lr=0.02, cosine=True, even=True),
        *(
            Choice(
                "even",
                f"limit {limit:g}, k = {k}",
                lr=0.02,
                cosine=True,
                even=True,
                k=k,
                limit=limit,
            )
            for limit in (0.1, 0.3, 1.0, 3.0)
            for k in (3, 10)
        ),
        Choice("even", "λ = 0", lr=0.02, cosine=True, even=True, pull=0.0, limit=None),
        Choice("R4", "through ρ", change=_objective(variants.RHO_LEARNS)),
        Choice("R7", "ρ′₀", change=_objective(variants.OWN_BY_RHO)),
        Choice("R5", "λ = 0", pull=0.0, limit=None),
        Choice("R5", "limit 1", limit=1.0),
        Choice("R5", "limit 3", limit=3.0),
        Choice("R5", "λ = 3 alone", pull=3.0, limit=None),
        Choice("R5", "λ = 10 alone", limit=None),
        Choice("R6", "unweighted", weighted=False),
        Choice("R6", "Dirichlet(0.3)", change=_weights(0.3)),
        Choice("R6", "Dirichlet(5)", change=_weights(5.0)),
        Choice("R10", "F400", split="F400"),
        Choice("R13", "2.5/R", r_times=2.5),
        Choice("R13", "5/R", r_times=5.0),
        Choice("T", "T/3 initial", rounds=(1 / 3, 5 / 3)),
        Choice("T", "2T + 2T", rounds=(2.0, 2.0)),
        Choice("T", "2T + 2T", "ros", rounds=(2.0, 2.0)),
        Choice("k", "3", k=3),
        Choice("k", "10", k=10),
    ]
    return found


def _objective(objective: variants.Objective) -> Change:
    return lambda stages, _: variants.with_objective(stages, objective)


def _once(stages: Iterator[Stage], contest: Contest) -> Iterator[Stage]:
    r = contest.plan.r.to(contest.samples.y.device)
    return variants.with_objective(stages, variants.once(r))


def _by_size(stages: Iterator[Stage], contest: Contest, size: int) -> Iterator[Stage]:
    counts = contest.samples.class_counts
    return variants.with_objective(stages, variants.for_g_alone(counts < size))


def _at_last(stages: Iterator[Stage], contest: Contest, last: int, pull: float) -> Iterator[Stage]:
    return variants.stale_after(stages, contest.rounds - last, pull)


def _weights(alpha: float) -> Change:
    return lambda stages, contest: variants.with_weights(stages, contest.rng, alpha)


def begun(choice: Choice, pool: Samples, p: float, seed: int, rounds: int) -> tuple[Member, list]:
    """A training that has not begun yet, and its minority classes."""
    subset, minority = pool, list(range(pool.n))
    if not choice.even:
        kept, minority = drop_from_classes(pool.to("cpu"), p, generator=streams(seed)("imbalance"))
        subset = pool[kept.to(pool.y.device)]
    plan = planned(choice, subset.class_counts.cpu(), minority)
    shape, normalize = tuple(pool.x.shape[1:]), Normalize.of(subset.x)
    network = lenet(shape, pool.n, split=choice.split, normalize=normalize, seed=seed)
    training = METHODS[choice.method].training
    network = training.prepare(network) if training.prepare else network
    network.to(pool.y.device)
    initial, multi = (max(1, round(share * rounds)) for share in choice.rounds)
    contest = Contest(subset, plan, multi, initial, streams(seed))
    stages = training.stages(network, contest)
    if choice.method in ("dos", "dos-la"):
        adjusted = choice.method == "dos-la"
        stages = deep_over_sampling(
            network,
            subset,
            plan,
            rounds=multi,
            initial_rounds=initial,
            rng=contest.rng,
            pull=choice.pull,
            pull_limit=choice.limit,
            weighted=choice.weighted,
            loss=logit_adjusted(subset.class_counts) if adjusted else entropy,
        )
    if choice.change:
        stages = choice.change(variants.with_every_v(stages, network), contest)
    return Member(network, stages, contest.rng), minority


def planned(choice: Choice, counts: Tensor, minority: list[int]) -> Plan:
    if choice.even:
        return Plan.uniform(len(counts), choice.k)
    plan = Plan.for_minority(counts, minority, choice.k, r_times=choice.r_times)
    plan = plan if choice.levelled else replace(plan, r=torch.ones_like(plan.r))
    return plan.fitted_to(counts)


def falling(total: int, optimizer: Optimizer) -> LambdaLR:
    return LambdaLR(optimizer, lambda t: 0.5 * (1 + math.cos(math.pi * t / total)))


def train(choice: Choice, pool: Samples, seeds: range, rounds: int, batch_size: int) -> list:
    """(p, seed, network, minority) of every training."""
    cells = [(p, seed) for p in ((0.0,) if choice.even else RATES) for seed in seeds]
    minorities: dict[tuple[float, int], list[int]] = {}

    def make(p: float, seed: int) -> Member:
        member, minorities[p, seed] = begun(choice, pool, p, seed, rounds)
        return member

    total = sum(max(1, round(share * rounds)) for share in choice.rounds)
    members = train_together(
        [partial(make, p, seed) for p, seed in cells],
        at_once=how_many(len(cells), pool.y.device),
        batch_size=batch_size,
        optimizer=partial(SGD, lr=choice.lr, momentum=0.9),
        schedule=partial(falling, total) if choice.cosine else None,
    )
    return [
        (p, seed, member, minorities[p, seed])
        for (p, seed), member in zip(cells, members, strict=True)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--sets", nargs="+", default=list(SETTINGS), choices=SETTINGS)
    parser.add_argument("--studies", nargs="+")
    parser.add_argument("--choices", nargs="+")
    parser.add_argument("--methods", nargs="+")
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    device = pick_device()
    done = set()
    if options.out.exists():
        for line in map(json.loads, options.out.read_text().splitlines()):
            done.add((line.get("set"), line.get("study"), line.get("choice"), line.get("method")))
    write_header(options.out, judged_on="validation")
    seeds = range(FIRST_SEED, FIRST_SEED + options.seeds)
    for name in options.sets:
        pool, validation, _ = SETS[name](options.data)
        pool, validation = pool.to(device), validation.to(device)
        for choice in choices():
            if (name, choice.study, choice.choice, choice.method) in done or not (
                (not options.studies or choice.study in options.studies)
                and (not options.choices or choice.choice in options.choices)
                and (not options.methods or choice.method in options.methods)
            ):
                continue
            begin = time.perf_counter()
            trained = train(choice, pool, seeds, *SETTINGS[name])
            seconds = time.perf_counter() - begin
            facts = replace(choice, change=None).__dict__ | {"change": choice.change is not None}
            with options.out.open("a") as file:
                for p, seed, member, minority in trained:
                    line = {"set": name, "p": p, "seed": seed, **facts}
                    line |= evaluate(member.network, minority, validation)
                    line["lost"] = str(member.error or "")
                    file.write(json.dumps(line) + "\n")
            print(f"{name} {choice.study}: {choice.choice}, {choice.method} {seconds:.1f} s")


if __name__ == "__main__":
    main()
