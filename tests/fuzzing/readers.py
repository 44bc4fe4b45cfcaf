"""Every reader of the package, the files it is given whole, and how each of them is damaged."""

import hashlib
import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from typer.testing import CliRunner

from deep_oversampling import load_weights, mlp
from deep_oversampling.checkpoint import start_from
from deep_oversampling.cli import app
from deep_oversampling.data import load, load_index
from deep_oversampling.data.official.archives import unpack
from deep_oversampling.data.official.back_rotation import load_back_rotation
from deep_oversampling.data.official.binary import load_cifar10, load_cifar100, load_stl10
from deep_oversampling.data.official.idx import load_mnist
from deep_oversampling.data.official.svhn import load_svhn
from deep_oversampling.data.pictures.picture import Unreadable, read_header, read_picture
from deep_oversampling.data.splits import Splits
from deep_oversampling.metrics import MEASURES
from deep_oversampling.paper.page import render as render_results
from deep_oversampling.paper.store import read_stored
from deep_oversampling.report import load_story
from deep_oversampling.report.page import render
from deep_oversampling.rivals.trials import GROUPS, read_headers, read_trials
from deep_oversampling.runs import Run, Settings, evaluate, read_settings

from . import whole
from .mutations import BYTES, INSIDE, JSON, LINES, TENSORS, TEXT, Mutation, truncate

Files = dict[str, bytes]  # path below the folder -> content
_NO_DOCUMENT = (ValueError, AttributeError, RecursionError, SafetensorError, KeyError, TypeError)


@dataclass(frozen=True)
class Reader:
    """Files that can be read, and what reads them."""

    name: str
    files: Callable[[], Files]
    read: Callable[[Path], object]
    mutations: dict[str, Sequence[Mutation]]  # end of a path -> what may happen to such a file
    mend: Callable[[Files], Files] = field(default=lambda files: files)  # checksums made true again
    alone: bool = False  # only the damaged file is written
    errors: tuple[type[Exception], ...] = ()  # that are documented, beside the package's own
    weight: float = 1.0  # how many inputs of all it gets

    def write(self, folder: Path, files: Files, rng: random.Random) -> None:
        """One of the files that may be damaged is, most of the time once."""
        victims = [path for path in files if self._ways(path)]
        chosen = rng.choice(victims)
        content = files[chosen]
        for _ in range(rng.choice((1, 1, 1, 2))):
            content = self._damaged(content, rng.choice(self._ways(chosen)), rng)
        self.put(folder, {**({} if self.alone else files), chosen: content})

    def put(self, folder: Path, files: Files) -> Path:
        for path, data in self.mend(files).items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(data)
        return folder

    def _ways(self, path: str) -> Sequence[Mutation]:
        return next((ways for end, ways in self.mutations.items() if path.endswith(end)), ())

    @staticmethod
    def _damaged(content: bytes, way: Mutation, rng: random.Random) -> bytes:
        try:
            return way(content, rng)
        except _NO_DOCUMENT:  # by the first damage
            return truncate(content, rng)


def _look_at(splits: Splits) -> None:
    """What was read must be of use: every sample can be gathered, every class counted."""
    for samples in (splits.train, splits.validation, splits.test):
        if samples is not None:
            assert len(samples.x[:]) == len(samples.y) == int(samples.class_counts.sum())


def _read_picture(folder: Path) -> None:
    for file in folder.rglob("*.bin"):
        header = read_header(file.read_bytes())
        assert header.height > 0
        assert read_picture(file.read_bytes(), 6, 5, grey=False).shape == (3, 6, 5)


def _read_weights(folder: Path) -> None:
    start_from(mlp(4, 3, (8,)), folder / "a.safetensors")
    load_weights(mlp(4, 3, (8,)), folder / "a.safetensors")


def _read_run(folder: Path) -> None:
    run = Run.open(folder)
    assert isinstance(run.settings, Settings)
    network = run.network(device="cpu")
    x = torch.zeros(2, *run.record.input_shape).to(run.dtype)
    assert network(x).shape == (2, len(run.record.classes))
    evaluate(run, whole.samples(), network)
    for options in ([], ["--json"]):
        told = CliRunner().invoke(app, ["info", str(folder), *options])
        if told.exception and not isinstance(told.exception, SystemExit):
            raise told.exception
        assert "\x1b" not in told.output


def _read_trials(folder: Path) -> None:
    path = folder / "trials.jsonl"
    read_headers(path)
    for trial in read_trials(path):
        assert all(isinstance(trial.mean(m, g), float) for m in MEASURES for g in GROUPS)
        assert isinstance(trial.setting.learning_rate, float | int)


def _summed(files: Files) -> Files:
    """A checkpoint ends with a checksum of the rest."""
    end = hashlib.blake2b(digest_size=32)
    return {path: data + _digest(end.copy(), data) for path, data in files.items()}


def _digest(kind: Any, data: bytes) -> bytes:
    kind.update(data)
    return bytes(kind.digest())


