"""What is kept of decoded pictures, damaged: made again or named, and never other pictures."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from deep_oversampling import InputError
from deep_oversampling.data.seal import seal
from deep_oversampling.data.splits import Splits
from test_decoding import entries, load, root

__all__ = ["load", "root"]  # fixtures


@pytest.mark.parametrize(
    "harm", ["cut off", "longer", "gone", "emptied", "swapped", "changed", "no seal", "a folder"]
)
def test_a_damaged_cache_is_made_again_and_a_line_says_so(
    load: Callable[..., Splits], tmp_path: Path, harm: str, caplog: pytest.LogCaptureFixture
) -> None:
    expected = load().train.x[:]
    (folder,) = (tmp_path / "cache" / name for name in entries(tmp_path / "cache"))
    content = (folder / "x").read_bytes()
    if harm == "cut off":
        (folder / "x").write_bytes(content[:-1])
    elif harm == "longer":
        (folder / "x").write_bytes(content + content)
    elif harm == "gone":
        (folder / "x").unlink()
    elif harm == "emptied":
        (folder / "about.json").write_text("")
    elif harm == "changed":
        (folder / "x").write_bytes(bytes([content[0] ^ 1]) + content[1:])
    elif harm == "no seal":
        (folder / "seal.json").unlink()
    elif harm == "a folder":
        (folder / "x").unlink()
        (folder / "x").mkdir()
    else:  # all of another set, under this one's name
        load(size=3)
        (other,) = {tmp_path / "cache" / name for name in entries(tmp_path / "cache")} - {folder}
        shutil.rmtree(folder)
        other.rename(folder)
    assert torch.equal(load().train.x[:], expected)
    assert [record.message.partition(": ")[0] for record in caplog.records] == [
        f"what was decoded into {folder} is decoded again"
    ]
    assert torch.equal(load().train.x[:], expected)
    assert len(caplog.records) == 1


@pytest.mark.parametrize(
    "about",
    [
        "[" * 100_000,
        '{"image": [3, 4], "skipped": [], "leaked": []}',
        '{"image": [3, -4, -5], "skipped": [], "leaked": []}',
        '{"image": [3, 4, 5], "skipped": [[-1, "x"]], "leaked": []}',
        '{"image": [3, 4, 5], "skipped": [[0, "x"], [0, "x"]], "leaked": []}',
        '{"image": [3, 4, 5], "skipped": [], "leaked": [99]}',
        '{"image": [3, 1000000000, 1000000000], "skipped": [], "leaked": []}',
    ],
    ids=lambda about: about[:60],
)
def test_an_index_that_is_sealed_and_wrong_is_named(
    load: Callable[..., Splits], tmp_path: Path, about: str
) -> None:
    load()
    (folder,) = (tmp_path / "cache" / name for name in entries(tmp_path / "cache"))
    (folder / "about.json").write_text(about)
    seal(folder, folder.name)
    with pytest.raises(InputError, match=r"damaged: .*; delete that folder, and the pictures"):
        load()


def test_a_note_that_leads_elsewhere_is_not_followed(
    load: Callable[..., Splits], tmp_path: Path
) -> None:
    expected = load().train.x[:]
    load(size=3)
    notes = sorted((tmp_path / "cache" / "states").iterdir())
    first, second = (note.read_bytes() for note in notes)
    for said in (second, first[:20], b"\xff\0" * 40, b"../../x", b"x" * 10_000, b""):
        for note in notes:
            note.write_bytes(said if note == notes[0] or said != second else first)
        assert torch.equal(load().train.x[:], expected)
