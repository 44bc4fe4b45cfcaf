"""Folders and manifests: which pictures there are, and every way it can be unclear."""

import os
from pathlib import Path

import pytest

from deep_oversampling import InputError
from deep_oversampling.data.pictures.folders import list_folder
from deep_oversampling.data.pictures.listing import Listing
from deep_oversampling.data.pictures.manifest import list_manifest
from picture_files import folder_of, save


def named(listing: Listing, root: Path) -> list[tuple[str, str, str]]:
    return [
        (Path(file).relative_to(root).as_posix(), listing.classes[label], split)
        for file, label, split in zip(listing.files, listing.labels, listing.splits, strict=True)
    ]


def test_a_folder_per_class(tmp_path: Path) -> None:
    folder_of(tmp_path / "pets", {"dog": 2, "cat": 1})
    (tmp_path / "pets" / "dog" / "notes.txt").write_text("not a picture")
    save(tmp_path / "pets" / "dog" / ".thumbnail.png", 0)
    save(tmp_path / "pets" / "cat" / "young" / "7.png", 0)
    listing = list_folder(tmp_path / "pets")
    assert listing.name == "pets"
    assert listing.classes == ("cat", "dog")
    assert named(listing, tmp_path / "pets") == [
        ("cat/0.png", "cat", "train"),
        ("cat/young/7.png", "cat", "train"),
        ("dog/0.png", "dog", "train"),
        ("dog/1.png", "dog", "train"),
    ]


@pytest.mark.parametrize("held", ["val", "valid", "Validation"])
def test_folders_per_split(tmp_path: Path, held: str) -> None:
    for split in ("train", held, "test"):
        folder_of(tmp_path / split, {"a": 1, "b": 1})
    listing = list_folder(tmp_path)
    assert listing.classes == ("a", "b")
    assert sorted(set(listing.splits)) == ["test", "train", "validation"]


def test_a_class_may_be_called_train(tmp_path: Path) -> None:
    listing = list_folder(folder_of(tmp_path, {"train": 1, "bus": 1}))
    assert listing.classes == ("bus", "train")


@pytest.mark.parametrize("folders", [("train", "test", "unlabelled"), ("val", "test")])
def test_splits_beside_others_are_not_taken_for_classes(
    tmp_path: Path, folders: tuple[str, ...]
) -> None:
    for folder in folders:
        folder_of(tmp_path / folder, {"cat": 1, "dog": 1})
    with pytest.raises(InputError, match=r"must hold train/ and other splits, or classes"):
        list_folder(tmp_path)


def test_numbers_are_sorted_as_numbers(tmp_path: Path) -> None:
    listing = list_folder(folder_of(tmp_path, {"10": 1, "9": 1, "1": 1}))
    assert listing.classes == ("1", "9", "10")


def test_names_in_any_script_and_either_form_of_é(tmp_path: Path) -> None:
    folder_of(tmp_path / "train", {"cafe\u0301": 1, "猫": 1})
    folder_of(tmp_path / "test", {"caf\u00e9": 1, "猫": 1})
    assert list_folder(tmp_path).classes == ("café", "猫")


def test_a_name_that_is_no_text_at_all(tmp_path: Path) -> None:
    folder_of(tmp_path, {"a": 1, "b": 1})
    (tmp_path / "b").rename(os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xfe"))
    listing = list_folder(tmp_path)
    assert sorted(listing.classes) == [r"\xff\xfe", "a"]


@pytest.mark.parametrize("pair", [("caf\u00e9", "cafe\u0301"), ("\udce9", r"\xe9")])
def test_classes_that_read_alike_are_not_merged(tmp_path: Path, pair: tuple[str, str]) -> None:
    folder_of(tmp_path, {"a": 1, "b": 1})
    for name in pair:
        save(tmp_path / name / "0.png", 0)
    with pytest.raises(InputError, match=r"two that are both called .* in different bytes"):
        list_folder(tmp_path)


def test_links_are_followed(tmp_path: Path) -> None:
    folder_of(tmp_path / "stored", {"x": 2})
    folder_of(tmp_path / "set", {"a": 1})
    (tmp_path / "set" / "b").symlink_to(tmp_path / "stored" / "x")
    assert list_folder(tmp_path / "set").labels == (0, 1, 1)


@pytest.mark.parametrize("target", [".", "..", "../.."])
def test_links_in_a_circle_are_named(tmp_path: Path, target: str) -> None:
    folder_of(tmp_path / "set", {"a": 1, "b": 1})
    (tmp_path / "set" / "b" / "again").symlink_to(target)
    with pytest.raises(InputError, match=r"the link .*again leads back to .*; remove it"):
        list_folder(tmp_path / "set")


def test_a_link_to_itself_is_passed_over_or_named(tmp_path: Path) -> None:
    folder_of(tmp_path, {"a": 1, "b": 1})
    (tmp_path / "b" / "loop").symlink_to(tmp_path / "b" / "loop")
    assert len(list_folder(tmp_path).files) == 2


def test_no_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"found no folder at .*nowhere"):
        list_folder(tmp_path / "nowhere")


