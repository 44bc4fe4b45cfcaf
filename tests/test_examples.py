"""The examples run in seconds, and show what they say."""

import difflib
from pathlib import Path

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
