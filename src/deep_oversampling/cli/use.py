"""``dos evaluate``, ``predict``, ``info``, ``export``, ``report``: what to do with a run."""

from __future__ import annotations

import csv
import json
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InputError
from .data import Cache, DataDir
from .showing import no_formula, say, shown

if TYPE_CHECKING:
    from ..runs import Evaluation, Run

__all__ = ["evaluate", "export", "info", "predict", "report"]

RunFolder = Annotated[Path, typer.Argument(help="The folder of a run.", show_default=False)]
Device = Annotated[str | None, typer.Option(show_default="a GPU if there is one")]
OwnModel = Annotated[
    str | None,
    typer.Option(
        "--model", help="FILE.py:FACTORY again, where the run was trained with a file of your own."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]

_LISTED = 20  # classes
_SUFFIX = {"onnx": "onnx", "torch-export": "pt2", "safetensors": "safetensors"}


def evaluate(
    run: RunFolder,
    data: Annotated[str, typer.Argument(help="Anything dos train takes.", show_default=False)],
    split: Annotated[
        str | None,
        typer.Option(help="test, validation or train.", show_default="test, if there is one"),
    ] = None,
    as_json: AsJson = False,
    model: OwnModel = None,
    device: Device = None,
    data_dir: DataDir = None,
    cache: Cache = None,
) -> None:
    """Precision, recall, F1 and AUPRC of a trained model on data; classes are matched by name.

    Where the run has a baseline, plain training is measured beside it.

    dos evaluate runs/pictures-1 pictures/ --split test
    """
    from ..runs import Run
    from ..runs import evaluate as evaluate_samples
    from ..runs.evaluating import choose_split
    from .loading import load_shown
    from .train_tables import print_evaluation

    if split not in (None, "test", "validation", "train"):
        raise typer.BadParameter(f"--split must be test, validation or train, found {split!r}")
    opened = Run.open(run)
    network = opened.network(model=model, device=device)
    shape = opened.record.input_shape
    pictures = len(shape) == 3
    splits = load_shown(
        data,
        data_dir=data_dir,
        cache=cache,
        size=(shape[1], shape[2]) if pictures else None,
        grey=shape[0] == 1 if pictures else None,
    )
    samples, which = choose_split(opened, splits, split)
    found = {"dos": evaluate_samples(opened, samples, network)}
    if opened.has_baseline:
        plain = opened.network(model=model, baseline=True, device=device)
        found["plain"] = evaluate_samples(opened, samples, plain)
    if not as_json:
        print_evaluation(found, f"{splits.name}, {which}: {len(samples)} samples")
        return
    told = {"data": splits.name, "split": which, "samples": len(samples)} | _measured(found["dos"])
    if "plain" in found:
        told["baseline"] = _measured(found["plain"])
    _print_json(told)


def _measured(found: Evaluation) -> dict[str, Any]:
    names = ("precision", "recall", "f1", "auprc")
    per_class = {
        name: {"samples": found.counts[j]} | {m: float(getattr(found.report, m)[j]) for m in names}
        for j, name in enumerate(found.classes)
    }
    return {"groups": found.groups, "classes": per_class}


def predict(
    run: RunFolder,
    files: Annotated[
        list[Path], typer.Argument(help="Pictures, and folders of them.", show_default=False)
    ],
    as_csv: Annotated[bool, typer.Option("--csv", help="Print a table for programs.")] = False,
    as_json: AsJson = False,
    embeddings: Annotated[
        Path | None, typer.Option(help="Write f(x) of every picture to this .npy file.")
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="So many classes, the likeliest first.")] = 1,
    raw: Annotated[
        bool, typer.Option("--raw", help="Probabilities as the network says, not calibrated.")
    ] = False,
    model: OwnModel = None,
    device: Device = None,
) -> None:
    """The class of pictures, with its probability; exit code 1 if one could not be read.

    dos predict runs/pictures-1 new/ --top 3

    dos predict runs/pictures-1 *.jpg --csv > classes.csv

    In a CSV, a class whose name a spreadsheet would take for a formula has a ' before it.
    """
    from ..runs import Run, predict_files

    if as_csv and as_json:
        raise typer.BadParameter("choose --csv or --json, found both")
    if embeddings is not None and embeddings.suffix != ".npy":
        raise typer.BadParameter(
            f"--embeddings must name the .npy file to write, found {str(embeddings)!r}"
        )
    opened = Run.open(run)
    network = opened.network(model=model, device=device)
    found = predict_files(
        opened, files, network=network, raw=raw, embeddings=embeddings is not None
    )
    for one in found.skipped:
        say(f"dos: skipped {one.file}: {one.reason}", file=sys.stderr)
    if not found.files and not found.skipped:
        print("dos: there must be pictures in the folders, found none", file=sys.stderr)
        raise typer.Exit(1)
    classes = opened.record.classes
    order = (-found.probabilities).argsort(axis=1, kind="stable")[:, :top]
    rows = [
        (file, [(classes[j], float(p[j])) for j in likely])
        for file, p, likely in zip(found.files, found.probabilities, order, strict=True)
    ]
    if as_json:
        _print_json(
            {
                "predictions": [
                    {"file": f, "classes": [{"class": c, "probability": p} for c, p in likely]}
                    for f, likely in rows
                ],
                "skipped": [{"file": one.file, "reason": one.reason} for one in found.skipped],
            }
        )
    elif as_csv:
        _print_csv(rows, min(top, len(classes)))
    else:
        for file, likely in rows:
            cells = [file, *(f"{name} {p:.3f}" for name, p in likely)]
            print("\t".join(map(shown, cells)))
    if embeddings is not None and found.embeddings is not None:
        _save_array(embeddings, found.embeddings)
    raise typer.Exit(1 if found.skipped else 0)


