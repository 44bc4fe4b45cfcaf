"""Damaged files, a few hundred every time: ``make fuzz`` tries as many as are asked for."""

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
