"""Damaged files, a few hundred every time: ``make fuzz`` tries as many as are asked for."""

import subprocess
import sys
from pathlib import Path

import pytest

from fuzzing.campaign import attack
from fuzzing.readers import READERS, Reader

INPUTS = 40  # for each reader


@pytest.mark.filterwarnings("ignore")  # Pillow and pyarrow remark on odd files
@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_damaged_files_are_read_or_refused_in_words(reader: Reader, tmp_path: Path) -> None:
    found = attack(reader, tmp_path.resolve(), range(INPUTS))
    assert not found.finds
    assert found.read + sum(found.refused.values()) == INPUTS


@pytest.mark.slow
def test_the_long_run_begins_and_ends() -> None:
    """One reader after the other, as ``make fuzz``, with an input or two for each."""
    done = subprocess.run(
        [sys.executable, "-m", "fuzzing", "30"],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    *lines, last = done.stdout.splitlines()
    assert [line.split(":")[0] for line in lines] == [reader.name for reader in READERS]
    assert last.endswith("inputs, 0 finds")
