"""Subsets that can be drawn again elsewhere, and files that are refused otherwise."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from deep_oversampling import InputError, Samples, views
from deep_oversampling.data import index
from deep_oversampling.data.imbalance import drop_from_classes, parse_protocol
from deep_oversampling.data.index import Subset, fingerprint, imbalanced, load_index, save_index
from deep_oversampling.seeding import streams
from deep_oversampling.views import View
from toy import blobs

COUNTS = (40, 40, 30, 20, 10)
TEXTS = ["drop:4:0.9", "drop:2:0.5", "gaussian:0.2", "exp:10", "step:5", "step:4:0.3", "none"]
every_protocol = pytest.mark.parametrize("text", TEXTS)


def as_view(samples: Samples) -> Samples:
    """The same samples as rows of a larger store in another order."""
    m = len(samples)
    rows = torch.randperm(2 * m, generator=torch.Generator().manual_seed(3))[:m]
    stored = torch.zeros(2 * m, *samples.x.shape[1:], dtype=samples.x.dtype)
    stored[rows] = samples.x[:]
    return Samples(View(stored, rows), samples.y, samples.classes)


def draw(text: str, seed: int = 0, samples: Samples | None = None, **options: Any) -> Subset:
    return imbalanced(samples or blobs(COUNTS), parse_protocol(text), seed=seed, **options)


@given(st.sampled_from(TEXTS), st.integers(-(2**40), 2**40))
def test_what_is_kept_and_what_is_removed_are_the_whole(text: str, seed: int) -> None:
    samples = blobs(COUNTS)
    subset = draw(text, seed, samples)
    assert sorted(subset.rows.tolist() + subset.removed.tolist()) == list(range(len(samples)))
    assert subset.rows.tolist() == sorted(subset.rows.tolist())
    assert torch.equal(subset.samples.x, samples.x[subset.rows])
    assert torch.equal(subset.samples.y, samples.y[subset.rows])
    lost = samples.class_counts - subset.samples.class_counts
    assert subset.reduced == tuple(lost.nonzero().flatten().tolist())
    assert (subset.samples.class_counts > 0).all()


def test_the_draws_are_those_of_the_stream_for_imbalance() -> None:
    samples = blobs(COUNTS)
    rows, reduced = drop_from_classes(samples, 0.9, generator=streams(7)("imbalance"))
    subset = draw("drop:4:0.9", 7, samples)
    assert torch.equal(subset.rows, rows)
    assert subset.reduced == tuple(reduced)


@every_protocol
def test_the_seed_alone_decides(text: str) -> None:
    first, other = draw(text, 0), draw(text, 1)
    torch.manual_seed(9)
    torch.rand(5)
    assert torch.equal(draw(text, 0).rows, first.rows)
    assert torch.equal(first.rows, other.rows) == (text == "none")


def test_seeds_are_whole_numbers() -> None:
    with pytest.raises(InputError, match=r"the seed must be a whole number, found 0\.5"):
        draw("none", 0.5)  # type: ignore[arg-type]


@every_protocol
@pytest.mark.parametrize("before", ["tensor", "view"])
@pytest.mark.parametrize("after", ["tensor", "view"])
def test_an_index_leads_to_the_same_subset(
    tmp_path: Path, text: str, before: str, after: str
) -> None:
    stores = {"tensor": blobs(COUNTS), "view": as_view(blobs(COUNTS))}
    subset = draw(text, 5, stores[before], source="blobs, überlappend")
    save_index(subset, tmp_path / "a.json")
    assert [p.name for p in tmp_path.iterdir()] == ["a.json"]  # nothing is left beside it
    found = load_index(tmp_path / "a.json", stores[after])
    assert torch.equal(found.rows, subset.rows)
    assert torch.equal(found.samples.x[:], subset.samples.x[:])
    assert isinstance(found.samples.x, View) == (after == "view")
    assert found.record == subset.record
    assert (found.protocol, found.seed, found.source) == (subset.protocol, 5, subset.source)


def test_an_index_says_how_it_was_made(tmp_path: Path) -> None:
    subset = draw("step:4", 2, source="blobs")
    save_index(subset, tmp_path / "a.json")
    said = json.loads((tmp_path / "a.json").read_text())
    assert {name: said[name] for name in ("version", "source", "protocol", "seed")} == {
        "version": 1,
        "source": "blobs",
        "protocol": "step:4",
        "seed": 2,
    }
    assert said["before"] == list(COUNTS)
    assert said["after"] == [40, 40, 10, 10, 10]
    assert said["kept"] == 110
    assert said["fingerprint"] == fingerprint(subset.whole)
    assert said["torch"] == torch.__version__


# Fingerprints


def changed(x: Tensor, where: int) -> Tensor:
    x = x.clone()
    x.view(-1)[where] += 1
    return x


BASE = Samples(torch.arange(24.0).view(4, 2, 3), [0, 1, 1, 0], ["a", "b"])
OTHERS = {
    "first number": Samples(changed(BASE.x, 0), BASE.y, BASE.classes),
    "last number": Samples(changed(BASE.x, -1), BASE.y, BASE.classes),
    "order": Samples(BASE.x.flip(0), BASE.y, BASE.classes),  # the labels read the same backwards
    "label": Samples(BASE.x, [0, 1, 1, 1], BASE.classes),
    "name": Samples(BASE.x, BASE.y, ["a", "c"]),
    "classes": Samples(BASE.x, BASE.y, ["a", "b", "c"]),
    "shape": Samples(BASE.x.view(4, 3, 2), BASE.y, BASE.classes),
    "type": Samples(BASE.x.view(torch.int32), BASE.y, BASE.classes),  # the same bytes
    "fewer": BASE[torch.arange(3)],
}


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_other_samples_have_another_fingerprint(other: Samples) -> None:
    assert fingerprint(other) != fingerprint(BASE)


@pytest.mark.parametrize(
    "dtype", [torch.uint8, torch.bool, torch.int64, torch.float32, torch.bfloat16]
)
def test_the_storage_plays_no_part(dtype: torch.dtype) -> None:
    samples = Samples((BASE.x % 5).to(dtype), BASE.y, BASE.classes)
    strided = samples.x.transpose(1, 2).contiguous().transpose(1, 2)
    assert not strided.is_contiguous()
    for same in (as_view(samples), Samples(strided, BASE.y, BASE.classes), samples.to("cpu")):
        assert fingerprint(same) == fingerprint(samples)


@pytest.mark.parametrize("size", [1, 50, 24 * 3, 2**20])  # bytes
def test_reading_in_parts_changes_nothing(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    expected = fingerprint(BASE)
    monkeypatch.setattr(views, "_ROOM", size)
    assert fingerprint(BASE) == fingerprint(as_view(BASE)) == expected


def test_a_view_is_never_in_memory_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []

    def doubled(x: Tensor, u: Tensor) -> Tensor:
        read.append(len(x))
        return 2 * x

    view = View(BASE.x, torch.arange(4), doubled, torch.zeros(4, 0))
    samples = Samples(view, BASE.y, BASE.classes)
    read.clear()
    monkeypatch.setattr(views, "_ROOM", 24)  # bytes of one sample
    assert fingerprint(samples) == fingerprint(Samples(2 * BASE.x, BASE.y, BASE.classes))
    assert read == [1, 1, 1, 1]


def test_a_protocol_may_be_text() -> None:
    text = imbalanced(blobs(COUNTS), "exp:10", seed=3)
    assert torch.equal(text.rows, draw("exp:10", 3).rows)
    with pytest.raises(InputError, match="must be text, as exp:100, found None"):
        imbalanced(blobs(COUNTS), None, seed=3)  # type: ignore[arg-type]


def test_drawing_reads_no_sample_and_the_record_reads_each_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    calls: list[Samples] = []
    monkeypatch.setattr(index, "fingerprint", lambda samples: calls.append(samples) or "print")
    subset = draw("exp:10")
    assert len(subset.samples) + len(subset.removed) == sum(COUNTS)
    assert not calls
    save_index(subset, tmp_path / "a.json")
    save_index(subset, tmp_path / "b.json")
    assert len(calls) == 1


@pytest.mark.skipif(not torch.accelerator.is_available(), reason="needs an accelerator")
def test_every_device_gives_the_same(tmp_path: Path) -> None:
    device = torch.accelerator.current_accelerator()
    assert device is not None
    here = blobs(COUNTS)
    subset = draw("drop:4:0.9", samples=here)
    save_index(subset, tmp_path / "a.json")
    for there in (here.to(device), as_view(here).to(device)):
        found = load_index(tmp_path / "a.json", there)
        assert torch.equal(found.rows, subset.rows)
        assert torch.equal(found.samples.x[:].cpu(), subset.samples.x)


# What is refused


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "a.json"
    save_index(draw("drop:4:0.9", 5, source="blobs"), path)
    return path


def tampered(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (blobs((40, 40, 30, 20, 11)), "141 samples instead of 140; load that source"),
        (
            blobs((39, 41, 30, 20, 10)),
            r"class counts \[39, 41, 30, 20, 10\] instead of \[40, 40, 30, 20, 10\]",
        ),
        (blobs(COUNTS, seed=1), "contents, order, shape, type or class names differ"),
    ],
    ids=["number", "counts", "contents"],
)
def test_other_samples_are_refused(path: Path, other: Samples, message: str) -> None:
    expected = rf"a\.json must be used with the samples it was made from \(blobs\), .*: {message}"
    with pytest.raises(InputError, match=expected):
        load_index(path, other)


@pytest.mark.parametrize(
    "changes", [{"rows": "0" * 32}, {"seed": 6}, {"protocol": "drop:4:0.8"}], ids=str
)
def test_other_draws_are_refused(path: Path, changes: dict[str, Any]) -> None:
    tampered(path, torch="1.0.0", **changes)
    expected = (
        r"must lead to the samples it was made with, found that others are drawn: .* this version "
        r"of torch \(.*\) draws otherwise than the one that made it \(1\.0\.0\)"
    )
    with pytest.raises(InputError, match=expected):
        load_index(path, blobs(COUNTS))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": "other"}, "found no 'deep_oversampling index' as its format"),
        ({"more": 1, "evil\n": 2}, r"unknown fields 'evil\\n', 'more'"),
        ({"seed": "0"}, "seed = '0' where there must be a whole number"),
        ({"seed": True}, "seed = True where there must be a whole number"),
        ({"seed": 1.0}, "seed = 1.0 where there must be a whole number"),
        ({"kept": None}, "kept = None where there must be a whole number"),
        ({"protocol": ["drop"]}, r"protocol = \['drop'\] where there must be text"),
        ({"fingerprint": 3}, "fingerprint = 3 where there must be text"),
        ({"before": 140}, "before = 140 where there must be a list of counts"),
        ({"after": [1, -1]}, r"after = \[1, -1\] where there must be a list of counts"),
        ({"protocol": "dorp:0.9"}, "protocol 'dorp:0.9': .* did you mean drop"),
        ({"protocol": "drop:9:0.9"}, "protocol 'drop:9:0.9': classes must be fewer than the 5"),
        ({"protocol": "gaussian:0.99"}, "protocol 'gaussian:0.99': the reduction must be at most"),
        ({"kept": 3}, "after or kept that do not count the samples of its rows"),
        ({"after": [1, 1, 1, 1, 1]}, "after or kept that do not count"),
    ],
    ids=str,
)
def test_tampered_files_are_refused(path: Path, changes: dict[str, Any], message: str) -> None:
    tampered(path, **changes)
    with pytest.raises(InputError, match=rf"a\.json must be an index file .*{message}"):
        load_index(path, blobs(COUNTS))


@pytest.mark.parametrize("version", [0, 2, "1", None])
def test_other_versions_are_refused(path: Path, version: object) -> None:
    tampered(path, version=version)
    with pytest.raises(InputError, match=f"index of version 1, found version {version!r}; use the"):
        load_index(path, blobs(COUNTS))


@pytest.mark.parametrize("field", ["protocol", "seed", "before", "rows", "torch"])
def test_missing_fields_are_named(path: Path, field: str) -> None:
    said = json.loads(path.read_text())
    del said[field]
    path.write_text(json.dumps(said))
    with pytest.raises(InputError, match=f"must be an index file .*, found no {field}; make it"):
        load_index(path, blobs(COUNTS))


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"\xff\xfe", b"[" * 100_000, b'{"seed": 1' + b"0" * 5000 + b"}", b"os.remove('x')"],
    ids=["empty", "cut off", "bytes", "deep", "long number", "code"],
)
def test_what_is_no_json_is_refused(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"must be an index file .*, found no JSON: "):
        load_index(path, blobs(COUNTS))


@pytest.mark.parametrize("content", ["[]", "3", "null", '"text"', "{}"])
def test_other_json_is_refused(path: Path, content: str) -> None:
    path.write_text(content)
    with pytest.raises(InputError, match=r"must be an index file .* as its format"):
        load_index(path, blobs(COUNTS))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere\.json must be a readable index file: .*No such"):
        load_index(tmp_path / "nowhere.json", blobs(COUNTS))


@pytest.mark.parametrize("place", ["nowhere/a.json", "file/a.json", "folder", ""])
def test_places_that_cannot_be_written_are_refused(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError, match="must be a file in a folder that can be written to: "):
        save_index(draw("none"), tmp_path / place)
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["file", "folder"]


def test_a_file_is_replaced_whole_or_not_at_all(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = path.read_text()

    def full(self: Path, text: str, **_: str) -> None:
        with self.open("w") as file:
            file.write(text[:20])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(InputError, match="No space left on device"):
        save_index(draw("none"), path)
    assert [p.name for p in path.parent.iterdir()] == ["a.json"]
    assert path.read_text() == before