def test_an_empty_class_folder(tmp_path: Path) -> None:
    folder_of(tmp_path, {"a": 1, "b": 1})
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"must hold pictures, found none in .*empty; add some"):
        list_folder(tmp_path)


def test_pictures_without_class_folders(tmp_path: Path) -> None:
    save(tmp_path / "1.png", 0)
    save(tmp_path / "2.png", 0)
    with pytest.raises(InputError, match="found no subfolder but 2 pictures; sort them"):
        list_folder(tmp_path)


def test_one_class_is_not_enough(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="must hold two or more classes, found 1: 'only'"):
        list_folder(folder_of(tmp_path, {"only": 3}))


def test_a_class_that_is_only_tested(tmp_path: Path) -> None:
    folder_of(tmp_path / "train", {"a": 1, "b": 1})
    folder_of(tmp_path / "test", {"a": 1, "new": 1})
    with pytest.raises(InputError, match="found none of 'new', which is there to validate or test"):
        list_folder(tmp_path)


def manifest(root: Path, text: str, name: str = "list.csv") -> Path:
    folder_of(root, {"p": 3})
    (root / name).write_text(text, encoding="utf-8-sig")
    return root / name


def test_a_csv_manifest(tmp_path: Path) -> None:
    path = manifest(
        tmp_path, "label,path,split\nnew,p/0.png,train\nold,p/1.png,Train\nold,p/2.png,Test\n"
    )
    listing = list_manifest(path)
    assert listing.name == "list.csv"
    assert named(listing, tmp_path) == [
        ("p/0.png", "new", "train"),
        ("p/1.png", "old", "train"),
        ("p/2.png", "old", "test"),
    ]


@pytest.mark.parametrize("delimiter", [";", "\t"])
def test_other_delimiters_and_blank_lines(tmp_path: Path, delimiter: str) -> None:
    text = "Path,Label\np/0.png,2\n\np/1.png,10\n".replace(",", delimiter)
    listing = list_manifest(manifest(tmp_path, text))
    assert listing.classes == ("2", "10")
    assert set(listing.splits) == {"train"}


def test_a_parquet_manifest(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    folder_of(tmp_path, {"p": 2})
    table = arrow.table({"Label": [7.0, 3.0], "id": [1, 2], "path": ["p/0.png", "p/1.png"]})
    parquet.write_table(table, tmp_path / "list.parquet")
    listing = list_manifest(tmp_path / "list.parquet")
    assert listing.classes == ("3", "7")
    assert listing.labels == (1, 0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "path,label\np/0.png,a\np/9.png,b\nq.png,b\n",
            "found 2 of 3 missing, the first in line 3",
        ),
        (
            "file,class\np/0.png,a\n",
            "must have the columns path and label .* found 'file', 'class'",
        ),
        ("", "must have the columns path and label .* found none"),
        ("path,label,split\np/0.png,a,\n", "split must be train, validation or test, found ''"),
        ("path,label,Label\np/0.png,a,b\n", "the columns path and label once"),
        (f"path,label\n{'x' * 300}.png,a\n", "found 1 of 1 missing"),
        ("path,label\n", "must hold two or more classes, found 0: no picture at all"),
        ("path,label\np/0.png,\n", "line 2: every row must have a path and a label"),
        ("path,label\np/0.png\n", "line 2: every row must have a path and a label"),
        (
            "path,label,split\np/0.png,a,tset\n",
            "split must be train, validation or test, found 'tset'",
        ),
        (
            "path,label\np/0.png,a\np/0.png,b\n",
            "line 3: a picture must have one label .* 'a' in train",
        ),
        (
            "path,label,split\np/0.png,a,train\np/0.png,a,test\n",
            "line 3: a picture must have one label and be in one split",
        ),
    ],
)
def test_bad_manifests(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        list_manifest(manifest(tmp_path, text))


def test_manifests_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "binary.csv").write_bytes(b"path,label\n\xff\xfe\xfa,1\n")
    with pytest.raises(InputError, match=r"binary.csv must be a readable CSV file in UTF-8"):
        list_manifest(tmp_path / "binary.csv")
    (tmp_path / "text.parquet").write_text("path,label\n")
    with pytest.raises(InputError, match=r"text.parquet must be a readable Parquet file"):
        list_manifest(tmp_path / "text.parquet")
    with pytest.raises(InputError, match=r"missing.csv must be a readable CSV file"):
        list_manifest(tmp_path / "missing.csv")
