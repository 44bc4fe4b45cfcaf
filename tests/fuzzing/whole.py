"""Small files that are as they should be: of every kind that is read. Made once, kept in memory."""

import gzip
import io
import json
import tarfile
import tempfile
import zipfile
from contextlib import suppress
from dataclasses import asdict
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from scipy.io import savemat
from torch import nn
from torch.optim import Adam

from deep_oversampling import (
    Checkpoints,
    EarlyStopping,
    Network,
    Samples,
    Stopped,
    fit,
    mlp,
    save_weights,
)
from deep_oversampling.data import Splits, from_dataset, imbalanced, load, save_index
from deep_oversampling.data.official.catalogue import File
from deep_oversampling.data.seal import seal
from deep_oversampling.paper.experiments import TABLES
from deep_oversampling.paper.settings import SETS, rates_by_kind
from deep_oversampling.report import save_story
from deep_oversampling.rivals.trials import append_header, append_trial
from deep_oversampling.runs import Settings, prepare, train
from deep_oversampling.runs.folder import save_run
from deep_oversampling.runs.places import write_config
from deep_oversampling.runs.record import make_record
from deep_oversampling.runs.telling import tell
from deep_oversampling.runs.unfinished import begin, candidates_in
from deep_oversampling.seeding import isolated
from paper_sets import made_up_look
from some_trials import SETTING, trial
from stories import story as a_story
from toy import blobs

Files = dict[str, bytes]
_RNG = np.random.default_rng(0)
_DIGITS = np.arange(12) % 10


def _bytes(*shape: int) -> np.ndarray:
    return _RNG.integers(0, 256, shape, np.uint8)


def _in(folder: Path) -> Files:
    """All files that a writer of the package left there."""
    found = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


def samples() -> Samples:
    return blobs((20, 12, 6))


@cache
def mnist() -> Files:
    def idx(array: np.ndarray) -> bytes:
        head = bytes([0, 0, 8, array.ndim]) + b"".join(s.to_bytes(4) for s in array.shape)
        return head + array.astype(np.uint8).tobytes()

    images, labels = idx(_bytes(12, 28, 28)), idx(_DIGITS)
    return {
        "mnist/train-images-idx3-ubyte.gz": gzip.compress(images),
        "mnist/train-labels-idx1-ubyte.gz": gzip.compress(labels),
        "mnist/t10k-images-idx3-ubyte": images,
        "mnist/t10k-labels-idx1-ubyte": labels,
    }


@cache
def cifar10() -> Files:
    def batch(first: int) -> bytes:
        return b"".join(bytes([first + i]) + _bytes(3 * 32 * 32).tobytes() for i in range(2))

    names = [f"data_batch_{i}" for i in range(1, 6)]
    files = {f"cifar-10-batches-bin/{n}.bin": batch(2 * i) for i, n in enumerate(names)}
    return {**files, "cifar-10-batches-bin/test_batch.bin": batch(0)}


@cache
def cifar100() -> Files:
    record = b"".join(bytes([3, j]) + bytes([j]) * (3 * 32 * 32) for j in range(100))
    return {"cifar-100-binary/train.bin": record, "cifar-100-binary/test.bin": record}


@cache
def stl10() -> Files:
    x, y = _bytes(10, 3 * 96 * 96).tobytes(), bytes(range(1, 11))
    parts = ("train", "test")
    return {f"stl10_binary/{p}_X.bin": x for p in parts} | {
        f"stl10_binary/{p}_y.bin": y for p in parts
    }


@cache
def svhn() -> Files:
    def mat(packed: bool) -> bytes:
        content = io.BytesIO()
        arrays = {"X": _bytes(32, 32, 3, 12), "y": (1 + _DIGITS[:, None]).astype(np.uint8)}
        savemat(content, arrays, do_compression=packed)
        return content.getvalue()

    return {"svhn/train_32x32.mat": mat(True), "svhn/test_32x32.mat": mat(False)}


@cache
def amat() -> Files:
    rows = [" ".join(["0.25", *["0"] * 782, "1", str(d)]) for d in _DIGITS]
    text = ("\n".join(rows) + "\n").encode()
    name = "mnist-back-rotation/mnist_all_background_images_rotation_normalized"
    return {f"{name}_{part}.amat": text for part in ("train_valid", "test")}


@cache
def zipped_amat() -> Files:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, text in amat().items():
            archive.writestr(Path(path).name, text)
    return {"mnist_rotation_back_image_new.zip": content.getvalue()}


@cache
def npz() -> Files:
    content = io.BytesIO()
    x, y = _bytes(12, 6, 5, 3), _DIGITS % 3
    np.savez_compressed(content, x_train=x, y_train=y, x_test=x / 255, y_test=y)
    return {"set.npz": content.getvalue()}


