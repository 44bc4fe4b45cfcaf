"""Markdown tables of stored trials: mean ± sd of minority and majority F1.

python experiments/tables.py FILE.jsonl --rows set method limit --column lr
"""

import argparse
import json
from collections import defaultdict
from pathlib import Path

import numpy as np


def holds(line: dict[str, object], condition: str) -> bool:
    """``name=value`` (null for none) or ``name<number``."""
    name, sign, value = condition.partition("<") if "<" in condition else condition.partition("=")
    found = line.get(name)
    if sign == "<":
        return isinstance(found, int | float) and found < float(value)
    return found in (value, None if value == "null" else _number(value))


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path, nargs="+")
    parser.add_argument("--rows", nargs="+", default=["set", "method"])
    parser.add_argument("--column", nargs="+", default=[])
    parser.add_argument("--measure", default="f1")
    parser.add_argument("--only", nargs="*", default=[], help="such as limit=0.3 seed<3")
    parser.add_argument("--means", action="store_true", help="without the deviations")
    options = parser.parse_args()
    cells, columns = defaultdict(lambda: defaultdict(list)), []
    for line in (json.loads(text) for file in options.file for text in file.open()):
        if "header" in line or not all(holds(line, condition) for condition in options.only):
            continue
        column = ", ".join(str(line.get(name)) for name in options.column) or options.measure
        columns = columns if column in columns else [*columns, column]
        groups = [group for group in ("minority", "majority") if group in line]  # or all alike
        values = [line[group][options.measure] for group in groups]
        cells[tuple(str(line.get(name, "")) for name in options.rows)][column].append(values)
    print(" | ".join(["", *options.rows, *columns, ""]).strip())
    print("|" + "---|" * (len(options.rows) + len(columns)))
    for row, found in cells.items():
        texts = []
        for column in columns:
            values = np.array(found.get(column) or [[np.nan, np.nan]])
            mean = values.mean(0)
            sd = values.std(0, ddof=1) if len(values) > 1 else np.zeros_like(mean)
            pairs = zip(mean, sd, strict=True)
            shown = [f"{m:.3f}" + ("" if options.means else f" ± {s:.3f}") for m, s in pairs]
            texts.append(" / ".join(shown).replace("0.", ".") if column in found else "–")
        print("| " + " | ".join([*row, *texts]) + " |")


if __name__ == "__main__":
    main()
