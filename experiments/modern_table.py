"""What `modern.py` found, as a Markdown table: mean ± sd, and each form against its partner.

    python experiments/modern_table.py OUT.jsonl …

A form is paired with its partner seed by seed; p is that of a paired t-test, two-sided. Best first.
"""

import argparse
import json
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from deep_oversampling.rivals.summary import cell, compared

SETTING = (
    "imbalance",
    "epochs",
    "batch_size",
    "learning_rate",
    "weight_decay",
    "model",
    "bf16",
    "judge",
)
GROUPS = ("accuracy", "many", "medium", "few", "f1_as_trained")

Line = dict[str, object]


def table(lines: Sequence[Line]) -> Iterator[str]:
    """Of trainings of one setting."""
    found: dict[str, dict[int, Line]] = defaultdict(dict)
    for line in lines:
        found[line["form"]][line["seed"]] = line
    heads = [group.replace("_", " ") for group in GROUPS]
    yield f"| form | seeds | {' | '.join(heads)} | − partner | p |"
    yield "|" + "---|" * (len(GROUPS) + 4)
    means = {form: cell([one["accuracy"] for one in own.values()]) for form, own in found.items()}
    for form in sorted(found, key=lambda name: -means[name].mean):
        own, partner = found[form], found.get(form.partition("+")[0], {})
        both = [s for s in own if s in partner and own is not partner]
        pairs = [(own[seed]["accuracy"], partner[seed]["accuracy"]) for seed in both]
        difference, p = compared(pairs)
        shown = [_percent([one.get(group, math.nan) for one in own.values()]) for group in GROUPS]
        lost = sum(bool(one["lost"]) for one in own.values())
        seeds = f"{len(own)}, {lost} lost" if lost else str(len(own))
        against = "" if math.isnan(difference) else f"{100 * difference:+.2f}"
        chance = "" if math.isnan(p) else f"{p:.3f}"
        yield "| " + " | ".join([form, seeds, *shown, against, chance]) + " |"


def _percent(values: list[float]) -> str:
    found = cell(values)
    if math.isnan(found.mean):
        return "–"
    sd = "" if math.isnan(found.sd) else f" ± {100 * found.sd:.2f}"
    return f"{100 * found.mean:.2f}{sd}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("file", type=Path, nargs="+")
    settings: dict[str, list[Line]] = defaultdict(list)
    for path in parser.parse_args().file:
        for line in map(json.loads, path.read_text().splitlines()):
            if "header" not in line:
                line = {"judge": "removed", **line}  # the first lines do not say it
                told = ", ".join(f"{name} {line[name]}" for name in SETTING)
                settings[told].append(line)
    for told, lines in settings.items():
        print(f"{told}:\n", *table(lines), "", sep="\n")


if __name__ == "__main__":
    main()
