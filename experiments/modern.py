"""Which form of DOS lifts a modern network? ResNet-32 on CIFAR-10-LT, batch norm, augmentation.

    python experiments/modern.py DATA OUT.jsonl --imbalance exp:100 --forms 'la*' --seeds 5
    python experiments/modern.py DATA OUT.jsonl --forms la 'la+dos-half[k=10,pull=1.0]'

The protocol is that of ``dos compare --recipe cifar-lt`` (docs/modern.md), that of choices is in
docs/finding.md: forms are judged by the images that the imbalance protocol took away, all of them,
as mean recall over the classes; the test set is not read but for the last table, with ``--judge
test``. What partners trained is kept in the folder of OUT, so a form costs only what it adds; what
OUT has already is not run again. One JSON line per training.
"""

import argparse
import fnmatch
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

import torch
from torch.optim import SGD, Optimizer
from torch.optim.lr_scheduler import LambdaLR

from deep_oversampling import Engine, Network, Samples, measure, predict
from deep_oversampling.augmentation import CropAndFlip
from deep_oversampling.checkpoint import load_weights, save_weights
from deep_oversampling.data import Splits, hold_out, imbalanced, load, set_aside
from deep_oversampling.errors import InputError
from deep_oversampling.network import pick_device
from deep_oversampling.probes import logistic_probe
from deep_oversampling.rivals import adjusted_afterwards
from deep_oversampling.rivals.method import evenly
from deep_oversampling.rivals.networks import make_network
from deep_oversampling.rivals.recipes import rate_share
from deep_oversampling.seeding import Streams, streams
from deep_oversampling.stages import Member, Stage
from deep_oversampling.turns import train_in_turns
from forms import FORMS, Begin, Form
from miniature import halved, small_residual
from partners import PARTNERS, Task
from recording import write_header

T = TypeVar("T")

BEFORE = {"judge": "removed", "miniature": False}  # what the first lines of the search do not say
AFTERWARDS = (-0.5, -0.25, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0)  # τ

PARTS: tuple[Begin, ...] = ("start", "half", "late", "end")  # each begins where the last one ends


