"""Figures from stored numbers alone: the same numbers, the same bytes."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..rivals import METHODS
from ..rivals.summary import cell
from ..writing import write_whole
from .experiments import LEVELS, REDUCED_SETS, TABLES
from .performance import found_title
from .store import Stored, figures_folder

__all__ = ["FIGURES", "NoMatplotlib", "draw_figures"]

# name of the file -> what it shows
FIGURES = {
    "f1": "Minority F1 over the reduction rate p",
    "within": "In-class variance over between-class variance of the training samples, by round",
    "curves": "Precision and recall of the minority classes, averaged",
    "embeddings": "Test embeddings, before over-sampling and at the end",
}
_COLOURS = {"cnn": "#777777", "ros": "#d08020", "dos": "#2060c0"}
_INCH = 3.2  # of a panel


class NoMatplotlib(InputError):
    """Nothing can be drawn here; all else can be done."""


def draw_figures(stored: Stored, out: Path) -> None:
    """Draw those whose numbers are there."""
    matplotlib = _matplotlib()
    folder = figures_folder(out)
    made: dict[str, Callable[[Any], Any]] = {}
    if any(stored.trials.get(one.name) for one in TABLES["reduction"].experiments):
        made["f1"] = lambda make: _f1(make, stored)
    if stored.looks:
        made["within"] = lambda make: _within(make, stored)
        made["curves"] = lambda make: _curves(make, stored)
        made["embeddings"] = lambda make: _embeddings(make, stored)
    same = {"svg.hashsalt": "deep-oversampling", "svg.fonttype": "none", "font.size": 8}
    same["text.parse_math"] = False  # names are words
    with matplotlib.rc_context(same):
        for name, draw in made.items():
            figure, content = draw(_panels), io.BytesIO()
            about = {"Date": None, "Creator": None}
            figure.savefig(content, format="svg", metadata=about)
            write_whole({folder / f"{name}.svg": content.getvalue()})


def _matplotlib() -> Any:
    """Which a user need not have installed."""
    try:
        import matplotlib
    except ImportError as error:
        raise NoMatplotlib(
            f"figures need matplotlib, found that it cannot be imported ({error}); "
            "pip install 'deep-oversampling[paper]'"
        ) from None
    return matplotlib


def _panels(rows: int, columns: int) -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure: Any = Figure(figsize=(_INCH * columns, 0.85 * _INCH * rows), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False)


def _f1(panels: Callable[[int, int], Any], stored: Stored) -> Any:
    figure, axes = panels(1, len(REDUCED_SETS))
    for axis, data in zip(axes[0], REDUCED_SETS, strict=True):
        experiments = [one for one in TABLES["reduction"].experiments if one.data == data]
        for method in experiments[0].methods:
            found = [
                cell([t.mean("f1", "minority") for t in stored.of(one, method)])
                for one in experiments
            ]
            axis.errorbar(
                range(len(LEVELS)),
                [one.mean for one in found],
                [one.sd for one in found],
                label=METHODS[method].title,
                color=_COLOURS.get(method),
                linewidth=2 if method == "dos" else 1,
                capsize=2,
            )
        axis.set_xticks(range(len(LEVELS)), LEVELS)
        axis.set(title=found_title(stored, experiments[0]), xlabel="p", ylabel="minority F1")
    axes[0][0].legend(fontsize=6)
    return figure


def _within(panels: Callable[[int, int], Any], stored: Stored) -> Any:
    figure, axes = panels(1, len(stored.looks))
    for axis, looked in zip(axes[0], stored.looks.values(), strict=True):
        for method, seen in looked["methods"].items():
            rounds = range(1, len(seen["within"]) + 1)
            axis.plot(rounds, seen["within"], label=_title(method), color=_COLOURS[method])
        axis.axvline(looked["setting"]["rounds"] + 0.5, color="#cccccc", linewidth=1, zorder=0)
        axis.set(title=_of(looked), xlabel="round", ylabel="within / between")
    axes[0][0].legend()
    return figure


def _curves(panels: Callable[[int, int], Any], stored: Stored) -> Any:
    figure, axes = panels(1, len(stored.looks))
    for axis, looked in zip(axes[0], stored.looks.values(), strict=True):
        for method, seen in looked["methods"].items():
            recall, precision = zip(*seen["curve"], strict=True)
            axis.plot(recall, precision, label=_title(method), color=_COLOURS[method])
        axis.set(title=_of(looked), xlabel="recall", ylabel="precision", ylim=(0, 1.02))
    axes[0][0].legend()
    return figure


def _embeddings(panels: Callable[[int, int], Any], stored: Stored) -> Any:
    """A row for every set: before DOS, after it, and the others' ends; circles are minority."""
    shown = [("before", "dos"), ("after", "dos"), ("after", "cnn"), ("after", "ros")]
    figure, axes = panels(len(stored.looks), len(shown))
    for row, looked in zip(axes, stored.looks.values(), strict=True):
        rare = [label in looked["minority"] for label in looked["labels"]]
        for axis, (when, method) in zip(row, shown, strict=True):
            points = list(zip(looked["methods"][method][when], looked["labels"], rare, strict=True))
            for marker, size, wanted in ((".", 4, False), ("o", 9, True)):
                some = [(x, y, label) for (x, y), label, own in points if own is wanted]
                if some:
                    x, y, labels = zip(*some, strict=True)
                    axis.scatter(
                        x, y, size, labels, marker=marker, cmap="tab10", vmin=0, vmax=9, lw=0
                    )
            words = "before over-sampling" if when == "before" else f"{_title(method)}, at the end"
            axis.set(title=f"{_of(looked)}\n{words}", xticks=[], yticks=[])
    return figure


def _title(method: str) -> str:
    return METHODS[method].title


def _of(looked: dict[str, Any]) -> str:
    return f"{looked['setting']['data']}, {looked['setting']['imbalance']}"
