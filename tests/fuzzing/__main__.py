"""``python -m fuzzing N``: N damaged files, shared out over the readers; finds are printed."""

import argparse
import logging
import os
import sys
import tempfile
import time
import warnings
from pathlib import Path

from .campaign import attack
from .readers import READERS


def main() -> int:
    parser = argparse.ArgumentParser(prog="fuzzing", description=__doc__)
    parser.add_argument("inputs", type=int, help="in all")
    parser.add_argument("--first", type=int, default=0, help="number to begin with")
    parser.add_argument("--only", help="the name of one reader")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.getLogger("deep_oversampling").setLevel(logging.CRITICAL)
    os.nice(10)
    readers = [one for one in READERS if given.only in (None, one.name)]
    shares = {
        one.name: given.inputs * one.weight / sum(o.weight for o in readers) for one in readers
    }
    finds, done = 0, 0
    with tempfile.TemporaryDirectory() as folder:
        for reader in readers:
            start = time.perf_counter()
            numbers = range(given.first, given.first + max(1, round(shares[reader.name])))
            found = attack(reader, Path(folder).resolve(), numbers)
            refused = ", ".join(f"{kind} {count}" for kind, count in found.refused.items())
            print(
                f"{reader.name}: {len(numbers)} inputs, {found.read} read, refused: {refused}; "
                f"slowest {found.slowest:.2f} s, all {time.perf_counter() - start:.0f} s",
                flush=True,
            )
            for line in found.finds[:20]:
                print("  FIND", line, flush=True)
            finds, done = finds + len(found.finds), done + len(numbers)
    print(f"{done:,} inputs, {finds} finds")
    return int(finds > 0)


if __name__ == "__main__":
    sys.exit(main())
