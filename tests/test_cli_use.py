"""``dos evaluate``, ``predict``, ``info``, ``export`` and ``report`` on a run, as a user types."""

import csv
import io
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from commands import called, refused
from deep_oversampling import cli, load_weights
from deep_oversampling.runs import Run
from picture_files import folder_of, save

COUNTS = {"apple": 40, "pear": 30, "plum": 10}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """fruit/, pictures to train on, and run/, trained until it knows them."""
    place = tmp_path_factory.mktemp("made")
    folder_of(place / "fruit", COUNTS, (16, 16, 3))
    options = ["--rounds", "12", "--device", "cpu", "--learning-rate", "0.03", "--cache", place]
    invoke("train", place / "fruit", "--out", place / "run", *options)
    return place


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOS_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


def invoke(*arguments: str | Path | int, code: int = 0) -> Result:
    result = called(*arguments)
    assert result.exit_code == code, result.output + repr(result.exception)
    return result


def test_evaluate_on_its_own_data_means_what_was_held_out(made: Path) -> None:
    found = json.loads(invoke("evaluate", made / "run", made / "fruit", "--json").stdout)
    assert found["split"] == "validation, as the run held it out"
    assert found["samples"] == 16
    assert found["groups"] == Run.open(made / "run").record.measures["dos"]
    assert found["baseline"]["groups"] == Run.open(made / "run").record.measures["plain"]
    trained = invoke("evaluate", made / "run", made / "fruit", "--split", "train").stdout
    assert " plain " in trained
    assert "plain F1" in trained
    assert "train, as the run held it out: 64 samples" in trained


def test_evaluate_matches_classes_by_name(made: Path, tmp_path: Path) -> None:
    for i in range(3):
        save(tmp_path / "new" / "pear" / f"{i}.png", 40, (20, 16, 3), seed=i)
        save(tmp_path / "new" / "plum" / f"{i}.png", 80, (20, 16, 3), seed=i)
    found = json.loads(invoke("evaluate", made / "run", "new", "--json").stdout)
    assert found["split"] == "all samples"
    assert [found["classes"][name]["samples"] for name in COUNTS] == [0, 3, 3]
    assert found["classes"]["apple"]["recall"] is None
    assert found["classes"]["pear"]["recall"] == 1.0
    table = invoke("evaluate", made / "run", "new").stdout
    assert "new, all samples: 6 samples" in table
    assert "plum" in table


def test_evaluate_refuses_labels_it_does_not_know(made: Path, tmp_path: Path) -> None:
    folder_of(tmp_path / "new", {"apple": 2, "quince": 2}, (16, 16, 3))
    assert "found 'quince'" in refused("evaluate", made / "run", "new")
    folder_of(tmp_path / "two", {"apple": 2, "pear": 2}, (16, 16, 3))
    assert "has (train), found 'test'" in refused(
        "evaluate", made / "run", "two", "--split", "test"
    )
    invoke("evaluate", made / "run", "two", "--split", "best", code=2)


def test_evaluate_takes_only_samples_like_those_trained_on(made: Path, tmp_path: Path) -> None:
    np.savez(
        tmp_path / "a.npz", x=np.zeros((4, 5), np.float32), y=["apple", "apple", "pear", "pear"]
    )
    assert "samples must be as those trained on, (3, 16, 16)" in refused(
        "evaluate", made / "run", "a.npz"
    )


def test_predict_new_pictures(made: Path, tmp_path: Path) -> None:
    for name, value in (("a", 0), ("b", 40), ("deep/c", 80)):
        save(tmp_path / "new" / f"{name}.png", value, (30, 20, 3), seed=99)
    said = invoke("predict", made / "run", "new", "--csv").stdout
    rows = list(csv.DictReader(io.StringIO(said)))
    assert [(Path(r["file"]).name, r["class"]) for r in rows] == [
        ("a.png", "apple"),
        ("b.png", "pear"),
        ("c.png", "plum"),
    ]
    assert all(0 < float(r["probability"]) <= 1 for r in rows)
    lines = invoke("predict", made / "run", "new/b.png", "--top", 2).stdout.splitlines()
    assert lines[0].startswith("new/b.png\tpear ")
    assert lines[0].count("\t") == 2


