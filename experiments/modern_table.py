"""What `modern.py` found, as a Markdown table: mean ± sd, and what each form adds.

    python experiments/modern_table.py OUT.jsonl … [--measure few] [--seeds 5 10]
    python experiments/modern_table.py OUT.jsonl --compare la+pieces-half --to la
    python experiments/modern_table.py OUT.jsonl --afterwards

A form is paired seed by seed with its partner, and a form of DOS with over-sampling alone; p is
that of a paired t-test, two-sided. Best first. `probe` is what a logistic regression on f(x)
reaches, `adjusted` the accuracy with logits that are adjusted afterwards, by the τ in brackets,
which is the best for all seeds together; ``--afterwards`` shows it for every τ.
"""

import argparse
import json
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean

from deep_oversampling.rivals.summary import cell, compared
from modern import BEFORE

SETTING = (
    "imbalance",
    "epochs",
    "batch_size",
    "learning_rate",
    "weight_decay",
    "model",
    "bf16",
    "judge",
    "miniature",
)
GROUPS = ("accuracy", "many", "medium", "few", "f1_as_trained", "probe", "adjusted")
WITHOUT_NEIGHBOURS = ("tau=", "levelled=", "q=")  # options that mean something there as well

ALL_SEEDS = (0, 10**9)  # from, and before

Line = dict[str, object]
Found = dict[str, dict[int, Line]]  # form -> seed


def by_setting(
    paths: Sequence[Path], seeds: tuple[int, int] = ALL_SEEDS
) -> dict[tuple[object, ...], list[Line]]:
    """The trainings of some files, by what all of a table have alike."""
    found: dict[tuple[object, ...], list[Line]] = defaultdict(list)
    for path in paths:
        for line in map(json.loads, path.read_text().splitlines()):
            if "header" not in line and line["seed"] in range(*seeds):
                line = BEFORE | line
                found[tuple(line[name] for name in SETTING)].append(line)
    return found


def grouped(lines: Sequence[Line]) -> Found:
    found: Found = defaultdict(dict)
    for line in lines:
        found[line["form"]][line["seed"]] = line
    return found


def by_form(lines: Sequence[Line]) -> Found:
    """With ``adjusted`` that of the best τ, the same for all seeds."""
    return {form: adjusted_best(own) for form, own in grouped(lines).items()}


def by_tau(own: dict[int, Line]) -> dict[str, list[float]]:
    """Accuracy of every seed, with logits adjusted by τ afterwards; 0 is no adjustment."""
    if not all("adjusted" in one for one in own.values()):  # test images, and the first lines
        return {}
    each = [{"0": one["accuracy"], **one["adjusted"]} for one in own.values()]
    return {tau: [one[tau] for one in each] for tau in each[0]}


def adjusted_best(own: dict[int, Line]) -> dict[int, Line]:
    found = by_tau(own)
    best = max(found, key=lambda tau: fmean(found[tau]), default="")
    values = found.get(best, [math.nan] * len(own))
    pairs = zip(own.items(), values, strict=True)
    return {s: {**one, "adjusted": value, "tau": best} for (s, one), value in pairs}


def table(lines: Sequence[Line], measure: str = "accuracy") -> Iterator[str]:
    """Of trainings of one setting; ``measure`` is what is compared."""
    found = by_form(lines)
    heads = [group.replace("_", " ") for group in GROUPS]
    yield f"| form | seeds | {' | '.join(heads)} | − partner | p | − over-sampling | p |"
    yield "|" + "---|" * (len(GROUPS) + 6)
    means = {form: cell([one["accuracy"] for one in own.values()]) for form, own in found.items()}
    for form in sorted(found, key=lambda name: -means[name].mean):
        own = found[form]
        shown = [percent([one.get(group, math.nan) for one in own.values()]) for group in GROUPS]
        tau = next(iter(own.values()))["tau"]
        shown[-1] += f" ({tau})" if tau else ""
        lost = sum(bool(one["lost"]) for one in own.values())
        seeds = f"{len(own)}, {lost} lost" if lost else str(len(own))
        others = form.partition("+")[0], over_sampling(form)
        against = [told for other in others for told in _against(found, form, other, measure)]
        yield "| " + " | ".join([form, seeds, *shown, *against]) + " |"


