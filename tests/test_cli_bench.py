"""``dos bench``, as a user types it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from commands import called, refused
from deep_oversampling import InputError, __version__, bench
from deep_oversampling.bench import records, sizes
from deep_oversampling.bench.records import Note, figure
from deep_oversampling.cli.bench import _print
from test_bench import TINY


@pytest.fixture(autouse=True)
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizes, "sizes_for", lambda device, quick: TINY)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)


def run(*arguments: str | Path) -> str:
    result = called("bench", *arguments, "--device", "cpu")
    assert result.exit_code == 0, result.output
    return result.stdout


def test_json_is_one_object_with_a_header() -> None:
    found = json.loads(run("search", "--quick", "--json"), parse_constant=pytest.fail)
    assert list(found) == ["header", "records", "notes"]
    assert found["header"]["quick"] is True
    assert found["header"]["hardware"]["device"] == "cpu"
    assert found["header"]["hardware"]["threads"] == 1
    assert found["header"]["versions"]["deep-oversampling"] == __version__
    assert found["header"]["versions"]["torch"] == torch.__version__
    assert {record["part"] for record in found["records"]} == {"search"}
    fields = ["part", "what", "setting", "value", "unit", "ratio", "ratio_to"]
    assert all(list(record) == fields for record in found["records"])


def test_table_shows_what_the_file_says() -> None:
    table = run("search", "fit", "--out", "speed.json")
    assert max(map(len, table.splitlines())) <= 80
    found = json.loads(Path("speed.json").read_text())
    assert {record["part"] for record in found["records"]} == {"search", "fit"}
    assert "search: d = 120, k = 10" in table  # what all rows share, said once
    for record in found["records"]:
        assert f"{record['value']:.3g}" in table
        if record["ratio"] is not None:
            assert f"{record['ratio']:.2f}" in table
    assert table.index("ratio") < table.index("value")
    assert "figures: speed.json" in table


@pytest.fixture
def made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts that say how many threads there are."""

    def part(name: str):
        return lambda *_: iter([figure(name, "it", {}, torch.get_num_threads(), "threads")])

    for name in bench.PARTS:
        monkeypatch.setitem(bench.PARTS, name, part(name))


def test_all_parts_are_run_by_default(made_up: None) -> None:
    found = json.loads(run("--json"))
    assert [record["part"] for record in found["records"]] == list(bench.PARTS)


@pytest.mark.parametrize(("options", "threads"), [([], 1), (["--threads", "2"], 2)])
def test_threads_are_those_asked_for_and_said(
    made_up: None, options: list[str], threads: int
) -> None:
    found = json.loads(run("fit", "--json", *options))
    assert found["header"]["hardware"]["threads"] == threads
    assert [record["value"] for record in found["records"]] == [threads]
    assert f", {threads} thread" in run("fit", *options)


def test_a_stopped_run_keeps_the_parts_that_were_done(monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(device, sizes):
        raise KeyboardInterrupt

    monkeypatch.setitem(bench.PARTS, "cell", stopped)
    result = called("bench", "search", "cell", "--out", "new/speed.json", "--device", "cpu")
    assert result.exit_code != 0
    assert json.loads(Path("new/speed.json").read_text())["records"]
    assert [path.name for path in Path("new").iterdir()] == ["speed.json"]


def test_a_file_that_cannot_be_finished_leaves_the_old_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def full(self: Path, text: str, **options: object) -> int:
        self.touch()
        raise OSError("No space left on device")

    path = Path("speed.json")
    path.write_text("old")
    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(InputError, match="No space left"):
        records.write(path, "new")
    assert path.read_text() == "old"
    assert list(Path().iterdir()) == [path]


@pytest.mark.parametrize("out", ["folder", "file/speed.json"])
def test_a_file_that_cannot_be_written_is_refused_before_measuring(
    out: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("folder").mkdir()
    Path("file").touch()
    monkeypatch.setitem(bench.PARTS, "search", pytest.fail)
    assert refused("bench", "search", "--out", out).startswith(
        f"--out must name a file that can be written, found {out!r}: "
    )


def test_a_device_that_is_not_there_is_refused() -> None:
    assert "device must be one that this machine has" in refused(
        "bench", "search", "--device", "gpu9"
    )


def test_wide_figures_fit_and_notes_are_said(capsys: pytest.CaptureFixture[str]) -> None:
    setting = {"network": "ResNet-32", "mode": "compile, bf16", "E": 40}
    plain = figure("steps", "plain step", {"network": "LeNet", "E": 1}, 123456.7, "µs/step")
    wide = figure("steps", "DOS step", setting, 1234567.8, "µs/step/trial", to=plain)
    _print("steps", [Note("steps", "[no] compiler " * 8), plain, wide])
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 80
    assert "1,235,000" in text
    assert "10.00" in text
    assert "steps: [no] compiler" in text


def test_a_part_without_a_figure_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    _print("cell", [Note("cell", "out of memory")])
    assert capsys.readouterr().out.strip() == "cell: out of memory"


# exit codes


def test_an_unknown_part_is_one_line_and_exit_code_1() -> None:
    command = [sys.executable, "-m", "deep_oversampling", "bench", "step", "--quick"]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 1
    assert result.stdout == ""
    assert result.stderr == (
        "dos: parts must be some of steps, fit, search, evaluation, scaling, cell, found 'step'; "
        "did you mean steps?\n"
    )


@pytest.mark.parametrize("arguments", [["--threads", "0"], ["--threads", "x"], ["--fast"]])
def test_wrong_use_is_exit_code_2(arguments: list[str]) -> None:
    result = called("bench", *arguments)
    assert result.exit_code == 2
    assert "Usage" in result.stderr


def test_help_names_the_parts() -> None:
    text = " ".join(called("bench", "--help").stdout.split())
    for name in bench.PARTS:
        assert name in text
