"""Every method on the same subset, network, rounds and test set."""

from __future__ import annotations

import hashlib
import math
import platform
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch.optim import SGD

from .. import __version__
from ..branching import Trunk
from ..data import Splits, fingerprint, hold_out, imbalanced, parse_protocol, set_aside
from ..data.imbalance import DropFromClasses, ImbalanceProtocol
from ..engine import Engine
from ..errors import DOSError, InputError
from ..history import Round
from ..metrics import AS_TRAINED, MEASURES, Report
from ..network import pick_device
from ..plan import Plan
from ..samples import Samples
from ..seeding import streams
from ..stages import Member
from ..together import how_many, train_together
from .method import Contest, Method, Trained, evenly
from .networks import MODELS, make_network
from .recipes import AUGMENTATIONS, SCHEDULES, schedule_of
from .trials import Setting, Trial

__all__ = [
    "JUDGES",
    "PLANS",
    "Entry",
    "begun",
    "by_training",
    "check_setting",
    "contents",
    "entries_of",
    "options_of",
    "run_trials",
    "versions",
    "where",
]

T = TypeVar("T")
Trunks = defaultdict[tuple[str, float, int], Trunk]  # by how methods begin, their rate and seed

PLANS = ("by counts", "uniform")
JUDGES = ("test", "removed")


