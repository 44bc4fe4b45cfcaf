"""What ``dos train`` shows while it trains, on a terminal of any width."""

import io
import re
from pathlib import Path

import pytest
from rich.console import Console

from deep_oversampling.cli import train_tables
from deep_oversampling.data import load
from deep_oversampling.runs import Settings, Task, prepare, train
from deep_oversampling.runs.unfinished import begin
from picture_files import folder_of


@pytest.fixture
def task(tmp_path: Path) -> Task:
    folder = folder_of(tmp_path / "fruit", {"apple": 30, "pear": 20, "plum": 8}, (12, 12, 3))
    settings = Settings(str(folder), rounds=1, batch_size=8, device="cpu")
    return prepare(settings, load(folder, cache=tmp_path / "cache"))


def test_steps_are_told_between_rounds(task: Task, tmp_path: Path) -> None:
    told: list[tuple[str, int, int, int]] = []
    with begin(tmp_path / "run", "fruit", task) as unfinished:
        train(
            task,
            lambda method, t, _: told.append((method, t, 0, 0)),  # the round is done
            unfinished=unfinished,
            on_steps=lambda *steps: told.append(steps),
        )
    m, presented = len(task.train), task.presented
    expected: list[tuple[str, int, int, int]] = []
    # the plain round of DOS is the first of the baseline
    for method, t, rows in (("dos", 1, m), ("dos", 2, presented), ("plain", 2, m)):
        steps = -(-rows // 8)
        some = [*range(4, steps, 4), steps]  # four at once on a CPU
        expected += [(method, t, step, steps) for step in some] + [(method, t, 0, 0)]
    assert told == expected


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_nothing_of_the_line_is_cut(
    task: Task, tmp_path: Path, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = io.StringIO()
    terminal = Console(file=screen, force_terminal=True, width=columns, color_system=None)
    monkeypatch.setattr(train_tables, "Console", lambda **_: terminal)
    with (
        begin(tmp_path / "run", "fruit", task) as unfinished,
        train_tables.Live(task) as live,
    ):
        show = live._progress.refresh  # which a thread does else, ten times a second

        def on_steps(method: str, t: int, step: int, steps: int) -> None:
            live.on_steps(method, t, step, steps)
            show()

        train(task, live.on_round, unfinished=unfinished, on_steps=on_steps)
    said = " ".join(re.sub(r"\x1b\[[^a-zA-Z]*[a-zA-Z]|[━╸╺]", " ", screen.getvalue()).split())
    assert "…" not in said
    steps = -(-task.presented // 8)
    number = r"\d?\.\d+"
    assert re.search(
        rf"DOS 2/2, step {steps}/{steps}; \d+ s left DOS 1/2: ℓ_g {number}, "
        rf"minority F1 {number}, majority F1 {number}",
        said,
    )
