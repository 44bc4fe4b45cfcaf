"""The page of results: every table of the paper, ours beside the printed numbers."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from pathlib import Path

from ..rivals.summary import TEST, summarize
from ..writing import write_whole
from .cells import BEYOND, COMPARED, DOUBT, LOWER, CellMaker
from .experiments import TABLES
from .facts import classwise, datasets, runtime, summary
from .figures import FIGURES
from .headline import headline
from .markdown import plain
from .performance import balanced, baseline, over_k, reduction
from .store import Stored, figures_folder, read_stored

__all__ = ["render", "write_page"]

_QUICK = (
    "> **A quick look, not a result.** Few trials, small parts of the sets and other rounds: these "
    "numbers show that everything runs, and are **not comparable** with the printed ones."
)
_COMMAND = "dos reproduce --render"


@dataclass(frozen=True)
class _Part:
    """A table of the paper."""

    table: str  # of experiments.TABLES
    printed: str  # of the printed numbers
    make: Callable[[Stored, CellMaker], list[str]]
    measures: tuple[str, ...] = COMPARED
    about: str = ""


_PARTS = (
    _Part("classwise", "classwise", partial(classwise, method="cnn"), about="imbalanced"),
    _Part("classwise", "classwise", partial(classwise, method="cnn-cl"), about="imbalanced"),
    _Part("classwise", "summary", summary),
    _Part("datasets", "", datasets),
    _Part("baseline", "baseline", baseline, ("recall",), about="copied"),
    _Part("reduction", "reduction", reduction),
    _Part("over-k", "over-k", over_k),
    _Part("balanced", "balanced", balanced),
    _Part("runtime", "runtime", runtime, ()),
)
_ABOUT = {
    "imbalanced": "MNIST-back-rotation; imbalanced is p = .9 for four digits. The paper shows one "
    "trial, whose reduced digits have a star; ours is the mean over the trials that reduced the "
    "digit, or did not, alike.",
    "copied": "Mean class-wise recall on MNIST-back-rotation, its training images ten-fold, "
    "mirrored and rotated (R14), then reduced (R12).",
}


def write_page(out: Path, page: Path) -> None:
    """From the stored trials alone: the same trials, the same bytes."""
    drawn = [name for name in FIGURES if (figures_folder(out) / f"{name}.svg").exists()]
    text = render(read_stored(out), os.path.relpath(out, page.parent), drawn)
    write_whole({page: text.encode(errors="backslashreplace")})  # a name may be no text


def render(stored: Stored, folder: str = ".", drawn: Sequence[str] = ()) -> str:
    """The page; ``folder`` is where the trials are, seen from it, and ``drawn`` what figures."""
    sections: list[str] = []
    makers: list[tuple[str, CellMaker]] = []
    captions = [
        (table.name, i, text) for table in TABLES.values() for i, text in enumerate(table.captions)
    ]
    always = tomllib.loads(files(__package__).joinpath("remarks.toml").read_text("utf-8"))
    for part, (name, i, caption) in zip(_PARTS, captions, strict=True):
        cells = CellMaker(part.printed, () if stored.quick else part.measures)
        lines = part.make(stored, cells)
        makers.append((caption, cells))
        last = i == len(TABLES[name].captions) - 1
        sections += [f"## {caption}", ""]
        sections += [*([_ABOUT[part.about], ""] if part.about else []), *lines]
        remarks = always.get(name, {}) | stored.remarks.get(name, {}) if last else {}
        sections += _notes(cells, remarks, _trouble(stored, name) if last else [])
    top = ["# Results: the paper's tables, and ours", ""]
    top += [_QUICK, ""] if stored.quick else []
    top += [_legend(), "", "## Contents", ""]
    top += [f"- [{caption}](#{_anchor(caption)})" for _, _, caption in captions]
    top += ["- [Figures](#figures)"] if drawn else []
    sections += _figures(drawn, folder, stored.remarks.get("figures", {}))
    top += ["", *headline(stored, makers), *_made_by(stored, folder)]
    return "\n".join([*top, *sections]).rstrip() + "\n"


def _anchor(heading: str) -> str:
    """As readers of markdown name it.

    >>> _anchor("Table 1: Class-wise Comparison (CNN)")
    'table-1-class-wise-comparison-cnn'
    """
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def _legend() -> str:
    return (
        "Mean ± standard deviation over the trials, and in brackets what the paper prints. "
        f"**{LOWER}**: ours is lower than printed by more than rounding. **{DOUBT}**: the printed "
        "number is in doubt, for the reason given under the table. "
        f"**{BEYOND}**: DOS is above the plain CNN and above random over-sampling beyond noise "
        f"(p < .05 each, not corrected for their number; {TEST}); where all classes are presented "
        "alike, over-sampling is the CNN, and above that is enough. Precision and recall are shown "
        "but not compared, since the paper exchanges them in some rows."
    )


def _notes(cells: CellMaker, remarks: dict[str, str], trouble: Iterable[str]) -> list[str]:
    lines = []
    if cells.lower:
        total = len(cells.lower) + cells.reached
        doubted = (
            f", {cells.lower_than_doubted} of them in doubt" if cells.lower_than_doubted else ""
        )
        lines.append(f"- {LOWER} {len(cells.lower)} of {total} printed numbers{doubted}.")
    lines += [f"- **{where}**: {why}" for where, why in remarks.items()]
    lines += [f"- {text}" for text in trouble]
    if cells.doubts:
        lines += [""] if lines else []
        lines += ["<details><summary>? why printed numbers are in doubt</summary>", ""]
        lines += [f"- {reason}: {_listed(where)}." for reason, where in cells.doubts.items()]
        lines += ["", "</details>"]
    return [*lines, ""] if lines else []


def _listed(where: list[str]) -> str:
    """``CNN, minority: precision, recall; …``: measures of one place together."""
    places: dict[str, list[str]] = {}
    for one in where:
        place, _, measure = one.rpartition(": ")
        places.setdefault(place, []).append(measure)
    parts = (f"{place}: {', '.join(found)}" for place, found in places.items())
    return "; ".join(part.removeprefix(": ") for part in parts)


def _figures(drawn: Sequence[str], folder: str, remarks: dict[str, str]) -> list[str]:
    """None where none are drawn."""
    if not drawn:
        return []
    lines = ["## Figures", ""]
    for name in drawn:
        lines += [f"{FIGURES[name]}:", "", f"![{FIGURES[name]}]({folder}/figures/{name}.svg)", ""]
    return [*lines, *(f"- **{where}**: {why}" for where, why in remarks.items()), ""]


def _trouble(stored: Stored, name: str) -> list[str]:
    """What was not run, left out or lost."""
    lines = []
    for experiment in TABLES[name].experiments:
        found = stored.trials.get(experiment.name, [])
        trials = sorted(
            (trial for trial in found if trial.method in experiment.methods),
            key=lambda trial: (experiment.methods.index(trial.method), trial.seed),
        )
        if not trials:
            lines.append(f"`{experiment.name}`: not run yet.")
        for row in summarize(trials):
            what = f"`{experiment.name}`, {row.method}"
            lines += [f"{what}: left out of {plain(row.left_out)}"] if row.left_out else []
            lines += [f"{what}: training lost in {plain(row.lost)}"] if row.lost else []
    return lines


def _made_by(stored: Stored, folder: str) -> list[str]:
    """How many trials, on what, with what, when."""
    headers = [header for of in stored.headers.values() for header in of]
    if not headers:
        return ["No trials are stored yet.", ""]
    counts = {
        len(stored.of(one, method))
        for table in TABLES.values()
        for one in table.experiments
        for method in one.methods
    } - {0}
    places = [header["where"] for header in headers]
    keys = dict.fromkeys(key for place in places for key in place)
    found = {key: sorted({place[key] for place in places if key in place}) for key in keys}
    dates = sorted({header["date"] for header in headers})
    trials = f"{min(counts)} to {max(counts)}" if len(counts) > 1 else f"{max(counts, default=0)}"
    lines = ["## How they were made", ""]
    lines += [f"- trials of a cell: {trials}, seeds 0, 1, …; each draws its own minority classes"]
    lines += [plain(f"- {key}: {', '.join(values)}") for key, values in found.items()]
    lines += [plain(f"- run {dates[0]}" + (f" to {dates[-1]}" if len(dates) > 1 else ""))]
    lines += [
        f"- every trial is a line in `{folder}/trials`; `{_COMMAND}` makes this page of them",
        "",
    ]
    return lines
