"""What is done after a round: lines of JSON, curves for TensorBoard, several things."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from deep_oversampling import InputError, JSONLines, TensorBoard, fit_many, several
from deep_oversampling.history import Round
from toy import blobs, small, train

ONE = Round("multi", 60, 0.5, 0.1, 2.0, {"minority": {"f1": 0.8, "auprc": float("nan")}})


def lines(path: Path) -> list[dict[str, Any]]:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    return [json.loads(line, parse_constant=refuse) for line in path.read_text().splitlines()]


def test_a_line_for_every_round(tmp_path: Path) -> None:
    path = tmp_path / "runs" / "rounds.jsonl"
    history = train(small(), blobs(), rounds=2, validation=blobs(), on_round=JSONLines(path))
    found = lines(path)
    assert [one["round"] for one in found] == [1, 2, 3, 4]
    assert [one["task"] for one in found] == ["single", "single", "multi", "multi"]
    for line, r in zip(found, history.rounds, strict=True):
        assert line["classifier_loss"] == r.classifier_loss
        assert line["minority/f1"] == r.validation["minority"]["f1"]


def test_a_line_is_there_when_the_round_is_over(tmp_path: Path) -> None:
    log, seen = JSONLines(tmp_path / "rounds.jsonl"), []
    train(small(), blobs(), on_round=several(log, lambda _: seen.append(len(lines(log.path)))))
    assert seen == [1, 2]


def test_lines_are_added_and_what_is_not_defined_is_null(tmp_path: Path) -> None:
    for _ in range(2):
        JSONLines(tmp_path / "rounds.jsonl")(ONE)
    first, second = lines(tmp_path / "rounds.jsonl")
    assert first == second
    assert (first["minority/f1"], first["minority/auprc"]) == (0.8, None)


def test_lines_are_not_written_into_a_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="JSONLines must be given a file to write, found a folder"):
        JSONLines(tmp_path)


def test_several_are_called_in_order_with_what_there_is() -> None:
    seen: list[Any] = []
    both = several(lambda e, _: seen.append(("a", e)), lambda e, _: seen.append(("b", e)))
    fit_many([small()], blobs(), rounds=1, initial_rounds=0, on_round=both, device="cpu")
    assert seen == [("a", 0), ("b", 0)]


def test_tensorboard_gets_every_number(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="pip install 'deep-oversampling[tensorboard]'")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    curves = TensorBoard(tmp_path)
    history = train(small(), blobs(), rounds=2, validation=blobs(), on_round=curves)
    written = EventAccumulator(str(tmp_path)).Reload()  # before it is closed
    assert set(written.Tags()["scalars"]) == set(history.rounds[0].scalars())
    losses = written.Scalars("classifier_loss")
    assert [one.step for one in losses] == [1, 2, 3, 4]
    expected = [r.classifier_loss for r in history.rounds]
    assert [one.value for one in losses] == pytest.approx(expected)
    curves.close()


def test_without_tensorboard_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    for name in [one for one in sys.modules if one.startswith("torch.utils.tensorboard")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(InputError, match=r"pip install 'deep-oversampling\[tensorboard\]'"):
        TensorBoard(tmp_path)