@cache
def npy() -> Files:
    files = {}
    for name, array in (("x", _bytes(12, 7)), ("y", np.array([f"c{i % 3}" for i in range(12)]))):
        content = io.BytesIO()
        np.save(content, array)
        files[f"{name}.npy"] = content.getvalue()
    return files


def _picture(kind: str, mode: str = "RGB", **options: Any) -> bytes:
    content = io.BytesIO()
    image = Image.fromarray(_bytes(12, 9, 3)).convert("L" if mode.startswith("I") else mode)
    image.convert(mode).save(content, kind, **options)
    return content.getvalue()


@cache
def _pictures() -> tuple[bytes, ...]:
    exif = Image.Exif()
    exif[0x0112] = 6
    kinds = ("PNG", "JPEG", "WEBP", "TIFF", "BMP", "GIF", "PPM", "TGA", "ICO", "PCX", "DDS", "SGI")
    found = [_picture(kind) for kind in kinds]
    found += [_picture("JPEG", exif=exif), _picture("JPEG", progressive=True)]
    found += [_picture("PNG", "I;16"), _picture("PNG", "P"), _picture("TIFF", "I;16")]
    found += [_picture("TIFF", compression="tiff_lzw"), _picture("GIF", save_all=True)]
    return tuple(found)


def pictures() -> Files:
    return {f"{i}/picture.bin": content for i, content in enumerate(_pictures())}


@cache
def folder() -> Files:
    return {f"set/{name}/{i}.png": _picture("PNG") for name in "ab" for i in range(2)}


@cache
def _decoded() -> tuple[Files, torch.Tensor]:
    with tempfile.TemporaryDirectory() as place:
        for path, content in folder().items():
            (Path(place) / path).parent.mkdir(parents=True, exist_ok=True)
            (Path(place) / path).write_bytes(content)
        train = load(Path(place) / "set", cache=Path(place) / "cache").train
        # without the notes: they are of files that were written at another time
        files = {path: data for path, data in _in(Path(place)).items() if "/states/" not in path}
        return files, train.x[:]


def decoded() -> Files:
    """With what is kept of it."""
    return _decoded()[0]


def open_decoded(folder: Path) -> None:
    """Damaged or not, it is what the pictures are."""
    assert torch.equal(load(folder / "set", cache=folder / "cache").train.x[:], _decoded()[1])


def open_crafted(folder: Path) -> None:
    """Sealed again, it may be other pictures, but never a crash."""
    for place in (folder / "cache").iterdir():
        if place.is_dir():
            seal(place, place.name)
    train = load(folder / "set", cache=folder / "cache").train
    assert len(train.x[:]) == len(train.y) > 0


def dataset() -> Files:
    with tempfile.TemporaryDirectory() as place:
        _from_dataset(Path(place))
        return _in(Path(place))


def _from_dataset(folder: Path) -> Samples:
    items = [(np.full((3, 4, 5), i, np.uint8), i % 2) for i in range(6)]
    return from_dataset(items, keep_as="fuzzed", cache=folder / "cache")


def open_dataset(folder: Path) -> None:
    for place in (folder / "cache").iterdir():
        seal(place, place.name)
    samples = _from_dataset(folder)
    assert len(samples.x[:]) == len(samples.y)


@cache
def manifest(kind: str) -> Files:
    pictures = {f"{i}.png": _picture("PNG") for i in range(4)}
    labels = ["a", "b", "a", "b"]
    if kind == "csv":
        rows = [f"{file},{label},train" for file, label in zip(pictures, labels, strict=True)]
        return {**pictures, "all.csv": "\n".join(["path,label,split", *rows]).encode()}
    import pyarrow as pa
    from pyarrow import parquet

    content = io.BytesIO()
    parquet.write_table(pa.table({"path": list(pictures), "label": labels}), content)
    return {**pictures, "all.parquet": content.getvalue()}


GOOD = b"good" * 300


def members() -> list[File]:
    return [File(f"set/{n}.bin", f"sha256:{sha256(GOOD).hexdigest()}", len(GOOD)) for n in "ab"]


@cache
def archive() -> Files:
    files = {}
    for mode in ("w:gz", "w"):
        content = io.BytesIO()
        with tarfile.open(fileobj=content, mode=mode) as tar:
            for member in (*members(), *(File(f"set/{n}.txt", "", 9) for n in "cd")):
                info = tarfile.TarInfo(member.path)
                info.size = len(GOOD)
                tar.addfile(info, io.BytesIO(GOOD))
        files[f"{mode.replace(':', '-')}/all.tar.gz"] = content.getvalue()
    return files


def config() -> Files:
    lines = ['data = "digits"', 'model = "mlp"', "k = 5", "rounds = 3", "learning_rate = 0.01"]
    lines += ["seed = 0", "augment = false", "validation = 0.2", 'weights = "a.safetensors"']
    return {"c.toml": "\n".join(lines).encode()}


