"""Names that a terminal would act on, in every command that prints names."""

import csv
import io
import json
import os
import re
import shutil
import sys
import warnings
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest

from deep_oversampling import cli
from deep_oversampling.runs import Settings, read_settings
from deep_oversampling.runs.settings import as_toml
from picture_files import folder_of

# colours and a cleared screen, a line that looks like one of ours, writing backwards, markup of
# rich, an emoji of rich, a formula
NAMES = ["\x1b[31mred\x1b[2J", "two\ndos: lines", "\u202egpj.exe", "[red]x", ":car:", "=1+1"]
ACTS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")  # but for \t and \n


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pictures in folders of these names, some of them called so, too, and a run of them."""
    place = tmp_path_factory.mktemp("names")
    data = place / "a\x1b[1mb"
    folder_of(data, dict.fromkeys(NAMES, 12), (8, 8, 3))
    (data / NAMES[0] / "\x1b]0;title\x07.png").write_bytes(b"no picture")
    done = dos(place, "train", data.name, "--rounds", "1", "--device", "cpu", "--out", "r\x1b[7mun")
    assert done.returncode == 0, done.stderr
    check(done, NAMES)
    assert r"skipped a\x1b[1mb/\x1b[31mred\x1b[2J/\x1b]0;title\x07.png" in done.stderr.replace(
        str(place) + "/", ""
    )
    return place


@dataclass
class Done:
    returncode: int
    stdout: str
    stderr: str


def dos(place: Path, *arguments: str) -> Done:
    """The whole command, as it is called, but for the process."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.chdir(place)
        patch.setattr(sys, "argv", ["dos", *arguments])
        patch.setattr(warnings, "formatwarning", warnings.formatwarning)  # put back afterwards
        patch.setenv("DOS_CACHE", str(place / "cache"))
        patch.setenv("COLUMNS", "200")
        with pytest.raises(SystemExit) as end:
            cli.main()
    return Done(int(end.value.code or 0), out.getvalue(), err.getvalue())


def check(done: Done, names: list[str]) -> None:
    assert not ACTS.search(done.stdout + done.stderr)
    assert "\ndos: lines" not in done.stdout
    for name in names:
        spelt = name.encode("unicode_escape").decode()
        assert spelt in done.stdout, f"{spelt} in {done.stdout}"


@pytest.mark.parametrize(
    "command",
    [
        ["info", "r\x1b[7mun"],
        ["evaluate", "r\x1b[7mun", "a\x1b[1mb"],
        ["data", "show", "a\x1b[1mb", "--picture", "\x1b[5msheet.png"],
        ["predict", "r\x1b[7mun", "a\x1b[1mb", "--top", "6"],
    ],
    ids=lambda command: command[0],
)
def test_names_are_spelt_out(command: list[str], place: Path) -> None:
    done = dos(place, *command)
    assert done.returncode == int(command[0] == "predict"), done.stderr  # one is no picture
    check(done, NAMES)


@pytest.mark.parametrize("command", [["export"], ["report"]], ids=lambda command: command[0])
def test_names_of_folders_are_spelt_out(command: list[str], place: Path, tmp_path: Path) -> None:
    shutil.copytree(place / "r\x1b[7mun", tmp_path / "r\x1b[7mun")
    done = dos(tmp_path, *command, "r\x1b[7mun", "--out", "\x1b[5mout.onnx")
    assert done.returncode == 0, done.stderr
    check(done, ["\x1b[5mout.onnx"])


def test_errors_are_one_line_whatever_was_typed(place: Path) -> None:
    for command in (["info", "no\x1b[2J\nsuch"], ["train", "no\n\u202esuch"]):
        done = dos(place, *command)
        assert done.returncode == 1
        assert done.stderr.count("\n") == 1
        check(done, [])


def test_programs_get_names_as_they_are(place: Path) -> None:
    pictures = "a\x1b[1mb"
    found = json.loads(dos(place, "predict", "r\x1b[7mun", pictures, "--top", "6", "--json").stdout)
    assert {one["class"] for one in found["predictions"][0]["classes"]} == set(NAMES)
    done = dos(place, "predict", "r\x1b[7mun", pictures, "--top", "6", "--csv")
    first = list(csv.reader(io.StringIO(done.stdout)))[1]
    assert set(first[1::2]) == {*NAMES[:-1], "'=1+1"}  # a spreadsheet must not compute it


def test_a_file_named_like_a_formula_is_still_that_file(place: Path, tmp_path: Path) -> None:
    some = next((place / "a\x1b[1mb" / ":car:").iterdir())
    shutil.copy(some, tmp_path / "=cmd.png")
    done = dos(tmp_path, "predict", str(place / "r\x1b[7mun"), "=cmd.png", "--csv")
    assert done.stdout.splitlines()[1].startswith("./=cmd.png,")


def test_settings_keep_any_name_that_is_text(tmp_path: Path) -> None:
    name = "".join(map(chr, [*range(1, 33), *range(127, 160)])) + "\u202e\U0001f697"
    (tmp_path / "config.toml").write_text(as_toml(Settings(name)), encoding="utf-8", newline="\n")
    assert read_settings(tmp_path / "config.toml")["data"] == name


def test_a_folder_whose_name_is_no_text_is_refused_in_a_line(tmp_path: Path) -> None:
    name = os.fsdecode(b"caf\xe9")
    folder_of(tmp_path / name, {"a": 6, "b": 6}, (8, 8, 3))
    done = dos(tmp_path, "train", name)
    assert done.returncode == 1
    assert (
        "data must be text that can be written down, found bytes that are no UTF-8" in done.stderr
    )
