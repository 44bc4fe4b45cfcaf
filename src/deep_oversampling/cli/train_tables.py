"""What ``dos train`` shows: the plan before, the rounds while, the measures after training."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

from rich.box import SIMPLE
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Column, Table
from rich.text import Text

from .showing import cell, say, shown

if TYPE_CHECKING:
    from ..history import History, Round
    from ..plan import Plan
    from ..runs import Evaluation, Task

__all__ = [
    "Live",
    "number",
    "print_evaluation",
    "print_measures",
    "print_task",
    "short",
    "waited_in_vain",
]

TITLES = {"plain": "plain", "dos": "DOS"}
_LISTED = 20  # classes
_NAME = 40  # characters of a class in a line
_WIDE = 140  # columns, for a bar beside the numbers


def print_task(task: Task) -> None:
    """Class counts and the plan, and the settings that the data decided."""
    settings, train = task.settings, task.train
    shape = " × ".join(map(str, train.x.shape[1:]))
    say(f"{task.splits.name}: samples of {shape}, {train.n} classes")
    counts, held = train.class_counts.tolist(), task.validation.class_counts.tolist()
    k, r = task.plan.k.tolist(), [short(one) for one in task.plan.r.tolist()]
    shown = task.plan.rows(train.class_counts).tolist()
    order = sorted(range(train.n), key=lambda j: -counts[j])
    table = Table(box=SIMPLE, padding=(0, 1, 0, 0), show_edge=False)
    table.add_column("class", overflow="fold", max_width=_NAME)
    for heading in ("train", "valid", "k", "r", "shown"):
        table.add_column(heading, justify="right", no_wrap=True)

    def add(j: int) -> None:
        cells = (counts[j], held[j], k[j], r[j], shown[j])
        style = "bold" if bool(task.plan.minority[j]) else ""
        table.add_row(cell(train.classes[j]), *map(str, cells), style=style)

    if train.n <= _LISTED:
        for j in range(train.n):
            add(j)
    else:  # the largest and the smallest
        half = _LISTED // 2
        for j in order[:half]:
            add(j)
        table.add_row(f"… {train.n - _LISTED} more")
        for j in order[-half:]:
            add(j)
    table.add_section()
    table.add_row("all", str(len(train)), str(len(task.validation)), "", "", str(task.presented))
    _print_whole(table)
    print(f"\n{_told(task.plan, pieces=bool(settings.pieces))}")
    T = task.rounds
    parameters = sum(p.numel() for p in task.network.parameters())
    say(f"{settings.model}, {parameters:,} weights, on {task.device}")
    print(
        f"{T} plain round{'s' * (T > 1)}, then {T} of DOS; batches of {settings.batch_size}, "
        f"{settings.trained_by}"
        + (f"; stopped after {settings.patience} that are no better" if settings.patience else "")
        + ("; the baseline: plain" if settings.baseline else "")
    )
    for note in task.notes:
        say(note)


def short(r: float) -> str:
    """2, or 1.29."""
    return f"{r:.2f}".rstrip("0").rstrip(".")


def _told(plan: Plan, *, pieces: bool) -> str:
    """The plan in words."""
    if pieces:
        return (
            "classes are levelled in part: each sample is shown r times a round, every other time "
            "with a piece of one of its k neighbours"
        )
    rare, neighbours = int(plan.minority.sum()), bool(plan.k.any())
    if not rare:
        none = "no class has less than half the samples of the largest: all get "
        where = ", once the network knows the classes" if plan.known else ""
        return none + (f"k neighbours, r = 1{where}" if neighbours else "r = 1 and no neighbours")
    over = f"{rare} rare class{'es are' if rare > 1 else ' is'} over-sampled"
    told = f"{over}: each sample is shown r times a round"
    told = f"{told}, its targets mixed from k neighbours" if neighbours else told
    return f"{told} once the network knows the classes" if plan.known else told


def waited_in_vain(plan: Plan, history: History) -> list[str]:
    """That no round had neighbours, where they wait."""
    own = [one for one in history.rounds if one.task == "multi"]
    if not (plan.known and own) or any(one.embedding_loss for one in own):
        return []
    return [
        "no round had neighbours, as the network knew too little of the classes when the last one "
        "began: samples were shown r times a round, and that is all; try more --rounds, or --k "
        f"{int(plan.k.max())} for neighbours in every round"
    ]


def print_measures(measures: dict[str, dict[str, dict[str, float]]], title: str) -> None:
    """A row for each method, group by group."""
    table = Table(box=SIMPLE, padding=(0, 1, 0, 0), show_edge=False)
    table.add_column("", no_wrap=True)
    for heading in ("precision", "recall", "F1", "AUPRC"):
        table.add_column(heading, justify="right", no_wrap=True)
    methods = [name for name in TITLES if name in measures]
    methods += [name for name in measures if name not in TITLES]
    for group in next(iter(measures.values())):
        table.add_row(cell(group, "bold"))
        for method in methods:
            values = measures[method][group]
            cells = [number(values[name]) for name in ("precision", "recall", "f1", "auprc")]
            title_of = cell(f" {TITLES.get(method, method)}")
            table.add_row(title_of, *cells, end_section=method == methods[-1])
    print()
    say(title)
    _print_whole(table)


def number(value: float | None) -> str:
    """.842; what is no number is a dash."""
    if value is None or math.isnan(value):
        return "–"
    return f"{value:.3f}".removeprefix("0") if value < 1 else f"{value:.2f}"


def _print_whole(table: Table) -> None:
    """As wide as it is: in a narrow terminal its lines go on below, and no number is cut."""
    natural = Console(width=10_000).measure(table).maximum
    Console(width=max(natural, Console().width)).print(table)


class Live:
    """Rounds as they are done: a line that changes on a terminal, else a line each."""

    def __init__(self, task: Task) -> None:
        m, T = len(task.train), task.rounds
        self._rounds, self._samples, self._presented = 2 * T, m, task.presented
        self._told = ""  # of the last round
        self._rows = {"dos": T * (m + task.presented)}
        if task.settings.baseline:
            self._rows["plain"] = T * m  # it shares the plain rounds of DOS
        self._done, self._before, self._start = 0, 0, time.perf_counter()  # rows
        self._console = Console(stderr=True)
        bar = [BarColumn()] if self._console.width >= _WIDE else []
        self._progress = Progress(
            *bar,
            TextColumn("{task.description}", markup=False, table_column=Column(overflow="fold")),
            console=self._console,
            transient=True,
            disable=not self._console.is_terminal,
        )
        self._task = self._progress.add_task("starting", total=sum(self._rows.values()))

    def __enter__(self) -> Live:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def on_found(self, method: str, rounds: list[Round]) -> None:
        """A process before this one has trained them."""
        self._before += sum(one.presented for one in rounds)
        if rounds:
            self.say(f"{TITLES[method]}: {len(rounds)} rounds were done before; going on")

    def on_round(self, method: str, t: int, one: Round) -> None:
        self._done += one.presented
        self._told = f"{TITLES[method]} {t}/{self._rounds}: {_in_words(one)}"
        text = f"{self._told}; {self._left(self._done)} left"
        done = self._before + self._done
        self._progress.update(self._task, completed=done, description=text)
        if not self._console.is_terminal:
            self.say(text)

    def on_steps(self, method: str, t: int, step: int, steps: int) -> None:
        """How far round t is; only where the line can change, beside what the last one gave."""
        multi = method == "dos" and 2 * t > self._rounds
        done = self._done + (self._presented if multi else self._samples) * step / steps
        text = f"{TITLES[method]} {t}/{self._rounds}, step {step}/{steps}; {self._left(done)} left"
        text += f"\n{self._told}" if self._told else ""
        self._progress.update(self._task, completed=self._before + done, description=text)

    def _left(self, done: float) -> str:
        """From what this process has done so far, in rows."""
        spent = time.perf_counter() - self._start
        rest = max(0.0, sum(self._rows.values()) - self._before - done)
        return _duration(spent / done * rest)

    def say(self, text: str) -> None:
        """A line on its own, beside what programs read."""
        line = Text(shown(text))  # a string would be searched for markup and :car:
        self._console.print(line, highlight=False, soft_wrap=True)


def _in_words(one: Round) -> str:
    text = f"ℓ_g {one.classifier_loss:.3f}"
    if one.embedding_loss:
        text += f", λℓ_f {one.embedding_loss:.3f}"
    scores = one.validation or {}
    f1 = [f"{group} F1 {number(values['f1'])}" for group, values in scores.items()]
    return text + "".join(f", {part}" for part in f1)


def _duration(seconds: float) -> str:
    """12 s, 3 min, 1 h 20 min."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def print_evaluation(found: dict[str, Evaluation], title: str) -> None:
    """The means of groups of classes, of every method, and the classes if they are not too many."""
    print_measures({method: one.groups for method, one in found.items()}, title)
    dos, plain = found["dos"], found.get("plain")
    if len(dos.classes) > _LISTED:
        print(f"{len(dos.classes)} classes; --json has them all")
        return
    table = Table(box=SIMPLE, padding=(0, 1, 0, 0), show_edge=False)
    table.add_column("class", overflow="fold", max_width=_NAME)
    headings = ["samples", "precision", "recall", "F1", "AUPRC"] + ["plain F1"] * bool(plain)
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    report = dos.report
    columns = [report.precision, report.recall, report.f1, report.auprc]
    columns += [plain.report.f1] if plain else []
    for j, name in enumerate(dos.classes):
        cells = [number(float(column[j])) for column in columns]
        table.add_row(cell(name), str(dos.counts[j]), *cells)
    _print_whole(table)