@cache
def index() -> Files:
    with tempfile.TemporaryDirectory() as place:
        save_index(imbalanced(samples(), "exp:10", seed=1), Path(place) / "index.json")
        return _in(Path(place))


@cache
def weights() -> Files:
    with tempfile.TemporaryDirectory() as place:
        save_weights(mlp(4, 3, (8,)), Path(place) / "a.safetensors")
        return _in(Path(place))


@cache
def run() -> Files:
    task = prepare(Settings("blobs", rounds=1, device="cpu"), Splits("blobs", samples()))
    outcome = train(task)
    assert outcome is not None
    with tempfile.TemporaryDirectory() as place:
        into = Path(place) / "run"
        into.mkdir()
        write_config(into, task.settings)
        save_run(into, make_record(task, outcome, held_out=True), outcome.networks)
        return _in(into)


def go_on(folder: Path) -> None:
    """Made again in its folder, the training that `checkpoint` has begun."""
    options = {"rounds": 2, "batch_size": 19, "device": "cpu", "checkpoint": Checkpoints(folder)}
    fit(mlp(4, 3, (8,)), samples(), **options)


def go_on_early(folder: Path, made: type[Checkpoints] = Checkpoints) -> None:
    """With more to keep: counts of steps, the best weights, and how far a round is."""
    options: dict[str, Any] = {"rounds": 2, "initial_rounds": 1, "batch_size": 8, "device": "cpu"}
    options |= {"optimizer": partial(Adam, lr=0.01), "stop": EarlyStopping(2, group="majority")}
    with isolated(torch.Generator().manual_seed(0)):
        layers = [nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.2)]
        network = Network(nn.Sequential(*layers), nn.Linear(8, 3))
    fit(network, samples(), validation=blobs((5, 5, 5), seed=2), checkpoint=made(folder), **options)


class _StopsHalfway(Checkpoints):
    """Within the last round."""

    def due(self) -> bool:
        self._left = getattr(self, "_left", 10) - 1
        if not self._left:
            self.stop()
        return super().due()


@cache
def checkpoint() -> Files:
    """Without the checksum at its end."""
    with tempfile.TemporaryDirectory() as place:
        go_on(Path(place))
        return {path: data[:-32] for path, data in _in(Path(place)).items()}


def last_checkpoint() -> Files:
    """No other before it, to fall back on."""
    return dict([max(checkpoint().items())])


@cache
def early_checkpoint() -> Files:
    with tempfile.TemporaryDirectory() as place:
        with suppress(Stopped):
            go_on_early(Path(place), _StopsHalfway)
        return {path: data[:-32] for path, data in list(_in(Path(place)).items())[-1:]}


def go_on_run(folder: Path, stop_after: int | None = None) -> None:
    """What dos train does with the folder of a run that is not finished."""
    settings, splits = Settings("blobs", rounds=2, device="cpu"), Splits("blobs", samples())
    out = folder / "run"
    task = prepare(settings, splits, candidates_in(out))
    with begin(out, "blobs", task) as unfinished:

        def on_round(_: str, t: int, __: object) -> None:
            if t == stop_after:
                unfinished.stop()

        outcome = train(task, on_round, unfinished=unfinished)
        if outcome is not None:
            tell(task, outcome, make_record(task, outcome, held_out=True))


@cache
def unfinished() -> Files:
    """Without checksums; stopped in the last round, when the report has seen most of it."""
    with tempfile.TemporaryDirectory() as place:
        go_on_run(Path(place), stop_after=3)
        found = {path: data for path, data in _in(Path(place)).items() if "unfinished" in path}
        return {path: data[:-32] for path, data in found.items() if data}


@cache
def trials() -> Files:
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "trials.jsonl"
        append_header(path, {"where": {"torch": "2"}, "date": "2026-01-02", "quick": False})
        append_trial(path, trial())
        return _in(Path(place))


@cache
def results() -> Files:
    experiment = next(one for table in TABLES.values() for one in table.experiments)
    name = next(iter(SETS))
    facts = asdict(SETS[name]) | {"found": "MNIST", "classes": 10, "train": 20, "test": 9}
    look = {"quick": False, "setting": asdict(SETTING), **made_up_look(None, SETTING, None)}
    documents = {
        "datasets.json": {name: facts | {"shape": [1, 28, 28], "rates": rates_by_kind(name)}},
        f"figures/{experiment.name}.json": look,
    }
    stored = {path: json.dumps(document).encode() for path, document in documents.items()}
    return {**stored, f"trials/{experiment.name}.jsonl": trials()["trials.jsonl"]}


@cache
def story() -> Files:
    with tempfile.TemporaryDirectory() as place:
        save_story(a_story(3, 40, moments=1, rounds=1), place)
        return _in(Path(place))


torch.set_num_threads(1)
