"""The examples run in seconds, and show what they say."""

import difflib
import importlib
from pathlib import Path

import pytest

import dos_loop
import plain_loop

EXAMPLES = Path(plain_loop.__file__).parent


def test_dos_adds_a_handful_of_lines_to_a_loop() -> None:
    plain, dos = (
        (EXAMPLES / name).read_text().splitlines() for name in ("plain_loop.py", "dos_loop.py")
    )
    changed = [line for line in difflib.ndiff(plain, dos) if line.startswith("+ ") and line[2:]]
    assert len(changed) <= 12


def test_those_lines_help_the_rare_digits_and_cost_the_others_nothing() -> None:
    plain, dos = plain_loop.main(), dos_loop.main()
    assert dos["minority"] > plain["minority"] + 0.05  # 0.14 over five seeds; they differ by 0.05
    assert dos["majority"] > plain["majority"] - 0.02


@pytest.mark.slow
@pytest.mark.parametrize("name", ["images", "tabular", "time_series", "text"])
def test_over_sampling_helps_the_rare_classes(name: str) -> None:
    found = importlib.import_module(name).main(range(3))  # one alone hangs on a CPU's rounding
    means = {method: sum(values) / len(values) for method, values in found.items()}
    assert means["DOS"] > means["plain"]
    assert means["random over-sampling"] > means["plain"]


# Recipes for other frameworks: whatever they warn of is theirs.


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [pytest.param("lightning", marks=pytest.mark.slow), "skorch"])
def test_a_recipe_does_what_the_loop_does(name: str) -> None:
    pytest.importorskip(name, reason="pip install 'deep-oversampling[examples]'")
    found = importlib.import_module(f"{name}_dos").main()
    assert found["minority"] > 0.78  # the loop of one's own: 0.72 plain, 0.86 with DOS
    assert found["majority"] > 0.92


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_transformer_gains_from_rounds_of_dos() -> None:
    for name in ("transformers", "accelerate"):
        pytest.importorskip(name, reason="pip install 'deep-oversampling[examples]'")
    found = importlib.import_module("hugging_face_dos").main()
    assert found["plain, then DOS"] > found["plain"]


def test_every_example_is_told_of() -> None:
    page = (EXAMPLES.parent / "docs" / "examples.md").read_text()
    for path in EXAMPLES.glob("*.py"):
        assert f"examples/{path.name}" in page, f"{path.name} is not in docs/examples.md"
