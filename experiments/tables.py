"""Markdown tables of stored trials: mean ± sd of minority and majority F1.

python experiments/tables.py FILE.jsonl --rows set method limit --column lr
"""

import argparse
import json
from collections import defaultdict
from pathlib import Path

import numpy as np


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path, nargs="+")
    parser.add_argument("--rows", nargs="+", default=["set", "method"])
    parser.add_argument("--column")
    parser.add_argument("--measure", default="f1")
    options = parser.parse_args()
    cells, columns = defaultdict(lambda: defaultdict(list)), []
    for line in (json.loads(text) for file in options.file for text in file.open()):
        if "header" in line:
            continue
        column = str(line.get(options.column, options.measure))
        columns = columns if column in columns else [*columns, column]
        values = [line[group][options.measure] for group in ("minority", "majority")]
        cells[tuple(str(line.get(name, "")) for name in options.rows)][column].append(values)
    print(" | ".join(["", *options.rows, *columns, ""]).strip())
    print("|" + "---|" * (len(options.rows) + len(columns)))
    for row, found in cells.items():
        texts = []
        for column in columns:
            values = np.array(found.get(column, np.empty((0, 2))))
            mean, sd = values.mean(0), values.std(0, ddof=1) if len(values) > 1 else (0, 0)
            pairs = zip(mean, sd, strict=True)
            texts.append(" / ".join(f"{m:.3f} ± {s:.3f}" for m, s in pairs))
            texts[-1] += f" ({len(values)})"
        print("| " + " | ".join([*row, *texts]) + " |")


if __name__ == "__main__":
    main()
