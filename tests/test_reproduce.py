"""``dos reproduce``, as a user types it; what is trained is made up."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from deep_oversampling import InputError, cli
from deep_oversampling.paper.experiments import TABLES
from deep_oversampling.paper.settings import QUICK, SETS
from deep_oversampling.paper.store import read_stored, trials_file
from deep_oversampling.rivals.trials import append_header, read_headers, read_trials
from fuzzing import whole
from paper_sets import Shelf, Trainings, shelf, trainings

__all__ = ["shelf", "trainings"]  # fixtures


def run(*arguments: str, code: int = 0) -> str:
    """What is printed, notes and errors as well."""
    result = CliRunner().invoke(cli.app, ["reproduce", *arguments])
    assert result.exit_code == code, result.output + str(result.exception)
    return result.output


def page(folder: str = "results") -> str:
    return Path(folder, "results.md").read_text(encoding="utf-8")


# trials


def test_shared_settings_are_run_once(trainings: Trainings, shelf: Shelf) -> None:
    run("--trials", "1")
    done = [(setting, method) for setting, method, _ in trainings.done]
    shared = [one for one in done if one == ("MNIST drop:4:0.99", "cnn")]
    assert len(shared) == 1  # of reduction, over-k and runtime
    assert sorted(shelf.taken) == sorted(SETS)  # each set is loaded once


def test_every_table_is_made_by_default(trainings: Trainings) -> None:
    run("--trials", "2")
    names = {one.name for table in TABLES.values() for one in table.experiments}
    assert {path.stem for path in Path("results/trials").iterdir()} == names
    assert "not run yet" not in page()
    assert all(
        len(read_trials(Path("results/trials", f"{one.name}.jsonl"))) >= 2 * len(one.methods)
        for table in TABLES.values()
        for one in table.experiments
    )


def test_finished_trials_are_not_repeated(trainings: Trainings) -> None:
    run("runtime", "--trials", "2")
    first = list(trainings.done)
    assert len(first) == 3 * 3 * 2  # sets, methods, seeds
    before = page()
    run("runtime", "--trials", "2")
    assert trainings.done == first
    assert page() == before
    run("runtime", "--trials", "3")
    assert {seed for _, _, seed in trainings.done[len(first) :]} == {2}


def test_a_killed_run_goes_on(trainings: Trainings) -> None:
    trainings.stop_after = 4
    stopped = CliRunner().invoke(cli.app, ["reproduce", "runtime", "--trials", "2"])
    assert stopped.exit_code == 130
    told = "dos: stopped; what is finished is in results; the same command goes on there"
    assert stopped.stderr.splitlines()[-1] == told
    trainings.stop_after = None
    run("runtime", "--trials", "2")
    assert len(trainings.done) == len(set(trainings.done)) == 3 * 3 * 2


def test_settings_of_the_trials_are_those_of_the_paper(trainings: Trainings) -> None:
    run("balanced", "--trials", "1")
    one = next(s for s in trainings.settings if s.data == "CIFAR10" and s.k == 10)
    assert (one.model, one.batch_size, one.rounds) == ("C20-C50-F500-F120", 50, 4)
    assert (one.plan, one.imbalance) == ("uniform", "none")


def test_training_images_are_ten_fold_for_the_baselines(trainings: Trainings, shelf: Shelf) -> None:
    run("baseline", "--trials", "1")
    plans = {one.imbalance: one.plan for one in trainings.settings}
    assert plans == {"none": "uniform", "gaussian:0.2": "by counts", "gaussian:0.4": "by counts"}
    assert {one.data for one in trainings.settings} == {"MNIST-BACK-ROTATION, ten-fold"}
    assert shelf.taken == ["mnist-back-rotation"]


def test_what_is_left_out_is_tried_again_but_written_once(trainings: Trainings) -> None:
    trainings.left_out = {"ros": "no luck"}
    for _ in range(2):
        told = run("runtime", "--trials", "1")
        assert told.count("runtime: mnist-drop-4-0.99: ros is left out: no luck") == 1
    assert [method for _, method, _ in trainings.done].count("ros") == 2 * 3
    path = Path("results/trials/mnist-drop-4-0.99.jsonl")
    assert path.read_text().count("no luck") == 1
    assert "`mnist-drop-4-0.99`, ros: left out of 1 of 1 trials: no luck" in page()
    trainings.left_out = {}
    run("runtime", "--trials", "1")
    assert "no luck" not in page()


# files


def test_files_begin_with_a_header(trainings: Trainings) -> None:
    run("runtime", "--trials", "1")
    path = Path("results/trials/mnist-drop-4-0.99.jsonl")
    header = json.loads(path.read_text().splitlines()[0])["header"]
    assert header["quick"] is False
    assert header["setting"]["imbalance"] == "drop:4:0.99"
    assert {"torch", "hardware"} <= set(header["where"])
    assert len(header["date"]) == 10
    run("runtime", "--trials", "2")
    assert len(read_headers(path)) == 1  # the same day and place


def test_a_broken_line_is_named_and_its_trial_run_again(trainings: Trainings) -> None:
    run("runtime", "--trials", "1")
    path = Path("results/trials/mnist-drop-4-0.99.jsonl")
    lines = path.read_text().splitlines(keepends=True)
    path.write_text(lines[0] + lines[1][:60] + "\n" + "".join(lines[2:]))
    trainings.done.clear()
    said = run("runtime", "--trials", "1")
    assert f"{path}, line 2 is broken and set aside" in said
    assert len(trainings.done) == 1
    assert path.read_text().splitlines()[1] == lines[1][:60]  # it stays
    said = run("--render")  # which runs nothing again
    assert said.count(f"{path}, line 2 is broken and set aside") == 1


def test_other_settings_are_refused_and_the_rest_goes_on(
    trainings: Trainings, shelf: Shelf
) -> None:
    run("runtime", "--trials", "1")
    path = Path("results/trials/svhn-drop-4-0.99.jsonl")
    path.write_text(path.read_text().replace('"rounds": 3', '"rounds": 7'))
    trainings.done.clear()
    said = run("runtime", "--trials", "2", code=1)
    assert "runtime, svhn-drop-4-0.99: " in said
    assert "rounds 7 instead of 3" in said
    assert len(trainings.done) == 2 * 3  # the other two sets, one more seed


def test_other_data_under_the_same_name_is_refused(trainings: Trainings, shelf: Shelf) -> None:
    run("classwise", "--trials", "1")
    shelf.of_each = 21
    assert "instead of" in run("classwise", "--trials", "1", code=1)


def test_a_file_of_two_settings_stops_the_page_but_not_the_trials(trainings: Trainings) -> None:
    run("runtime", "--trials", "1")
    path = Path("results/trials/mnist-drop-4-0.99.jsonl")
    last = path.read_text().splitlines()[-1]
    path.write_text(path.read_text() + last.replace('"k": 5', '"k": 7') + "\n")
    said = run("runtime", "--trials", "2", code=1)
    assert "runtime, mnist-drop-4-0.99; page: " in said  # a reason for both
    assert said.count("k 7 instead of 5") == 1
    assert len(read_trials(Path("results/trials/svhn-drop-4-0.99.jsonl"))) == 2 * 3


def test_printed_numbers_are_beside_the_trials(trainings: Trainings) -> None:
    run("runtime", "--trials", "1")
    assert Path("results/printed/reduction.csv").read_text().startswith("data,")


# data that is missing


def test_missing_data_is_named_and_the_rest_goes_on(trainings: Trainings, shelf: Shelf) -> None:
    shelf.missing = ("stl10", "mnist")
    said = run("balanced", "runtime", "--trials", "1", code=1)
    assert said.count("the set must have the file stl10/train.bin") == 1
    assert "balanced, stl10-none-k10: " in said
    assert "runtime, mnist-drop-4-0.99: " in said
    done = {setting for setting, _, _ in trainings.done}
    assert done == {
        "SVHN none",
        "CIFAR10 none",
        "MNIST-BACK-ROTATION drop:4:0.99",
        "SVHN drop:4:0.99",
    }
    assert "`stl10-none`: not run yet." in page()


def test_data_sets_are_those_that_were_loaded(trainings: Trainings, shelf: Shelf) -> None:
    shelf.missing = ("stl10",)
    run("datasets", code=1)
    assert trainings.done == []
    assert "| SVHN | 10 | 200 | 30 | 3 × 32 × 32 | C6-C16-F400-F120 | 60/3 |" in page()
    assert "| STL-10 | – |" in page()


# wrong use


def test_unknown_tables_are_listed(trainings: Trainings) -> None:
    said = run("reductions", code=2)
    assert "classwise" in said
    assert "runtime" in said
    assert not Path("results").exists()


# quick


def test_quick_is_small_and_apart(trainings: Trainings, shelf: Shelf) -> None:
    shelf.of_each = 500
    run("classwise", "runtime", "--quick")
    assert not Path("results").exists()
    assert "A quick look, not a result" in page("runs/quick")
    assert "not comparable" in page("runs/quick")
    assert {seed for _, _, seed in trainings.done} == set(range(QUICK.trials))
    assert {one.data for one in trainings.settings} == {
        "MNIST, a part",
        "MNIST-BACK-ROTATION, a part",
        "SVHN, a part",
    }
    run("classwise", "--trials", "1")
    assert "quick" not in page()


def test_quick_trials_are_never_mixed_with_others(trainings: Trainings, shelf: Shelf) -> None:
    shelf.of_each = 500
    run("classwise", "--quick", "--out", "here")
    assert "a part' instead of 'MNIST-BACK-ROTATION'" in run("classwise", "--out", "here", code=1)


# the page


def test_render_needs_no_data_and_is_the_same_bytes(trainings: Trainings, shelf: Shelf) -> None:
    run("--trials", "2")
    first, taken, done = page(), len(shelf.taken), len(trainings.done)
    shelf.missing = tuple(SETS)
    Path("results/results.md").unlink()
    run("--render")
    assert page() == first
    run("--render", "--page", "docs/results.md")
    there = Path("docs/results.md").read_text()
    assert there == first.replace("`./trials`", "`../results/trials`")
    assert (len(shelf.taken), len(trainings.done)) == (taken, done)


def test_page_is_made_after_every_table(trainings: Trainings) -> None:
    trainings.stop_after = 2 * 2 * 1 + 1  # classwise and a little of the next
    CliRunner().invoke(cli.app, ["reproduce", "classwise", "reduction", "--trials", "1"])
    assert "| minority | .500" in page()


def test_a_folder_without_trials_leaves_the_page_alone(trainings: Trainings) -> None:
    Path("page.md").write_text("as it was")
    result = CliRunner().invoke(cli.app, ["reproduce", "--render", "--page", "page.md"])
    assert isinstance(result.exception, InputError)
    assert "results must be a folder of results, found no trials in it" in str(result.exception)
    assert Path("page.md").read_text() == "as it was"


# results from a stranger

LOOK = "figures/mnist-drop-4-0.99.json"


@pytest.mark.parametrize(
    ("file", "change"),
    [
        ("datasets.json", lambda one: one.update(unknown=one["mnist"])),
        (LOOK, lambda one: one["methods"].pop("ros")),
        (LOOK, lambda one: one["methods"].update(x=one["methods"]["dos"])),
        (LOOK, lambda one: one["methods"]["dos"].update(curve=[])),
        (LOOK, lambda one: one["labels"].pop()),
    ],
    ids=["unknown set", "method left out", "unknown method", "empty curve", "label left out"],
)
def test_what_no_page_can_be_made_of_is_refused(
    file: str, change: Callable[[Any], object], tmp_path: Path
) -> None:
    stored = whole.results().items()
    (content,) = [json.loads(found) for name, found in stored if name[:4] == file[:4]]
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text(json.dumps(content))
    read_stored(tmp_path)
    change(content)
    (tmp_path / file).write_text(json.dumps(content))
    with pytest.raises(InputError, match="must be a file that dos reproduce wrote, found: values"):
        read_stored(tmp_path)


@pytest.mark.parametrize("header", [{}, {"where": 5, "date": ""}, {"where": {"a": 1}, "date": ""}])
def test_headers_say_where_and_when(header: dict[str, object], tmp_path: Path) -> None:
    path = trials_file(tmp_path, "mnist-drop-4-0.99")
    append_header(path, header)
    with pytest.raises(InputError, match="must have headers that say where and when"):
        read_stored(tmp_path)
