"""A file cannot hurt: none is larger than it may be, runs code, or is waited for without end."""

import gzip
import io
import json
import os
import resource
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from deep_oversampling import InputError, load_weights, mlp
from deep_oversampling.data import load, load_index
from deep_oversampling.data.official.idx import read_idx
from deep_oversampling.data.official.svhn import load_svhn
from deep_oversampling.data.pictures.picture import Unreadable, read_picture
from deep_oversampling.reading import migrated, parse_json, read_lines, read_plain
from deep_oversampling.report import load_story
from deep_oversampling.rivals.trials import read_trials
from deep_oversampling.runs import Run, read_settings
from fuzzing import whole
from fuzzing.readers import READERS, Files

HUGE = 10**13  # bytes: ten terabytes, of which none is on the disk
MiB = 1 << 20
BY_NAME = {reader.name: reader for reader in READERS}
REMADE = {"decoded pictures", "decoded pictures, sealed", "dataset, sealed"}  # whatever is there


def grown(act: Callable[[], object]) -> int:
    """Bytes by which the most memory of this process grew."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    act()
    return 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)


def refused(read: Callable[[], object], match: str = ".") -> None:
    def act() -> None:
        with pytest.raises(InputError, match=match):
            read()

    assert grown(act) < 64 * MiB


def every_file() -> list[tuple[str, str]]:
    """Of every reader, but pictures, which are skipped, and text that is read line by line."""
    other = {"pictures", "folder of pictures", "archive", "checkpoint", *REMADE}
    return [
        (r.name, path) for r in READERS if r.name not in other for path in _read_whole(r.files())
    ]


def _read_whole(files: Files) -> list[str]:
    """Those that are not passed over, as moments for a report and earlier checkpoints are."""
    passed = (".png", ".npy", "baseline.safetensors", "00000002.checkpoint")
    return [path for path in files if not path.endswith(passed) and "/moments/" not in path]


@pytest.mark.parametrize(("name", "path"), every_file(), ids=lambda value: value)
def test_ten_terabytes_are_refused_and_not_read(name: str, path: str, tmp_path: Path) -> None:
    reader = BY_NAME[name]
    reader.put(tmp_path, reader.files())
    os.truncate(tmp_path / path, HUGE)
    refused(lambda: reader.read(tmp_path))


@pytest.mark.parametrize("end", [".json", ".toml", ".jsonl", ".csv", ".npz", "model.safetensors"])
def test_a_pipe_is_not_waited_for(end: str, tmp_path: Path) -> None:
    for reader in (one for one in READERS if one.name not in REMADE):
        folder = reader.put(tmp_path / reader.name, reader.files())
        for path in (p for p in reader.files() if p.endswith(end)):
            (folder / path).unlink()
            os.mkfifo(folder / path)
            refused(lambda: reader.read(folder), "not a plain file|JSON|found no model")  # noqa: B023
            (folder / path).unlink()
            (folder / path).write_bytes(reader.files()[path])


def test_a_picture_that_is_a_pipe_or_huge_is_skipped(tmp_path: Path) -> None:
    BY_NAME["folder of pictures"].put(tmp_path, whole.folder())
    os.mkfifo(tmp_path / "set/a/pipe.png")
    (tmp_path / "set/b/huge.png").touch()
    os.truncate(tmp_path / "set/b/huge.png", HUGE)
    splits = load(tmp_path / "set", cache=tmp_path / "cache")
    assert sorted(Path(one.file).name for one in splits.skipped) == ["huge.png", "pipe.png"]


DEEP = "[" * 1_000_000 + "]" * 1_000_000


@pytest.mark.parametrize(
    "read",
    [
        lambda folder: load_index(folder / "index.json", whole.samples()),
        lambda folder: Run.open(folder),
        lambda folder: load_story(folder),
        lambda folder: BY_NAME["results"].read(folder),
        lambda folder: read_settings(folder / "c.toml"),
    ],
)
def test_a_million_brackets_are_refused(read: Callable[[Path], object], tmp_path: Path) -> None:
    for name in ("index.json", "run.json", "story.json", "datasets.json"):
        (tmp_path / name).write_text(DEEP)
    (tmp_path / "c.toml").write_text("k = " + DEEP[:30_000])
    refused(lambda: read(tmp_path))


def test_a_line_that_is_nested_too_deeply_is_a_broken_one(tmp_path: Path) -> None:
    path = tmp_path / "trials.jsonl"
    path.write_bytes(DEEP.encode() + b"\n" + whole.trials()["trials.jsonl"])
    broken: list[int] = []
    assert len(read_trials(path, on_broken=broken.append)) == 1
    assert broken == [1]
    with pytest.raises(ValueError, match="nested too deeply"):
        parse_json(DEEP)


def test_lines_have_an_end(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"abc\n" + b"d" * 9)
    assert list(read_lines(tmp_path / "a", 9)) == [b"abc\n", b"d" * 9]
    with pytest.raises(OSError, match="a line in it are more than the 8 that are read"):
        list(read_lines(tmp_path / "a", 8))
    with pytest.raises(OSError, match="its 13 bytes are more than the 12 that are read"):
        read_plain(tmp_path / "a", 12)
    with pytest.raises(IsADirectoryError):
        read_plain(tmp_path, 12)


# bombs: small files that are large when they are unpacked


def test_gzip_bomb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deep_oversampling.data.official.idx.MOST_BYTES", MiB)
    head = b"\0\0\x08\x01" + (2**32 - 1).to_bytes(4)
    (tmp_path / "x.gz").write_bytes(gzip.compress(head + bytes(80 * MiB)))
    refused(lambda: read_idx(tmp_path / "x.gz"), "unpacks to more than the 1,048,576 bytes")


@pytest.mark.parametrize("promised", [10**13, 2**62])
@pytest.mark.parametrize("packed", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_an_array_that_promises_terabytes(promised: int, packed: int, tmp_path: Path) -> None:
    content = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        content, {"descr": "|u1", "fortran_order": False, "shape": (promised,)}
    )
    with zipfile.ZipFile(tmp_path / "x.npz", "w", packed) as archive:
        archive.writestr("x.npy", content.getvalue())
    refused(lambda: load(tmp_path / "x.npz"), "must have .* bytes for")
    for name in "xy":
        (tmp_path / f"{name}.npy").write_bytes(content.getvalue())
    refused(lambda: load(tmp_path / "x.npy"), "must be a readable .npy file")


def test_zip_bomb(tmp_path: Path) -> None:
    """Its list of members says what they unpack to, before one is."""
    content = io.BytesIO()
    size = 2**31 - 1
    np.lib.format.write_array_header_1_0(
        content, {"descr": "|u1", "fortran_order": False, "shape": (size,)}
    )
    path = tmp_path / "x.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x.npy", content.getvalue())
        archive.filelist[0].file_size = size + content.tell()
    refused(lambda: load(path), "unpack to 2,147,483,775, which no real data does")


def test_mat_bomb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deep_oversampling.data.official.svhn.MOST_BYTES", MiB)
    packed = zlib.compress((14).to_bytes(4, "little") + bytes(80 * MiB))
    head = b" " * 124 + b"\x00\x01IM" + (15).to_bytes(4, "little")
    (tmp_path / "svhn").mkdir()
    path = tmp_path / "svhn/train_32x32.mat"
    path.write_bytes(head + len(packed).to_bytes(4, "little") + packed)
    refused(lambda: load_svhn(tmp_path, tmp_path / "cache"), "more than the 1,048,576 bytes")


def test_picture_bomb() -> None:
    """A PNG of a few kilobytes that says it has 400 million pixels, and one of 200 million."""
    for side in (20_000, 14_000):
        content = io.BytesIO()
        Image.new("1", (8, 8)).save(content, "PNG")
        head = bytearray(content.getvalue())
        head[16:24] = side.to_bytes(4) * 2
        head[29:33] = zlib.crc32(head[12:29]).to_bytes(4)

        def act(head: bytearray = head) -> None:
            with pytest.raises(Unreadable, match=r"pixels"):
                read_picture(bytes(head), 8, 8, grey=True)

        assert grown(act) < 64 * MiB


@pytest.mark.parametrize(
    "shape", [[10**6, 10**7], [2**62], [2**32, 2**32]], ids=["10 TB", "2^62", "2^64"]
)
def test_weights_that_promise_terabytes(shape: list[int], tmp_path: Path) -> None:
    size = 4 * int(np.prod(shape, dtype=object))
    tensor = {"dtype": "F32", "shape": shape, "data_offsets": [0, min(size, 2**63)]}
    head = json.dumps({"embedder.1.weight": tensor}).encode()
    path = tmp_path / "w.safetensors"
    path.write_bytes(len(head).to_bytes(8, "little") + head + bytes(64))
    refused(lambda: load_weights(mlp(4, 3), path), "must be a safetensors file")


# versions


def test_an_older_document_is_brought_up_step_by_step() -> None:
    steps = {
        1: lambda old: {"names": old["name"].split()},
        2: lambda old: {**old, "count": len(old["names"])},
    }
    assert migrated({"name": "a b"}, 1, 3, steps) == {"names": ["a", "b"], "count": 2}
    assert migrated({"names": ["c"]}, 2, 3, steps) == {"names": ["c"], "count": 1}
    assert migrated({"x": 1}, 3, 3, steps) == {"x": 1}


@pytest.mark.parametrize("version", [4, 0, -1, None, "3", 3.0, True, [3]])
def test_other_versions_lead_nowhere(version: object) -> None:
    assert migrated({"x": 1}, version, 3, {2: lambda old: old}) is None


@pytest.mark.parametrize("reader", ["index", "run", "story"])
def test_a_migration_is_used_where_there_is_one(
    reader: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Made up: version 0 called the first field otherwise."""
    room = {"index": "data.index", "run": "runs.record", "story": "report.storing"}[reader]
    first = {"index": "source", "run": "status", "story": "title"}[reader]
    one = BY_NAME[reader]
    path = one.put(tmp_path, one.files()) / f"{reader}.json"
    document = json.loads(path.read_text())
    document |= {"version": 0, "called": document.pop(first)}
    path.write_text(json.dumps(document))
    with pytest.raises(InputError, match="version"):
        one.read(tmp_path)

    def renamed(old: dict[str, object]) -> dict[str, object]:
        return {first: old["called"], **{k: v for k, v in old.items() if k != "called"}}

    monkeypatch.setattr(f"deep_oversampling.{room}._MIGRATIONS", {0: renamed})
    one.read(tmp_path)