def info(run: RunFolder, as_json: AsJson = False) -> None:
    """What a run was trained on, how, and how well it did on its validation samples."""
    from dataclasses import asdict

    from ..runs import Run
    from .train_tables import print_measures

    opened = Run.open(run)
    record = opened.record
    if as_json:
        _print_json(asdict(record))
        return
    shape = " × ".join(map(str, record.input_shape))
    counts = record.counts.get("train", [])
    names = record.classes[:_LISTED] + (["…"] if len(record.classes) > _LISTED else [])
    lines = {
        "run": str(run),
        "status": record.status,
        "data": f"{record.data}, samples of {shape}, {record.input_dtype}",
        "classes": f"{len(record.classes)}: {', '.join(names)}",
        "rare": ", ".join(record.minority[:_LISTED]) or "none",
        "samples": f"{sum(counts)} to train on, {min(counts, default=0)} to "
        f"{max(counts, default=0)} of a class",
        "model": record.model,
        "plan": _planned(opened),
        "temperature": f"{record.temperature:.3g}",
        "trained": f"{record.seconds:.0f} s on {record.versions.get('device', '?')}, "
        f"deep-oversampling {record.versions.get('deep-oversampling', '?')}, "
        f"torch {record.versions.get('torch', '?')}",
    }
    for name, text in lines.items():
        say(f"{name + ':':<13}{text}")
    if record.measures:
        print_measures(record.measures, "validation samples")


def _planned(opened: Run) -> str:
    """Neighbours and rows a round; and what only its config says, where that can be read."""
    from .train_tables import short

    k, r = max(opened.record.k), opened.record.r
    told = [f"k = {k}", f"r = {short(min(r))}" + f" to {short(max(r))}" * (max(r) > min(r))]
    with suppress(InputError):
        settings = opened.settings
        told += ["neighbours once classes are known"] * bool(k and settings.cautious)
        told += ["pieces of neighbours"] * bool(settings.pieces)
        told += [f"a margin of τ = {settings.margin:g}"] * bool(settings.margin)
    return ", ".join(told)


def export(
    run: RunFolder,
    kind: Annotated[
        str, typer.Option("--format", help="onnx, torch-export or safetensors.")
    ] = "onnx",
    out: Annotated[
        Path | None, typer.Option(help="The file to write.", show_default="RUN/exported.…")
    ] = None,
    model: OwnModel = None,
) -> None:
    """A trained model for other programs: samples as stored in, probabilities out.

    dos export runs/pictures-1 --format onnx --out pictures.onnx
    """
    import torch

    from .. import export as exporting
    from ..runs import Run

    if kind not in _SUFFIX:
        raise typer.BadParameter(f"--format must be one of {', '.join(_SUFFIX)}, found {kind!r}")
    opened = Run.open(run)
    record = opened.record
    network = opened.network(model=model, device="cpu")
    path = out or run / f"exported.{_SUFFIX[kind]}"
    about: dict[str, Any] = {"temperature": record.temperature, "classes": record.classes}
    example = torch.zeros(2, *record.input_shape).to(opened.dtype)
    if kind == "onnx":
        exporting.to_onnx(network, path, example, **about)
    elif kind == "torch-export":
        exporting.to_torch_export(network, path, example, **about)
    else:
        exporting.to_safetensors(network, path, **about)
    say(f"{kind}: {path}")


def report(
    run: RunFolder,
    out: Annotated[
        Path | None, typer.Option(help="The page to write.", show_default="RUN/report.html")
    ] = None,
) -> None:
    """Write the page of a run anew: one HTML file that needs nothing else."""
    from ..report import load_story, write_report
    from ..runs import Run
    from ..runs.places import REPORT

    opened = Run.open(run)
    path = out or opened.folder / REPORT
    write_report(load_story(opened.folder), path)
    say(f"report: {path}")


def _print_json(content: Any) -> None:
    """NaN is no JSON: null."""
    plain = json.loads(json.dumps(content), parse_constant=lambda _: None)
    print(json.dumps(plain, indent=2))


def _print_csv(rows: list[tuple[str, list[tuple[str, float]]]], top: int) -> None:
    """For programs as it is; on a terminal, as all other names there."""
    as_told = shown if sys.stdout.isatty() else str
    writer = csv.writer(sys.stdout, lineterminator="\n")
    numbers = [""] if top == 1 else [f"_{i}" for i in range(1, top + 1)]
    writer.writerow(["file", *(f"{what}{i}" for i in numbers for what in ("class", "probability"))])
    for file, likely in rows:
        told = [(as_told(no_formula(name)), f"{p:.6f}") for name, p in likely]
        path = f"./{file}" if no_formula(file) != file else file  # the same one
        writer.writerow([as_told(path), *(one for pair in told for one in pair)])


def _save_array(path: Path, array: Any) -> None:
    import io

    import numpy as np

    from ..writing import write_whole

    content = io.BytesIO()
    np.save(content, array)
    write_whole({path: content.getvalue()})
