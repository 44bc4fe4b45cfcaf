"""A stored story is the same story; what is damaged, foreign or newer is refused in words."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deep_oversampling.errors import InputError
from deep_oversampling.report import Story, load_story, save_story
from deep_oversampling.writing import jsonable, write_whole
from stories import nasty_story, story


def assert_same(one: Any, other: Any) -> None:
    if isinstance(one, np.ndarray):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
    elif isinstance(one, dict):
        assert one.keys() == other.keys()
        for key in one:
            assert_same(one[key], other[key])
    elif isinstance(one, tuple):
        assert len(one) == len(other)
        for mine, theirs in zip(one, other, strict=True):
            assert_same(mine, theirs)
    elif type(one).__module__.startswith("deep_oversampling"):
        assert_same(vars(one), vars(other))
    else:
        assert one == other


@pytest.mark.parametrize(
    "made",
    [
        story(),
        story(2, baseline=False, pictures=False, moments=0, rounds=0),
        nasty_story(),
    ],
    ids=["whole", "bare", "nasty"],
)
def test_round_trip(made: Story, tmp_path: Path) -> None:
    save_story(made, tmp_path / "new" / "folder")
    assert_same(made, load_story(tmp_path / "new" / "folder"))
    names = sorted(path.name for path in (tmp_path / "new" / "folder").iterdir())
    assert names == ["story.json", "story.safetensors"]


def test_saved_twice_gives_the_same_bytes(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        save_story(story(), tmp_path / folder)
    for name in ("story.json", "story.safetensors"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_non_contiguous_pictures_and_no_numbers_are_stored(tmp_path: Path) -> None:
    made = story()
    made.histories["dos"]["spreads"][0]["within"] = float("nan")
    (one, *_) = made.over_sampled
    assert one.image is not None
    turned = replace(one, image=one.image.T[::2])
    made = replace(made, over_sampled=(turned,))
    save_story(made, tmp_path)
    found = load_story(tmp_path)
    assert found.histories["dos"]["spreads"][0]["within"] is None
    assert_same(turned, found.over_sampled[0])


def change(path: Path, **values: Any) -> None:
    document = json.loads(path.read_text())
    path.write_text(json.dumps({**document, **values}))


def test_newer_and_foreign_files_are_refused(tmp_path: Path) -> None:
    save_story(story(), tmp_path)
    change(tmp_path / "story.json", version=2)
    with pytest.raises(InputError, match="version 1 or older, found 2; a newer"):
        load_story(tmp_path)
    change(tmp_path / "story.json", format="a recipe")
    with pytest.raises(InputError, match="must be a story, found another JSON file"):
        load_story(tmp_path)
    (tmp_path / "story.json").write_text("[]")
    with pytest.raises(InputError, match="must be a story, found another JSON file"):
        load_story(tmp_path)


def test_missing_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"story\.json must be a story that can be read"):
        load_story(tmp_path)
    save_story(story(), tmp_path)
    (tmp_path / "story.safetensors").unlink()
    with pytest.raises(InputError, match=r"story\.safetensors must be as save_story wrote it"):
        load_story(tmp_path)


@pytest.mark.parametrize("name", ["story.json", "story.safetensors"])
def test_cut_files_are_refused(name: str, tmp_path: Path) -> None:
    save_story(story(), tmp_path)
    path = tmp_path / name
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(InputError, match="damaged"):
        load_story(tmp_path)


def test_files_of_two_runs_are_not_one_story(tmp_path: Path) -> None:
    save_story(story(), tmp_path / "a")
    save_story(story(skills=(1.0, 1.1)), tmp_path / "b")
    (tmp_path / "a" / "story.json").replace(tmp_path / "b" / "story.json")
    with pytest.raises(InputError, match=r"not the file that story\.json was written with"):
        load_story(tmp_path / "b")


@pytest.mark.parametrize(
    "values",
    [
        {"classes": ["one"]},
        {"classes": [1, 2, 3, 4]},
        {"classes": None},
        {"minority": [9]},
        {"methods": ["dos", "other"]},
        {"moments": ["a", "b", "c", "d"]},
        {"over_sampled": [{"label": 99, "members": [["x", 1.0]]}]},
        {"over_sampled": [{"label": 0, "members": []}]},
        {"mistakes": {"dos": [[0, 1]]}},
        {"histories": {"dos": 3}},
        {"facts": {"a": 1}},
        {"facts": None},
        {"title": None},
        {"histories": {"dos": {"rounds": [{}], "spreads": []}}},
    ],
    ids=str,
)
def test_words_that_do_not_fit_are_refused(values: dict[str, Any], tmp_path: Path) -> None:
    save_story(story(), tmp_path)
    change(tmp_path / "story.json", **values)
    with pytest.raises(InputError):
        load_story(tmp_path)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"labels": np.full(200, 4)}, "labels must be classes, 0 to 3"),
        ({"labels": np.zeros(200)}, "labels must be whole numbers, found float64"),
        ({"labels": np.zeros(0, int)}, "one or more validation samples"),
        ({"counts": np.ones(3, int)}, "counts must have one for each of 4 classes"),
        ({"counts": -np.ones(4, int)}, "counts must not be negative"),
        ({"minority": (1, 1)}, "name a class once"),
        ({"probabilities": {}}, "must have those of dos"),
        ({"probabilities": {"dos": np.ones((3, 4))}}, r"must have shape \(200, 4\)"),
        ({"probabilities": {"dos": np.full((200, 4), np.nan)}}, "must be finite"),
        ({"probabilities": {"smote": np.ones((200, 4))}}, "keyed plain and dos"),
        ({"moment_labels": np.zeros(3, int)}, "a point for each of 3|finite point for each of 3"),
    ],
)
def test_story_that_does_not_hold_together(values: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        save_story(story(**values), tmp_path)
    assert not list(tmp_path.iterdir())


def test_old_files_stay_where_writing_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_story(story(), tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    done: list[int] = []

    def full(handle: int) -> None:
        done.append(handle)
        if len(done) == 2:
            os.truncate(handle, 10)
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match=r"has room: .*No space left"):
        save_story(story(skills=(1.0, 1.1)), tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_folder_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="choose another"):
        write_whole({tmp_path / "file" / "page.html": b""})


def test_json_has_no_nan() -> None:
    given = {"a": (np.float32(0.5), np.inf), 2: np.array([1.0, np.nan]), "t": True, "n": None}
    assert jsonable(given) == {"a": [0.5, None], "2": [1, None], "t": True, "n": None}


def test_files_are_on_the_disk_before_they_get_their_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a loss of power would leave names of empty files, when checkpoints are deleted."""
    done: list[str] = []
    for name in ("fsync", "replace"):
        real = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *some, n=name, r=real: (done.append(n), r(*some))[1])
    write_whole({tmp_path / name: b"content" for name in "ab"})
    assert done == ["fsync"] * 2 + ["replace"] * 2 + ["fsync"]  # the last is of the folder
