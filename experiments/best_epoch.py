"""How much would it add to report the best epoch instead of the last? The code of LDAM does.

    python experiments/best_epoch.py DATA OUT.jsonl --imbalance step:100 --partners la ldam

Partners of `modern.py`, trained from the first epoch to the last and judged after each. The best of
them is chosen by the images that it is judged by: to know what that adds, never for a result.
One JSON line per training, then a table; what OUT has already is not run again.
"""

import argparse
import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from modern import asked, begun, done
from modern_table import percent
from partners import PARTNERS
from recording import kept


def table(lines: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Of trainings of one setting, in per cent; epochs are counted from 1."""
    yield "| | seeds | last epoch | best epoch | which |"
    yield "|---|---|---|---|---|"
    found: dict[str, list[list[float]]] = defaultdict(list)
    for line in lines:
        found[line["form"]].append(line["curve"])
    for form, curves in found.items():
        last, best = percent([one[-1] for one in curves]), percent([max(one) for one in curves])
        which = ", ".join(str(1 + one.index(max(one))) for one in curves)
        yield f"| {form} | {len(curves)} | {last} | {best} | {which} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--partners", nargs="+", choices=PARTNERS, default=list(PARTNERS))
    options = asked(parser)
    search, seeds = begun(options)
    there = done(options.out, search.settings)
    jobs = [(p, s) for p in options.partners for s in seeds if (p, s) not in there]
    for partner, seed, curve in search.curves(jobs):
        line = {"form": partner, "seed": seed, "accuracy": curve[-1], "curve": curve}
        with options.out.open("a") as file:
            file.write(json.dumps({**vars(search.settings), **line}) + "\n")
        print(partner, seed, f"last {curve[-1]:.4f}, best {max(curve):.4f}", flush=True)
    lines = kept(options.out, "curve")
    same = [line for line in lines if vars(search.settings).items() <= line.items()]
    print(*table(same), sep="\n")


if __name__ == "__main__":
    main()
