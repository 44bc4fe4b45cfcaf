"""Cells that are run again are paired with their stored trials, seed by seed."""

from dataclasses import replace

from deep_oversampling.rivals.trials import read_trials
from paper_again import STORED, by_seed, cells, line


def test_every_cell_has_stored_trials() -> None:
    found = cells(["mnist", "svhn"])
    assert [one.imbalance for one in found] == ["drop:4:0.9", "drop:4:0.95", "drop:4:0.99"] * 2
    for one in found:
        stored = read_trials(STORED / f"{one.name}.jsonl")
        assert all(len(by_seed(stored, method)) == 10 for method in one.methods)


def test_trials_are_paired_by_seed() -> None:
    before = by_seed(read_trials(STORED / "mnist-drop-4-0.9.jsonl"), "dos")
    after = {}
    for seed, by in ((3, 0.02), (4, 0.04)):  # in every class; other seeds were not run again
        f1 = tuple(value + by for value in before[seed].measures["f1"] if value is not None)
        after[seed] = replace(before[seed], measures={"f1": f1})
    told = line("mnist", "dos", before, after)
    assert told.startswith("| mnist | dos | 2 | ")
    assert told.count("(+0.0300, p = 0.205)") == 2  # t = 3, one degree of freedom