def _matched(files: Files) -> Files:
    """The words of a story name the checksum of its numbers, where they are still words."""
    try:
        words = json.loads(files["story.json"])
        words["sha256"] = hashlib.sha256(files["story.safetensors"]).hexdigest()
    except (ValueError, TypeError, RecursionError):
        return files
    text = json.dumps(words).encode("utf-8", "replace")
    return {**files, "story.json": text}


def _tell_story(folder: Path) -> None:
    page = render(load_story(folder))
    assert page.count("<script") == 2  # its own, whatever the names are


def _unpack(folder: Path) -> None:
    for archive in sorted(folder.rglob("*.tar.gz")):
        unpack(archive, whole.members(), folder / "data", lambda *step: None)


READERS = (
    Reader("idx", whole.mnist, lambda f: _look_at(load_mnist(f, full=True)), {"": BYTES}, weight=4),
    Reader("cifar10", whole.cifar10, lambda f: _look_at(load_cifar10(f)), {"": BYTES}),
    Reader("cifar100", whole.cifar100, lambda f: _look_at(load_cifar100(f)), {"": BYTES}),
    Reader("stl10", whole.stl10, lambda f: _look_at(load_stl10(f)), {"": BYTES}),
    Reader(
        "svhn", whole.svhn, lambda f: _look_at(load_svhn(f, f / "cache")), {"": BYTES}, weight=3
    ),
    Reader(
        "amat",
        whole.amat,
        lambda f: _look_at(load_back_rotation(f, f / "cache")),
        {".amat": TEXT, ".zip": BYTES},
    ),
    Reader(
        "amat, zipped",
        whole.zipped_amat,
        lambda f: _look_at(load_back_rotation(f, f / "cache")),
        {".zip": BYTES},
    ),
    Reader("npz", whole.npz, lambda f: _look_at(load(f / "set.npz")), {"": BYTES}, weight=3),
    Reader("npy", whole.npy, lambda f: _look_at(load(f)), {"": BYTES}, weight=2),
    Reader(
        "pictures",
        whole.pictures,
        _read_picture,
        {"": BYTES},
        alone=True,
        errors=(Unreadable,),
        weight=5,
    ),
    Reader(
        "folder of pictures",
        whole.folder,
        lambda f: _look_at(load(f / "set", cache=f / "cache")),
        {"": BYTES},
    ),
    Reader("decoded pictures", whole.decoded, whole.open_decoded, {".json": JSON, "/x": BYTES}),
    Reader(
        "decoded pictures, sealed",
        whole.decoded,
        whole.open_crafted,
        {"about.json": JSON, "/x": BYTES},
    ),
    Reader("dataset, sealed", whole.dataset, whole.open_dataset, {"about.json": JSON, "/x": BYTES}),
    Reader(
        "manifest, csv",
        lambda: whole.manifest("csv"),
        lambda f: _look_at(load(f / "all.csv", cache=f / "cache")),
        {".csv": TEXT},
    ),
    Reader(
        "manifest, parquet",
        lambda: whole.manifest("parquet"),
        lambda f: _look_at(load(f / "all.parquet", cache=f / "cache")),
        {".parquet": BYTES},
    ),
    Reader("archive", whole.archive, _unpack, {"": BYTES}, alone=True, weight=2),
    Reader(
        "config",
        whole.config,
        lambda f: Settings(**{"data": "", **read_settings(f / "c.toml")}),
        {"": TEXT},
    ),
    Reader(
        "index", whole.index, lambda f: load_index(f / "index.json", whole.samples()), {"": JSON}
    ),
    Reader("weights", whole.weights, _read_weights, {"": TENSORS}, weight=2),
    Reader(
        "run",
        whole.run,
        _read_run,
        {".json": JSON, ".toml": TEXT, ".safetensors": TENSORS},
        weight=3,
    ),
    Reader("checkpoint", whole.checkpoint, whole.go_on, {"": TENSORS}, mend=_summed, weight=2),
    Reader("checkpoint, alone", whole.last_checkpoint, whole.go_on, {"": INSIDE}, mend=_summed),
    Reader(
        "checkpoint, halfway",
        whole.early_checkpoint,
        whole.go_on_early,
        {"": INSIDE},
        mend=_summed,
    ),
    Reader(
        "unfinished run",
        whole.unfinished,
        whole.go_on_run,
        {"task": JSON, ".checkpoint": INSIDE, "": TENSORS},
        mend=_summed,
    ),
    Reader("trials", whole.trials, _read_trials, {"": LINES}, weight=3),
    Reader(
        "results",
        whole.results,
        lambda f: render_results(read_stored(f)),
        {".json": JSON, ".jsonl": LINES},
    ),
    Reader(
        "story",
        whole.story,
        _tell_story,
        {".json": JSON, ".safetensors": TENSORS},
        mend=_matched,
        weight=1,
    ),
)
