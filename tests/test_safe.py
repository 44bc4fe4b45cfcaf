"""The tables of the written cases: what is joined, paired and told."""

from typing import Any

import torch

import how_long
import knowing
from contests import pictures
from safe import beyond_noise, case_of, differences, joined, mean_f1, means, of_tables, table
from targets import table as table_of_targets


def line(seed: int, **kinds: float) -> dict[str, Any]:
    values = {name: {"even": v, "as trained": v - 0.1} for name, v in kinds.items()}
    return {"case": "digits, mlp, mild, rate 0.1", "seed": seed, **values}


def test_kinds_that_were_run_later_join_their_case_and_seed() -> None:
    found = joined([{"header": {}}, line(0, plain=0.5), line(1, plain=0.6), line(0, DOS=0.7)])
    assert found["digits, mlp, mild, rate 0.1", 0] == line(0, plain=0.5, DOS=0.7)
    assert "DOS" not in found["digits, mlp, mild, rate 0.1", 1]


def test_a_default_that_is_worse_beyond_noise_is_bold() -> None:
    worse = [line(s, plain=0.8 + s / 100, DOS=0.7 + s / 99) for s in range(4)]
    better = [line(s, plain=0.7 + s / 100, DOS=0.8 + s / 99) for s in range(4)]
    assert "| digits: mlp, rate 0.1 | – | **.815 → .715** (p < .001) | – |" in table(worse, "even")
    assert "| .615 → .715 (p < .001) |" in table(better, "as trained")


def test_the_default_of_augmented_cases_has_no_neighbours() -> None:
    lines = [line(0, **{"plain": 0.5, "DOS": 0.7, "over-sampled": 0.6})]
    augmented = {**lines[0], "case": "digits, lenet, mild, augmented"}
    shown = table([*lines, augmented], "even")
    assert "| digits: mlp, rate 0.1 | – | .500 → .700" in shown
    assert "| digits: lenet, augmented | – | .500 → .600" in shown


def test_a_case_without_its_default_has_no_row() -> None:
    lines = [line(0, **{"plain": 0.5, "over-sampled": 0.6})]  # which is not its default
    assert "mlp" not in table(lines, "even")


def test_differences_and_counts_are_of_pairs() -> None:
    values = {"plain": 0.6, "DOS": 0.5, "over-sampled": 0.6}
    lines = [line(s, **{kind: v + s / 100 for kind, v in values.items()}) for s in range(3)]
    lines[0]["DOS"] = {"even": 0.51, "as trained": 0.41}  # else all differ by the same
    row = "| mild | 3 | **−.097 (.001)** / **−.097 (.001)** | +.000 (1.000) / +.000 (1.000)"
    assert row in differences(lines)
    assert "| strong, augmented | 0 | – / – |" in differences(lines)
    told = beyond_noise(lines, "DOS", "plain")
    assert "even: better in 0, worse in 1 of 1; as trained: better in 0, worse in 1 of 1" in told
    assert "even: better in 0, worse in 0 of 1" in beyond_noise(lines, "over-sampled", "plain")


def test_kinds_that_were_not_run_have_no_differences() -> None:
    lines = [line(s, **{"plain": 0.6, "over-sampled": 0.7 + s / 100}) for s in range(3)]
    assert "| mild | 3 | – / – | +.110 (.003) / +.110 (.003) | – / – |" in differences(lines)
    assert "even: better in 0, worse in 0 of 0" in beyond_noise(lines, "DOS", "over-sampled")


def test_means_are_of_kinds_that_all_have() -> None:
    lines = [line(0, plain=0.5, DOS=0.7), line(1, plain=0.7)]
    _, _, plain = means(lines).splitlines()
    assert plain == "| plain | – | – | .600 | .500 | – | – |"


def test_f1_is_as_if_classes_had_the_shares_that_are_asked() -> None:
    judged = pictures((4, 2, 2))
    found = judged.y.clone()
    found[0] = 1  # one of class 0 is taken for class 1
    even = mean_f1(found, judged, torch.ones(3))
    # shares of 1/3: recall 3/4 and precision 1; recall 1 and precision 4/5; all of the third
    assert round(even, 6) == round((2 * 0.75 / 1.75 + 2 * 0.8 / 1.8 + 1) / 3, 6)
    rare = mean_f1(found, judged, torch.tensor([8.0, 1.0, 1.0]))
    assert rare < even  # two of eight of the frequent class outweigh a rare one