def test_predict_names_what_it_cannot_read_and_goes_on(made: Path, tmp_path: Path) -> None:
    good = save(tmp_path / "good.png", 40, (16, 16, 3))
    (tmp_path / "bad.png").write_bytes(b"no")
    result = invoke("predict", made / "run", "bad.png", "gone.png", good, "--json", code=1)
    found = json.loads(result.stdout)
    assert [Path(one["file"]).name for one in found["predictions"]] == ["good.png"]
    assert [one["file"] for one in found["skipped"]] == ["bad.png", "gone.png"]
    assert "skipped bad.png: it is no picture" in result.stderr
    assert "skipped gone.png: No such file" in result.stderr


def test_predict_without_any_picture(made: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert "found none" in invoke("predict", made / "run", "empty", code=1).stderr
    invoke("predict", made / "run", "empty", "--csv", "--json", code=2)


def test_predict_writes_embeddings_and_raw_probabilities(made: Path, tmp_path: Path) -> None:
    save(tmp_path / "a.png", 40, (16, 16, 3))
    options = ("predict", made / "run", "a.png", "a.png", "--top", 3, "--json")
    calibrated = json.loads(invoke(*options, "--embeddings", "v.npy").stdout)
    assert np.load("v.npy").shape == (2, 120)
    invoke(*options, "--embeddings", "v.npz", code=2)
    assert not Path("v.npz").exists()
    raw = json.loads(invoke(*options, "--raw").stdout)
    p, q = (
        {c["class"]: c["probability"] for c in one["predictions"][0]["classes"]}
        for one in (calibrated, raw)
    )
    T = Run.open(made / "run").record.temperature
    scaled = np.array([q[name] for name in COUNTS]) ** (1 / T)
    assert [p[name] for name in COUNTS] == pytest.approx(scaled / scaled.sum(), abs=1e-4)


def test_info_says_what_it_is(made: Path) -> None:
    said = invoke("info", made / "run").stdout
    for text in ("finished", "3: apple, pear, plum", "lenet", "temperature", "precision"):
        assert text in said
    assert json.loads(invoke("info", made / "run", "--json").stdout)["model"] == "lenet"


def test_info_tells_the_plan_without_a_config_too(made: Path, tmp_path: Path) -> None:
    shutil.copytree(made / "run", tmp_path / "copy")
    told = [line for line in invoke("info", "copy").stdout.splitlines() if "plan:" in line]
    planned = "plan:        k = 5, r = 1 to 4"
    assert told == [f"{planned}, neighbours once classes are known"]  # which its config says
    config = tmp_path / "copy" / "config.toml"
    config.write_text("rounds = [")
    assert planned in invoke("info", "copy").stdout.splitlines()
    config.unlink()
    assert planned in invoke("info", "copy").stdout.splitlines()


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_export(made: Path, tmp_path: Path) -> None:
    invoke("export", made / "run", "--format", "torch-export", "--out", "m.pt2")
    said = invoke(
        "export", made / "run", "--format", "safetensors", "--out", "m.safetensors"
    ).stdout
    assert said == "safetensors: m.safetensors\n"
    network = Run.open(made / "run").network(device="cpu")
    load_weights(network, "m.safetensors")
    assert (tmp_path / "m.pt2").stat().st_size > 0
    invoke("export", made / "run", "--format", "pickle", code=2)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_export_to_onnx_answers_as_predict_does(made: Path, tmp_path: Path) -> None:
    pytest.importorskip("onnxscript")
    runtime = pytest.importorskip("onnxruntime")
    invoke("export", made / "run", "--out", "m.onnx")
    picture = save(tmp_path / "a.png", 40, (16, 16, 3))
    found = json.loads(invoke("predict", made / "run", picture, "--top", 3, "--json").stdout)
    expected = {c["class"]: c["probability"] for c in found["predictions"][0]["classes"]}
    from PIL import Image

    x = np.asarray(Image.open(picture)).transpose(2, 0, 1)[None]
    _, p, _ = runtime.InferenceSession("m.onnx").run(None, {"x": x})
    assert p[0] == pytest.approx([expected[name] for name in COUNTS], abs=1e-4)


def test_report_is_written_anew(made: Path, tmp_path: Path) -> None:
    invoke("report", made / "run", "--out", "page.html")
    assert "<" in (tmp_path / "page.html").read_text()


def damaged(made: Path, tmp_path: Path, **changes: object) -> Path:
    """A copy of the run whose run.json says something else."""
    shutil.copytree(made / "run", tmp_path / "copy")
    content = json.loads((tmp_path / "copy" / "run.json").read_text()) | changes
    content = {name: value for name, value in content.items() if value is not None}
    (tmp_path / "copy" / "run.json").write_text(json.dumps(content))
    return tmp_path / "copy"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"version": 2}, "of format version 1, found version 2; use the release"),
        ({"format": "other"}, "found no 'deep_oversampling run'"),
        ({"classes": None}, "found no classes"),
        ({"more": 1}, "found unknown more"),
        ({"temperature": 0}, "temperature = 0 where there must be a number above 0"),
        ({"k": [1, 2]}, "found 3 classes, 2 of k"),
        ({"input_dtype": "load"}, "found input_dtype = 'load'"),
        ({"model": "alexnet"}, "model must be auto or one of"),
        ({"k": [0, 1, 1], "counts": {"train": [1, 2]}}, "counts to train and validate on"),
        ({"input_shape": [3, 10**6, 10**6]}, "at most 268,435,456 values"),
        ({"input_shape": [3, 8000, 8000]}, "weights of this architecture"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_run_is_checked(made: Path, tmp_path: Path, changes: dict, words: str) -> None:
    folder = damaged(made, tmp_path, **changes)
    assert words in refused("predict", folder, "a.png")


def test_an_incomplete_run(made: Path, tmp_path: Path) -> None:
    folder = damaged(made, tmp_path)
    (folder / "model.safetensors").unlink()
    assert "found no model.safetensors" in refused("info", folder)
    (folder / "run.json").write_text("{")
    assert "no JSON" in refused("info", folder)
    (folder / "run.json").unlink()
    said = refused("info", folder)
    assert "run.json cannot be read" in said
    assert said.endswith(f"dos train --config {folder}/config.toml --out {folder}")
    assert "must be a folder" in refused("info", "nowhere")


def test_the_folder_above_a_run_is_no_run(made: Path, tmp_path: Path) -> None:
    damaged(made, tmp_path)
    said = refused("info", tmp_path)
    assert said.endswith(f"name a folder that dos train has filled, such as {tmp_path / 'copy'}")
    (tmp_path / "empty").mkdir()
    assert refused("info", "empty").endswith("name a folder that dos train has filled")


def test_code_that_a_run_names_is_not_run_unasked(made: Path, tmp_path: Path) -> None:
    own = tmp_path / "mine.py"
    own.write_text(
        "from deep_oversampling import lenet\n"
        "open('was-run', 'w').close()\n"
        "def make(shape, n): return lenet(shape, n, 'C4-F20')\n"
    )
    options = ["--rounds", "1", "--device", "cpu", "--no-baseline", "--out", "run"]
    invoke("train", made / "fruit", "--model", "mine.py:make", *options)
    (tmp_path / "was-run").unlink()
    save(tmp_path / "a.png", 40, (16, 16, 3))
    for arguments in (
        ("predict", "run", "a.png"),
        ("export", "run"),
        ("evaluate", "run", "digits"),
        ("train", "--config", "run/config.toml", "--out", "again"),
    ):
        said = refused(*arguments)
        assert "name it again, if you trust it: --model mine.py:make" in said
    assert not (tmp_path / "was-run").exists()
    invoke("predict", "run", "a.png", "--model", "mine.py:make")
    assert (tmp_path / "was-run").exists()


def test_help_has_examples_and_completion_is_there() -> None:
    for command in ("train", "evaluate", "predict", "export"):
        assert f"dos {command} " in invoke(command, "--help").stdout
    assert "--install-completion" in invoke("--help").stdout


def test_help_on_a_narrow_terminal_cuts_no_option() -> None:
    """The columns are asked for when the command starts."""
    narrow = subprocess.run(
        [sys.executable, "-m", "deep_oversampling", "train", "--help"],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"COLUMNS": "40"},
    ).stdout
    wide = CliRunner(env={"COLUMNS": "100"}).invoke(cli.app, ["train", "--help"]).stdout
    names = set(re.findall("--[a-z-]+", wide))
    assert {"--learning-rate", "--no-baseline"} <= names
    assert names <= set(re.findall("--[a-z-]+", narrow))