@dataclass(frozen=True)
class Settings:
    """All that a line depends on but its form and seed."""

    imbalance: str = "exp:100"
    epochs: int = 200
    batch_size: int = 128
    learning_rate: float = 0.1
    weight_decay: float = 2e-4
    model: str = "resnet32"
    bf16: bool = False
    judge: str = "removed"  # or "test", for what has been chosen
    miniature: bool = False  # 2,000 images of a class, of half the size, a small network

    @property
    def augment(self) -> CropAndFlip:
        return CropAndFlip(2) if self.miniature else CropAndFlip()

    def rounds(self, begins: Begin) -> range:
        """The epochs that a form trains for; a second stage comes after the last."""
        half, late, whole = self.epochs // 2, self.epochs * 4 // 5, self.epochs
        second = max(1, self.epochs // 20)
        return {
            "start": range(whole),
            "half": range(half, whole),
            "late": range(late, whole),
            "end": range(whole, whole + second),
        }[begins]

    def rate_share(self, t: int) -> float:
        late, end = len(self.rounds("late")), len(self.rounds("end"))
        return rate_share(t, rounds=self.epochs, late_rounds=late, head_rounds=end)


class Search:
    """Trains forms on the subsets of some seeds, and keeps what their partners trained."""

    def __init__(
        self, splits: Splits, settings: Settings, folder: Path, device: torch.device, at_once: int
    ) -> None:
        self.settings, self._folder = settings, folder
        self._device, self._at_once = device, at_once
        self.data = cache(partial(self._data, splits))

    def run(self, jobs: Sequence[tuple[Form, int]]) -> Iterator[dict[str, object]]:
        """A line for every form and seed."""
        self._prepare(jobs)
        for begins in reversed(PARTS):  # the cheap ones first
            chosen = [(form, seed) for form, seed in jobs if form.begins == begins]
            for some in _in_groups(chosen, self._at_once):
                members = [self._begun(form, seed) for form, seed in some]
                self._train(members, self.settings.rounds(begins))
                for (form, seed), member in zip(some, members, strict=True):
                    yield self._line(form, seed, member)

    def curves(self, jobs: Sequence[tuple[str, int]]) -> Iterator[tuple[str, int, list[float]]]:
        """Accuracy after every epoch of partners' whole trainings, which are not kept."""
        for some in _in_groups(list(jobs), self._at_once):
            members = [self._partner_begun(*one, "start", "end") for one in some]
            for (_, seed), member in zip(some, members, strict=True):
                member.judge = partial(_judged, judged=self.data(seed)[1])
            self._train(members, self._between("start", "end"))
            for (partner, seed), member in zip(some, members, strict=True):
                if member.error:
                    raise member.error
                rounds = member.history.rounds
                yield partner, seed, [one.validation["all"]["accuracy"] for one in rounds]

    def _data(self, splits: Splits, seed: int) -> tuple[Samples, Samples]:
        """What is trained on, and what is judged by."""
        subset = imbalanced(splits.train, self.settings.imbalance, seed=seed)
        if self.settings.judge == "test":
            assert splits.test is not None
            train, judged = subset.samples, splits.test
        else:
            train, judged = set_aside(subset, even=False)
        return train.to(self._device), judged.to(self._device)

    def _prepare(self, jobs: Sequence[tuple[Form, int]]) -> None:
        """Train what the forms begin with, where it is not there yet."""
        for part, ends in pairwise(PARTS):
            later = PARTS[PARTS.index(ends) :]
            wanted = dict.fromkeys((form.partner, s) for form, s in jobs if form.begins in later)
            missing = [one for one in wanted if not self._path(*one, ends).exists()]
            for some in _in_groups(missing, self._at_once):
                members = [self._partner_begun(*one, part, ends) for one in some]
                self._train(members, self._between(part, ends))
                for (partner, seed), member in zip(some, members, strict=True):
                    if member.error:
                        raise member.error
                    save_weights(member.network, self._path(partner, seed, ends))
                    seconds = sum(one.seconds for one in member.history.rounds)
                    told = f"{partner}, seed {seed}, from {part} to {ends}: {seconds:.1f} s"
                    print(told, flush=True)

    def _between(self, part: Begin, ends: Begin) -> range:
        return range(self.settings.rounds(part).start, self.settings.rounds(ends).start)

    def _partner_begun(self, partner: str, seed: int, part: Begin, ends: Begin) -> Member:
        """A partner's training from ``part`` to the next one."""
        network, rng = self._network(partner, seed, part), _part(seed, part)
        stages = PARTNERS[partner].stages(self._task(seed, self._between(part, ends), rng))
        return Member(network.to(self._device), stages, rng)

    def _begun(self, form: Form, seed: int) -> Member:
        rng = _part(seed, form.begins)
        task = self._task(seed, self.settings.rounds(form.begins), rng)
        network = self._network(form.partner, seed, form.begins).to(self._device)
        stages: Iterator[Stage] = form.stages(network, task, PARTNERS[form.partner])
        stages = evenly(stages, task.contest)  # an epoch is m images for everyone
        return Member(network.to(self._device), stages, rng)

    def _task(self, seed: int, rounds: range, rng: Streams) -> Task:
        late = max(0, self.settings.rounds("late").start - rounds.start)
        return Task(self.data(seed)[0], len(rounds), late, rng, self.settings.augment)

    def _network(self, partner: str, seed: int, part: Begin) -> Network:
        """As the partner left it when ``part`` begins."""
        train = self.data(seed)[0]
        if self.settings.miniature:
            network = small_residual(train, seed)
        else:
            network = make_network(self.settings.model, train, seed)
        network = PARTNERS[partner].prepare(network)
        if part != "start":
            load_weights(network, self._path(partner, seed, part))
        return network

    def _path(self, partner: str, seed: int, part: Begin) -> Path:
        s = self.settings
        kind = f"{s.imbalance}-{s.model}-{partner}-e{s.epochs}-b{s.batch_size}"
        kind += f"-lr{s.learning_rate:g}-wd{s.weight_decay:g}{'-bf16' if s.bf16 else ''}"
        kind += "-miniature" if s.miniature else ""
        kind += "-test" if s.judge == "test" else ""  # it is trained on all images of a subset
        return self._folder / f"{kind.replace(':', '-')}-seed{seed}-{part}.safetensors"

    def _train(self, members: list[Member], rounds: range) -> None:
        """All at once, in turns; each part of a training has an optimiser of its own."""
        s = self.settings
        share: Callable[[int], float] = lambda t: s.rate_share(rounds.start + t)  # noqa: E731
        schedule: Callable[[Optimizer], LambdaLR] = partial(LambdaLR, lr_lambda=share)
        train_in_turns(
            members,
            batch_size=s.batch_size,
            optimizer=partial(SGD, lr=s.learning_rate, momentum=0.9, weight_decay=s.weight_decay),
            schedule=schedule,
            augment=s.augment,
            engine=Engine(bf16=s.bf16),
        )

    def _line(self, form: Form, seed: int, member: Member) -> dict[str, object]:
        train, judged = self.data(seed)
        counts = train.class_counts
        p = predict(member.network, judged.x)
        report = measure(p, judged.y, trained=counts)
        recall = torch.tensor(report.recall)
        groups = groups_of(counts.cpu())
        found = {name: round(float(recall[own].mean()), 5) for name, own in groups.items()}
        worth: dict[str, object] = {}
        if self.settings.judge == "removed":
            worth = {
                "adjusted": adjusted(p, judged.y, counts),
                "probe": probed(member.network, judged),
            }
        return {
            **vars(self.settings),
            "form": form.name,
            "seed": seed,
            "accuracy": round(float(recall.mean()), 5),
            "f1_as_trained": round(float(report.f1_as_trained.mean()), 5),
            **found,
            **worth,
            "recall": [round(value, 4) for value in recall.tolist()],
            "seconds": round(sum(one.seconds for one in member.history.rounds), 2),
            "lost": str(member.error or ""),
        }


def _judged(network: Network, judged: Samples) -> dict[str, dict[str, float]]:
    recall = measure(predict(network, judged.x), judged.y).recall
    return {"all": {"accuracy": round(float(recall.mean()), 5)}}


def adjusted(p: torch.Tensor, y: torch.Tensor, counts: torch.Tensor) -> dict[float, float]:
    """Accuracy if logits are adjusted by τ afterwards: what f is worth, wherever g has its bounds.

    Never of test images: the best of them would be chosen there.
    """
    shifted = {tau: adjusted_afterwards(p, counts, tau) for tau in AFTERWARDS}
    return {tau: round(float(measure(q, y).recall.mean()), 5) for tau, q in shifted.items()}


def probed(network: Network, judged: Samples) -> float:
    """Mean recall of a logistic regression on f(x): what f is worth, whatever g makes of it.

    It is fitted to as many images of every class, and asked for the others.
    """
    each = int(judged.class_counts.min()) // 2
    place = torch.zeros_like(judged.y)  # among those of the class
    for j in range(judged.n):
        own = judged.y == j
        place[own] = torch.arange(int(own.sum()), device=place.device)
    fitted, asked = judged[place < each], judged[place >= each]
    p = torch.from_numpy(logistic_probe(network, fitted, asked)).to(asked.y.device)
    return round(float(measure(p, asked.y).recall.mean()), 5)


def groups_of(counts: torch.Tensor) -> dict[str, torch.Tensor]:
    """Many, medium and few samples: thirds of the way from the rarest class to the largest.

    On a logarithmic scale, so an even tail is cut into even parts. Groups may be empty.
    """
    logs = counts.double().log()
    place = (logs - logs.min()) / (logs.max() - logs.min()).clamp(min=1e-9)
    which = {"many": place > 2 / 3, "medium": (place > 1 / 3) & (place <= 2 / 3)}
    which["few"] = place <= 1 / 3
    return {name: own for name, own in which.items() if bool(own.any())}


def _part(seed: int, part: Begin) -> Streams:
    """Draws of their own for every part of a training, which counts its rounds from 0."""
    return partial(streams(seed), part)


def _in_groups(jobs: list[T], size: int) -> Iterator[list[T]]:
    for start in range(0, len(jobs), size):
        yield jobs[start : start + size]


def chosen_forms(patterns: Sequence[str]) -> list[Form]:
    """By names, in which * stands for anything, with options changed: 'la+dos-half[k=10]'."""
    return list({form.name: form for one in patterns for form in _fitting(one)}.values())


def _fitting(pattern: str) -> Iterator[Form]:
    name, _, changes = pattern.rstrip("]").partition("[")
    names = fnmatch.filter(FORMS, name)
    if not names:
        raise InputError(f"forms must be among {', '.join(FORMS)}, found {name}")
    options = dict(change.split("=", 1) for change in filter(None, changes.split(",")))
    numbers = {key: json.loads(value.lower()) for key, value in options.items()}
    yield from (FORMS[one].changed(**numbers) for one in names)


def done(out: Path, settings: Settings) -> set[tuple[str, int]]:
    lines = [json.loads(text) for text in out.read_text().splitlines()] if out.exists() else []
    found = [one for one in lines if "header" not in one]
    found = [BEFORE | one for one in found]
    same = [one for one in found if vars(settings).items() <= one.items()]
    return {(one["form"], one["seed"]) for one in same}


def asked(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """What the command line says of data, training and judging, beside what the parser has."""
    parser.add_argument("data", type=Path, help="folder of the official CIFAR-10 .bin files")
    parser.add_argument("out", type=Path)
    parser.add_argument("--imbalance", default="exp:100")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=200)
    parser.add_argument("--weight-decay", type=float, default=2e-4)
    parser.add_argument("--model", default="resnet32")
    parser.add_argument("--bf16", action="store_true")
    parser.add_argument("--miniature", action="store_true", help="for a CPU")
    parser.add_argument("--judge", choices=("removed", "test"), default="removed")
    parser.add_argument("--at-once", type=int, default=5, help="trainings that take turns")
    parser.add_argument("--device")
    options = parser.parse_args()
    if options.miniature and options.judge == "test":
        parser.error("the miniature has no test images; leave out one of --miniature and --judge")
    return options


def begun(options: argparse.Namespace) -> tuple[Search, range]:
    """What trains, and its seeds; the file has a header for it."""
    settings = Settings(
        options.imbalance,
        options.epochs,
        weight_decay=options.weight_decay,
        model=options.model,
        bf16=options.bf16,
        judge=options.judge,
        miniature=options.miniature,
    )
    write_header(options.out, at_once=options.at_once, **vars(settings))
    splits = load("cifar10", data_dir=options.data, cache=options.out.parent)
    if options.miniature:
        some = hold_out(splits.train, 0.4)[1]
        splits = replace(splits, train=halved(some), test=None)
    device = pick_device(options.device)
    search = Search(splits, settings, options.out.parent, device, options.at_once)
    return search, range(options.first_seed, options.first_seed + options.seeds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--forms", nargs="+", default=["ce", "la", "ldam"])
    options = asked(parser)
    try:
        forms = chosen_forms(options.forms)
    except InputError as error:
        parser.error(str(error))
    search, seeds = begun(options)
    there = done(options.out, search.settings)
    jobs = [(f, s) for f in forms for s in seeds if (f.name, s) not in there]
    for line in search.run(jobs):
        with options.out.open("a") as file:
            file.write(json.dumps(line) + "\n")
        groups = {name: line[name] for name in ("many", "medium", "few") if name in line}
        told = (line["form"], line["seed"], line["accuracy"], groups, line["seconds"], "s")
        print(*told, flush=True)


if __name__ == "__main__":
    main()