def test_targets_are_told_beside_plain_training() -> None:
    lines: list[dict[str, Any]] = []
    for kind, value, n in (("plain", 0.5, 100), ("v of copies", 0.6, 99)):
        for seed in range(3):
            column = {"imbalance": "mild", "rate": 0.1, "kind": kind, "seed": seed}
            lines.append({**column, "even": value + seed / n, "as trained": value - seed / n})
    heads, _, *rows = table_of_targets(lines).splitlines()
    assert heads == "| | mild, rate 0.1 |"
    assert rows[0] == "| plain | .510 / .490 |"
    assert rows[1] == "| over-sampled | – |"
    assert rows[3] == "| v of copies | .610 (.000) / .590 (.000) |"


def test_pieces_stand_beside_the_others_where_all_were_run() -> None:
    def trials(rounds: int, seeds: int) -> list[dict[str, Any]]:
        kinds = {kind: 0.5 + place / 10 for place, kind in enumerate(how_long.KINDS)}
        return [
            {"T": rounds, "imbalance": "mild", "kind": kind, "seed": s}
            | {"even": value + (s * value) ** 2 / 100, "as trained": 0.9 - value - s * value**2}
            for kind, value in kinds.items()
            for s in range(seeds)
        ]

    plain, *kinds = how_long.table(trials(8, 3) + trials(32, 1)[:-1]).splitlines()[2:]
    assert plain.startswith("| plain | .504 / .150 | .500 / .400 |")
    *_, form = kinds[: len(how_long.KINDS) - 1]
    assert form.endswith(" | – |")
    first, *_, of_form = kinds[len(how_long.KINDS) - 1 :]
    assert first.startswith("| pieces − plain | +.3")
    assert first.count(" (") == 2
    assert first.endswith("| – / – |")
    assert of_form.endswith("| – |")


def test_tables_have_means_and_counts_of_their_own() -> None:
    kinds = {"plain": 0.6, "DOS": 0.7, "DOS, cautious": 0.8}
    lines = [line(s, **{kind: v + v * s / 70 for kind, v in kinds.items()}) for s in range(3)]
    short = [{**one, "case": "tables, titanic, natural, T = 3"} for one in lines]
    shown = of_tables([*lines, *short])
    assert "| DOS, T = 3 | .710 | .610 | 1 / 0 | 1 / 0 |" in shown
    assert "| DOS |" not in shown
    assert "titanic" not in table(short, "even")
    assert "default against plain, even: better in 1" in beyond_noise(short, "default", "plain")


def test_the_default_is_cautious_where_that_was_run() -> None:
    lines = [line(s, **{"plain": 0.5 + s / 100, "DOS": 0.6 - s / 100}) for s in range(3)]
    assert ".510 → .590" in table(lines, "even")
    for one in lines:
        one["DOS, cautious"] = {"even": 0.7, "as trained": 0.7}
    assert ".510 → .700" in table(lines, "even")


def test_a_case_may_be_trained_for_longer_or_shorter() -> None:
    name = "digits, lenet, mild"
    usual, short = (case_of(one, None, None) for one in (name, f"{name}, T = 3"))
    assert (usual.rounds, short.rounds) == (15, 3)
    assert torch.equal(usual.parts(0)[0].x, short.parts(0)[0].x)


def test_what_g_knew_is_that_of_the_plain_rounds() -> None:
    less, more = (knowing.known(f"digits, mlp, mild, T = {T}", 0, None) for T in (1, 8))
    assert 0 <= less < 0.5 < more <= 1


def test_what_neighbours_gain_is_told_by_what_g_knew() -> None:
    knew = {0.1: (0.5, 0.6), 0.15: (0.5, 0.7), 0.9: (0.8, 0.75)}  # DOS, over-sampled
    lines = [{**line(0, DOS=x, **{"over-sampled": y}), "known": k} for k, (x, y) in knew.items()]
    shown = knowing.table(lines)
    assert "| digits and texts | -0.150 ± 0.035 / -0.150 ± 0.035 (2) | – (0) |" in shown
    assert "+0.050 ± 0.000 / +0.050 ± 0.000 (1) |" in shown