def afterwards(lines: Sequence[Line]) -> Iterator[str]:
    """Accuracy of every form with logits that are adjusted afterwards, by each τ."""
    found = {form: by_tau(own) for form, own in grouped(lines).items()}
    taus = sorted({tau for own in found.values() for tau in own}, key=float)
    yield f"| form | seeds | {' | '.join(taus)} |"
    yield "|" + "---|" * (len(taus) + 2)
    for form, own in found.items():
        if own:
            shown = [f"{100 * fmean(own[tau]):.1f}" if tau in own else "–" for tau in taus]
            yield f"| {form} | {len(own['0'])} | {' | '.join(shown)} |"


def over_sampling(form: str) -> str:
    """The name of a form without neighbours or pieces of them; nothing, where it is none.

    >>> over_sampling("la+dos-half[k=10,tau=0.5]"), over_sampling("la+crt")
    ('la+over-half[tau=0.5]', '')
    """
    name, _, options = form.rstrip("]").partition("[")
    partner, _, kind = name.partition("+")
    if not kind.startswith(("dos-", "live-", "pasted-", "pieces-")):
        return ""
    kept = [one for one in options.split(",") if one.startswith(WITHOUT_NEIGHBOURS)]
    return f"{partner}+over-{kind.partition('-')[2]}" + (f"[{','.join(kept)}]" if kept else "")


def over_partners(lines: Sequence[Line], measure: str, kind: str = "dos-half") -> str:
    """What a form adds to over-sampling, whatever it is added to: by seed, the partners' mean."""
    found = by_form(lines)
    forms = [one for one in found if one.endswith(f"+{kind}") and over_sampling(one) in found]
    if not forms:
        return ""
    without = [over_sampling(form) for form in forms]
    return f"{', '.join(forms)} − over-sampling: {difference_of(found, forms, without, measure)}"


def difference_of(
    found: Found, forms: Sequence[str], others: Sequence[str], measure: str = "accuracy"
) -> str:
    """Of the means of some forms and of others, seed by seed, where all of them were trained."""
    sides = [[found[form] for form in some] for some in (forms, others)]
    seeds = set.intersection(*(set(one) for side in sides for one in side))
    means = [tuple(fmean(one[s][measure] for one in side) for side in sides) for s in seeds]
    difference, p = compared(means)
    return f"{100 * difference:+.2f}, {len(seeds)} seeds, p = {p:.3f}"


def _against(found: Found, form: str, other: str, measure: str) -> tuple[str, str]:
    own, others = found[form], found.get(other, {})
    both = [seed for seed in own if seed in others and form != other]
    difference, p = compared([(own[seed][measure], others[seed][measure]) for seed in both])
    told = "" if math.isnan(difference) else f"{100 * difference:+.2f}"
    return told, "" if math.isnan(p) else f"{p:.3f}"


def percent(values: list[float]) -> str:
    """Mean ± sd of some seeds, if there are some."""
    found = cell(values)
    if math.isnan(found.mean):
        return "–"
    sd = "" if math.isnan(found.sd) else f" ± {100 * found.sd:.2f}"
    return f"{100 * found.mean:.2f}{sd}"


def _compared(lines: Sequence[Line], options: argparse.Namespace) -> str:
    found = by_form(lines)
    unknown = sorted({*options.compare, *options.to} - found.keys())
    if unknown:
        return f"not here: {', '.join(unknown)}"
    return difference_of(found, options.compare, options.to, options.measure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("file", type=Path, nargs="+")
    parser.add_argument("--measure", choices=GROUPS, default="accuracy")
    parser.add_argument("--seeds", type=int, nargs=2, default=ALL_SEEDS, help="from, and before")
    parser.add_argument("--compare", nargs="+", default=[], help="forms: their mean")
    parser.add_argument("--to", nargs="+", default=[], help="with the mean of these")
    parser.add_argument("--afterwards", action="store_true", help="with each τ, for the best one")
    options = parser.parse_args()
    if bool(options.compare) != bool(options.to):
        parser.error("--compare and --to must be given together: forms, and what they stand beside")
    for setting, lines in by_setting(options.file, tuple(options.seeds)).items():
        told = ", ".join(f"{name} {value}" for name, value in zip(SETTING, setting, strict=True))
        if options.compare:
            print(f"{told}:", _compared(lines, options), sep="\n")
            continue
        if options.afterwards:
            print(f"{told}:\n", *afterwards(lines), "", sep="\n")
            continue
        print(f"{told}:\n", *table(lines, options.measure), "", sep="\n")
        for kind in ("dos-half", "pasted-half", "pieces-half"):
            print(over_partners(lines, options.measure, kind))


if __name__ == "__main__":
    main()
