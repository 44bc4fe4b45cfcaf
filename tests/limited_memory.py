"""Programs that limit their own memory, each in a process of its own."""

import os
import subprocess
import sys


def printed_by(program: str, *arguments: object) -> str:
    """What it says when all goes well; one thread, and memory that is freed goes back at once."""
    result = subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env={
            **os.environ,
            "OMP_NUM_THREADS": "1",
            # the program's needs are tested, not malloc's habits
            "MALLOC_ARENA_MAX": "1",
            "MALLOC_MMAP_THRESHOLD_": "1048576",
        },
    )
    assert result.returncode == 0, result.stderr
    return result.stdout
