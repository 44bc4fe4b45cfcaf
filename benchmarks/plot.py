"""The curves of `dos bench scaling`, on logarithmic axes, with their slopes.

    dos bench scaling --out results/bench/speed.json
    python benchmarks/plot.py results/bench/speed.json [--out docs/images/scaling.svg]

Needs matplotlib.
"""

import argparse
import json
import sys
from pathlib import Path

COLOURS = ("#0072b2", "#d55e00", "#009e73")  # told apart by everyone (Okabe and Ito)
SLOPE = "slope of time"

Curve = tuple[list[float], list[float], float]  # x, time, slope


def curves(records: list[dict]) -> dict[str, dict[str, Curve]]:
    """What -> against what -> its points."""
    found: dict[str, dict[str, Curve]] = {}
    for record in records:
        if record["part"] != "scaling" or record["unit"] == "MiB":
            continue
        what, _, against = record["what"].partition(" against ")
        if record["unit"] == SLOPE:
            found.setdefault(what, {})[against] = ([], [], record["value"])
        elif against in record["setting"]:
            x, y, _ = found[what][against]
            x.append(record["setting"][against])
            y.append(record["value"] if record["unit"] == "s" else record["value"] / 1e6)
    return found


def draw(found: dict[str, dict[str, Curve]], title: str, out: Path) -> None:
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams.update({"font.size": 8, "svg.fonttype": "none", "svg.hashsalt": "scaling"})
    from matplotlib import pyplot as plt
    from matplotlib.ticker import NullFormatter

    figure, panels = plt.subplots(
        1, len(found), figsize=(2.6 * len(found), 2.5), layout="constrained", squeeze=False
    )
    for panel, (what, lines) in zip(panels[0], found.items(), strict=True):
        for colour, (against, (x, y, slope)) in zip(COLOURS, lines.items(), strict=False):
            label = f"{against}, slope {slope:.2f}"
            panel.plot(x, y, "o-", color=colour, markersize=3, linewidth=1, label=label)
        panel.set(xscale="log", yscale="log", title=what, xlabel=", ".join(lines))
        for axis in (panel.xaxis, panel.yaxis):
            axis.set_minor_formatter(NullFormatter())
        panel.spines[["top", "right"]].set_visible(False)
        panel.legend(frameon=False, title="against")
    panels[0][0].set_ylabel("seconds")
    figure.suptitle(title, fontsize=8)
    out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(out, metadata={"Date": None})  # the same figures give the same file


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path, help="what dos bench --out wrote")
    parser.add_argument("--out", type=Path, default=Path("docs/images/scaling.svg"))
    options = parser.parse_args()
    try:
        content = json.loads(options.results.read_text())
        found = curves(content["records"])
        hardware = content["header"]["hardware"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        sys.exit(f"{options.results} must hold what dos bench --out writes: {error!r}")
    if not found:
        sys.exit(f"{options.results} must hold the part scaling, found none; run dos bench scaling")
    draw(
        found, hardware["gpu"] or f"{hardware['cpu']}, threads: {hardware['threads']}", options.out
    )
    print(options.out)


if __name__ == "__main__":
    main()