def contents(splits: Splits) -> str:
    """A fingerprint of labels, shapes and a few samples: it takes no time and tells sets apart."""
    digest = hashlib.blake2b(digest_size=8)
    for part in filter(None, (splits.train, splits.test)):
        some = part.subset(torch.arange(0, len(part), max(1, len(part) // 50)))
        digest.update(fingerprint(some).encode())
        digest.update(fingerprint(part.with_x(part.y.unsqueeze(1))).encode())
    return digest.hexdigest()


@dataclass(frozen=True, eq=False)
class Entry:
    """What one seed gives to every method."""

    seed: int
    train: Samples
    test: Samples
    plan: Plan
    tau: float  # of logits that are adjusted afterwards


def run_trials(
    splits: Splits,
    setting: Setting,
    methods: Sequence[Method],
    seeds: Sequence[int],
    *,
    device: torch.device | str | None = None,
) -> Iterator[Trial]:
    """Train and measure one method after the other; those that share a training, once.

    All seeds are trained at once, where there is a GPU. A method that cannot be run here (SMOTE
    without imbalanced-learn, or memory that does not suffice) gives trials that say why, and the
    rest goes on.
    """
    place = pick_device(device)
    check_setting(setting, splits.train)
    Engine(bf16=setting.bf16).check(place)
    entries = entries_of(splits, setting, seeds, place)
    trunks: Trunks = defaultdict(partial(Trunk, setting.rounds))
    for group in by_training(methods):
        trained, reason = _tried(partial(_train, group[0], entries, setting, trunks), place)
        members: Sequence[Member | None] = trained or [None] * len(entries)
        for method in group:
            reports: list[tuple[Report | None, str]] = [(None, reason)] * len(entries)
            if trained:
                reports = _read(method, trained, entries, place)
            for entry, member, (report, why) in zip(entries, members, reports, strict=True):
                rounds: list[Round] = member.history.rounds if member and report else []
                yield Trial(
                    setting=setting.of(method.name),
                    method=method.name,
                    seed=entry.seed,
                    minority=tuple(entry.plan.minority.nonzero().flatten().tolist()),
                    samples=tuple(entry.train.class_counts.tolist()),
                    measures=_measures(report) if report else {},
                    presented=sum(one.presented for one in rounds),
                    seconds=round(sum(one.seconds for one in rounds), 3),
                    where=where(place),
                    left_out="" if report else why,
                    lost=str(member.error or "") if member and report else "",
                )


def entries_of(
    splits: Splits, setting: Setting, seeds: Sequence[int], place: torch.device
) -> list[Entry]:
    """The subset of each seed and its plan, on the device."""
    protocol = parse_protocol(setting.imbalance)
    held_out = None if splits.test is None else _moved(splits.test, place)
    entries = []
    for seed in seeds:
        whole, test = splits.train, held_out
        if test is None:
            whole, own = hold_out(whole, setting.test_share, seed=seed)
            test = _moved(own, place)
        subset = imbalanced(whole, protocol, seed=seed)
        kept = subset.samples
        if setting.judge == "removed":  # the test set stays unseen
            kept, own = set_aside(subset)
            test = _moved(own, place)
        train = _moved(kept, place)
        plan = _plan(train, protocol, subset.reduced, setting)
        entries.append(Entry(seed, train, test, plan, setting.tau))
    return entries


def _read(
    method: Method, members: Sequence[Member], entries: Sequence[Entry], device: torch.device
) -> list[tuple[Report | None, str]]:
    """All at once; where one cannot be read, every one by itself, so that the others are."""
    trained = [
        Trained(member.network, entry.train, entry.test, entry.tau)
        for member, entry in zip(members, entries, strict=True)
    ]
    reports, reason = _tried(partial(method.readout, trained), device)
    if reports is not None:
        return [(report, "") for report in reports]
    if len(trained) == 1:
        return [(None, reason)]
    found = (_read(method, [m], [e], device) for m, e in zip(members, entries, strict=True))
    return [one for (one,) in found]


def _tried(action: Callable[[], T], device: torch.device) -> tuple[T | None, str]:
    """What comes of it, or nothing and the reason; the error itself would hold on to memory."""
    try:
        return action(), ""
    except DOSError as error:
        return None, str(error)
    except torch.OutOfMemoryError:
        return None, (
            f"out of memory on {device} ({_hardware(device)}); lower --batch-size or choose "
            "--device cpu"
        )
    except MemoryError:  # NumPy's: SMOTE and the classical classifiers compute on the CPU
        return None, "out of main memory; make pictures smaller (--size) or leave the method out"


def _moved(samples: Samples, device: torch.device) -> Samples:
    """At the door, as no method can be run without."""
    try:
        return samples.to(device)
    except torch.OutOfMemoryError:
        raise InputError(
            f"training and test samples must fit into the memory of {device} "
            f"({_hardware(device)}), found that they do not; make pictures smaller (--size) or "
            "choose --device cpu"
        ) from None


def check_setting(setting: Setting, samples: Samples) -> None:
    """At the door: no method can be run, so none is left out instead."""
    x, model = samples.x, setting.model
    layers = model not in MODELS
    if layers and not re.match(r"C\d", model):
        raise InputError(
            f"the model must be one of {', '.join(MODELS)} or layers such as C6-C16-F400-F120, "
            f"found {model!r}"
        )
    if (layers or model == "resnet32") and x.ndim != 4:
        raise InputError(
            f"{model} needs images, shape (m, c, h, w), found {tuple(x.shape)}; choose auto"
        )
    if layers:  # they may be misspelt, or too many for such small images
        make_network(model, samples.subset(torch.arange(1)), seed=0)
    known = {"plan": PLANS, "schedule": SCHEDULES, "augment": AUGMENTATIONS, "judge": JUDGES}
    for what, allowed in known.items():
        if getattr(setting, what) not in allowed:
            raise InputError(
                f"the {what} must be one of {', '.join(allowed)}, found {getattr(setting, what)!r}"
            )
    if setting.augment != "none" and x.ndim != 4:
        raise InputError(
            f"{setting.augment} needs images, shape (m, c, h, w), found {tuple(x.shape)}; choose "
            "no augmentation"
        )
    if not 0 <= setting.tau < math.inf:
        raise InputError(f"tau must be 0 or more and finite, found {setting.tau}")
    if setting.head_rounds and setting.schedule != "steps":
        raise InputError(
            "rounds of g after all others need a schedule that begins anew, steps, found "
            f"{setting.schedule}; leave one of them out"
        )
    if not x.is_floating_point() and x.dtype != torch.uint8:
        raise InputError(f"samples must be floats or uint8, found {x.dtype}; store them as float32")


def _plan(
    train: Samples, protocol: ImbalanceProtocol, reduced: tuple[int, ...], setting: Setting
) -> Plan:
    """The classes that the protocol reduced are the minority, else the counts decide."""
    counts, k = train.class_counts.cpu(), setting.k
    if setting.plan == "uniform":
        plan = Plan.uniform(train.n, k)
    elif isinstance(protocol, DropFromClasses) and reduced:
        plan = Plan.for_minority(counts, reduced, k)
    else:
        plan = Plan.automatic(counts, k, names=train.classes)
    return plan.fitted_to(counts, train.classes)


def by_training(methods: Sequence[Method]) -> list[list[Method]]:
    """Those that share a training stand together."""
    groups: dict[str, list[Method]] = {}
    for method in methods:
        groups.setdefault(method.training.name, []).append(method)
    return list(groups.values())


def _train(
    method: Method, entries: Sequence[Entry], setting: Setting, trunks: Trunks
) -> list[Member]:
    """From the same initial weights; what methods begin with alike is trained once.

    A training that is lost counts with the weights it had before: to leave it out would flatter.
    """
    begins, rate = method.training.begins_as, setting.of(method.name).learning_rate
    shared = [trunks[begins, rate, entry.seed] for entry in entries] if begins else []
    done = bool(shared) and all(trunk.done for trunk in shared)

    def begin(e: int) -> Member:
        member = begun(method, entries[e], setting)
        member.trunk = shared[e] if shared else None
        return member.grow() if done else member

    return train_together(
        [partial(begin, e) for e in range(len(entries))],
        at_once=how_many(len(entries), entries[0].train.y.device),
        **options_of(method, setting),
    )


def options_of(method: Method, setting: Setting) -> dict[str, Any]:
    """How `train_members` is to train."""
    rate, decay = setting.of(method.name).learning_rate, setting.weight_decay
    return {
        "batch_size": setting.batch_size,
        "optimizer": partial(SGD, lr=rate, momentum=0.9, weight_decay=decay),
        "schedule": schedule_of(setting),
        "augment": AUGMENTATIONS[setting.augment],
        "engine": Engine(bf16=setting.bf16),
    }


def begun(method: Method, entry: Entry, setting: Setting) -> Member:
    """A training as it is before its first round."""
    network = make_network(setting.model, entry.train, entry.seed)
    network = method.training.prepare(network) if method.training.prepare else network
    network.to(entry.train.y.device)
    rng = streams(entry.seed)
    contest = Contest(
        entry.train,
        entry.plan,
        setting.rounds,
        setting.rounds,
        rng,
        augment=AUGMENTATIONS[setting.augment],
        late_rounds=setting.late_rounds,
        head_rounds=setting.head_rounds,
        k=setting.k,
        tau=setting.tau,
    )
    stages = method.training.stages(network, contest)
    return Member(network, evenly(stages, contest) if setting.even else stages, rng)


def _measures(report: Report) -> dict[str, tuple[float | None, ...]]:
    columns = {name: getattr(report, name) for name in (*MEASURES, AS_TRAINED)}
    return {name: _numbers(column) for name, column in columns.items() if column is not None}


def _numbers(column: NDArray[np.float64]) -> tuple[float | None, ...]:
    """For JSON, which knows no NaN."""
    return tuple(None if math.isnan(value) else round(float(value), 6) for value in column)


def where(device: torch.device) -> dict[str, str]:
    """Versions and hardware."""
    return versions() | {"hardware": _hardware(device)}


def versions() -> dict[str, str]:
    """What must be the same wherever trials of one comparison are run."""
    return {
        "deep-oversampling": __version__,
        "torch": str(torch.__version__),
        "python": platform.python_version(),
    }


def _hardware(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine()
