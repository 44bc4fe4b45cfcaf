"""The search over forms of DOS for a modern network."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

import best_epoch
import modern
import modern_table
from contests import pictures
from deep_oversampling import InputError, Network
from deep_oversampling.data import Splits
from forms import FORMS, Form
from modern import Search, Settings, adjusted, chosen_forms, groups_of, probed
from modern_table import over_partners
from modern_table import table as table_of
from partners import PARTNERS
from toy import blobs

# of ten epochs the last two are late
TINY = Settings("exp:4", epochs=10, batch_size=16, model="C4-F6", learning_rate=0.02)


def search(tmp_path: Path, settings: Settings = TINY) -> Search:
    splits = Splits("pictures", pictures((30, 30, 30)), test=pictures((10, 10, 10)))
    return Search(splits, settings, tmp_path, torch.device("cpu"), at_once=3)


@pytest.mark.parametrize("partner", list(PARTNERS))
def test_every_form_runs(partner: str, tmp_path: Path) -> None:
    forms = [form for form in FORMS.values() if form.partner == partner]
    lines = list(search(tmp_path).run([(form, 0) for form in forms]))
    assert {line["form"] for line in lines} == {form.name for form in forms}
    for line in lines:
        assert line["lost"] == ""
        assert 0 <= line["accuracy"] <= 1
        assert len(line["recall"]) == 3
        assert all(0 <= value <= 1 for value in (line["probe"], *line["adjusted"].values()))
        assert {"many", "few"} <= line.keys()


def test_a_residual_network_in_miniature(tmp_path: Path) -> None:
    settings = replace(TINY, model="resnet32")
    jobs = [(FORMS[name], 0) for name in ("la", "la+pieces-late", "la+dos-half")]
    lines = {line["form"]: line for line in search(tmp_path, settings).run(jobs)}
    assert [lines[form.name]["lost"] for form, _ in jobs] == [""] * 3
    assert lines["la+pieces-late"]["recall"] != lines["la+dos-half"]["recall"]


def test_forms_share_what_their_partner_trained(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    jobs = [(FORMS[name], seed) for name in ("ce", "ce+dos-half", "ce+drs") for seed in (0, 1)]
    first = list(search(tmp_path).run(jobs))
    told = capsys.readouterr().out
    assert [told.count(f"from {part} to") for part in ("start", "half", "late")] == [2, 2, 2]
    assert len(list(tmp_path.glob("*.safetensors"))) == 6
    again = list(search(tmp_path).run(jobs[::-1]))
    assert capsys.readouterr().out == ""
    assert sorted(_told(line) for line in first) == sorted(_told(line) for line in again)


def test_a_table_on_test_images_shares_no_training_with_the_search(tmp_path: Path) -> None:
    jobs = [(FORMS["ce"], 0)]
    (removed,) = search(tmp_path).run(jobs)
    final = search(tmp_path, replace(TINY, judge="test"))
    (tested,) = final.run(jobs)
    train, judged = final.data(0)
    assert len(judged) == 30  # all of the test set, none of what was removed
    assert len(train) == 30 + 15 + 7 > len(search(tmp_path).data(0)[0])
    assert (removed["judge"], tested["judge"]) == ("removed", "test")
    assert {"adjusted", "probe"} <= removed.keys()
    assert not {"adjusted", "probe"} & tested.keys()
    assert len(list(tmp_path.glob("*.safetensors"))) == 6


def test_what_is_adjusted_afterwards_moves_to_the_rare_class() -> None:
    p = torch.tensor([[0.9, 0.1], [0.7, 0.3], [0.8, 0.2]])
    found = adjusted(p, torch.tensor([0, 1, 1]), torch.tensor([90, 10]))
    assert found[-0.5] == 0.5
    assert found[1.0] == 1.0  # odds of 9 to 1 stay with the large class, 4 to 1 do not
    assert found[2.0] == 0.5


def test_a_probe_is_worth_what_f_is() -> None:
    judged = blobs((30, 20, 12))
    d = judged.x.shape[1]
    knows, knows_nothing = (Network(f, nn.Linear(d, 3)) for f in (nn.Identity(), _Zero()))
    assert probed(knows, judged) > 0.9 > 0.4 > probed(knows_nothing, judged)


class _Zero(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 0 * x


def test_a_miniature_is_another_setting(tmp_path: Path) -> None:
    splits = Splits("pictures", pictures((30, 30, 30)), test=None)
    settings = replace(TINY, miniature=True, epochs=5)
    small = Search(splits, settings, tmp_path, torch.device("cpu"), at_once=3)
    (line,) = small.run([(FORMS["la+pieces-late"], 0)])
    assert line["miniature"]
    assert line["lost"] == ""
    (path, *_) = tmp_path.glob("*.safetensors")
    assert "miniature" in path.name


def test_a_table_adjusts_all_seeds_by_one_tau() -> None:
    found = [{0.5: 0.7, 1.0: 0.6}, {0.5: 0.5, 1.0: 0.65}]
    common = {
        "form": "ce",
        "many": 0.5,
        "medium": 0.5,
        "few": 0.5,
        "f1_as_trained": 0.5,
        "lost": "",
    }
    lines = [
        {**common, "seed": seed, "accuracy": 0.5, "adjusted": {str(t): a for t, a in one.items()}}
        for seed, one in enumerate(found)
    ]
    assert "| 62.50 ± 3.54 (1.0) |" in list(table_of(lines))[-1]
    older = [{k: v for k, v in line.items() if k != "adjusted"} for line in lines]
    assert "| – |" in list(table_of(older))[-1]


def _told(line: dict[str, object]) -> str:
    return json.dumps({name: value for name, value in line.items() if name != "seconds"})


def test_parts_of_a_training_have_the_rates_of_the_whole() -> None:
    settings = Settings()
    assert settings.rounds("half") == range(100, 200)
    assert settings.rounds("late") == range(160, 200)
    assert settings.rounds("end") == range(200, 210)
    shares = [settings.rate_share(t) for t in (0, 10, 160, 180, 200, 209)]
    assert shares[:5] == [0.2, 1.0, 0.01, 0.0001, 1.0]
    assert 0 < shares[5] < 0.1


def test_curves_have_an_accuracy_for_every_epoch(tmp_path: Path) -> None:
    jobs = [(partner, seed) for partner in PARTNERS for seed in (0, 1)]
    found = list(search(tmp_path).curves(jobs))  # three at once
    assert [(partner, seed) for partner, seed, _ in found] == jobs
    for _, _, curve in found:
        assert len(curve) == TINY.epochs
        assert all(0 <= value <= 1 for value in curve)
    assert sum(len(set(curve)) > 1 for *_, curve in found) > len(found) / 2
    assert list(search(tmp_path).curves(jobs[3:4])) == found[3:4]  # as if alone
    assert not list(tmp_path.glob("*.safetensors"))


def test_the_best_epoch_stands_beside_the_last() -> None:
    lines = [{"form": "ce", "curve": curve} for curve in ([0.5, 0.7, 0.6], [0.9, 0.7, 0.8])]
    (row,) = list(best_epoch.table(lines))[2:]
    assert row == "| ce | 2 | 70.00 ± 14.14 | 80.00 ± 14.14 | 2, 1 |"


def test_the_best_epoch_is_not_looked_for_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(modern, "load", lambda *_, **__: Splits("p", pictures((30, 30, 30))))
    out = tmp_path / "out.jsonl"
    command = ["best_epoch.py", "data", str(out), "--imbalance", "exp:4", "--model", "C4-F6"]
    command += ["--device", "cpu", "--seeds", "1", "--partners", "ce", "--epochs"]
    for epochs in ("5", "4", "4"):  # a table is of one setting
        monkeypatch.setattr(sys, "argv", [*command, epochs])
        best_epoch.main()
        assert capsys.readouterr().out.splitlines()[-1].startswith("| ce | 1 |")
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert [len(line["curve"]) for line in lines if "header" not in line] == [5, 4]


def test_groups_are_thirds_on_a_logarithmic_scale() -> None:
    tail = torch.tensor([4500, 2997, 1796, 1077, 645, 387, 232, 139, 83, 50])
    found = {name: own.nonzero().flatten().tolist() for name, own in groups_of(tail).items()}
    assert found == {"many": [0, 1, 2, 3], "medium": [4, 5, 6], "few": [7, 8, 9]}
    assert list(groups_of(torch.tensor([4500, 4500, 50]))) == ["many", "few"]


def test_options_of_a_form_can_be_changed_and_its_name_says_so() -> None:
    (form,) = chosen_forms(["la+dos-half[k=10,tau=0.5]"])
    assert form.name == "la+dos-half[k=10,tau=0.5]"
    assert form.stages.keywords == {"k": 10, "tau": 0.5}
    with pytest.raises(InputError, match=r"la\+crt must be given options that it has \(none\)"):
        chosen_forms(["la+crt[k=10]"])
    with pytest.raises(InputError, match="found hulls"):
        chosen_forms(["ce", "hulls"])
    assert [form.name for form in chosen_forms(["*+drs", "ce", "*+drs"])] == ["ce+drs", "ce"]


def test_the_script_goes_on_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    splits = Splits("pictures", pictures((30, 30, 30)))
    monkeypatch.setattr(modern, "load", lambda *_, **__: splits)
    out = tmp_path / "out.jsonl"
    command = ["modern.py", "data", str(out), "--imbalance", "exp:4", "--epochs", "5"]
    command += ["--model", "C4-F6", "--device", "cpu", "--seeds", "2", "--forms"]
    monkeypatch.setattr(sys, "argv", [*command, "ce"])
    modern.main()
    monkeypatch.setattr(sys, "argv", [*command, "ce", "ce+dos-late"])
    modern.main()
    monkeypatch.setattr(sys, "argv", [*command, "hulls"])
    with pytest.raises(SystemExit, match="2"):
        modern.main()
    told = capsys.readouterr()
    assert "ce+dos-late 1 " in told.out
    assert "found hulls" in told.err
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert sum("header" in line for line in lines) == 2  # none for what is refused
    told = [(line["form"], line["seed"]) for line in lines if "header" not in line]
    assert told == [("ce", 0), ("ce", 1), ("ce+dos-late", 0), ("ce+dos-late", 1)]
    assert lines[0]["header"]["judge"] == "removed"


def test_a_form_is_paired_with_its_partner_seed_by_seed() -> None:
    made = [("ce", 0, 0.70), ("ce", 1, 0.72), ("ce+dos-late", 0, 0.73), ("ce+dos-late", 1, 0.74)]
    lines = [
        {"form": form, "seed": seed, "accuracy": value, "many": value, "few": value, "lost": ""}
        for form, seed, value in [*made, ("ce+dos-late", 2, 0.1), ("la+dos-late", 0, 0.5)]
    ]
    _, _, *rows = table_of(lines)
    assert [row.split()[1] for row in rows] == ["ce", "ce+dos-late", "la+dos-late"]
    assert rows[0].startswith("| ce | 2 | 71.00 ± 1.41 | 71.00 ± 1.41 | – | 71.00 ± 1.41 | – |")
    assert "| +2.50 | 0.126 |" in rows[1]  # of seeds 0 and 1, which both have
    assert rows[2].endswith("|  |  |  |  |")


def test_dos_is_paired_with_over_sampling_whatever_it_is_added_to() -> None:
    made = {"ce+over-half": 0.70, "ce+dos-half": 0.71, "la+over-half": 0.72, "la+dos-half": 0.75}
    lines = [
        {"form": form, "seed": s, "accuracy": value + s / 100, "few": value - s / 100, "lost": ""}
        for form, value in [*made.items(), ("la+dos-half[in_g=0.0]", 0.74)]
        for s in (0, 1)
    ]
    lines[-1]["accuracy"] += 0.02
    _, _, *found = table_of(lines)
    rows = {row.split()[1]: row for row in found}
    assert rows["ce+dos-half"].endswith("|  |  | +1.00 |  |")  # no partner; all differ alike
    assert rows["la+dos-half[in_g=0.0]"].endswith("| +3.00 | 0.205 |")
    assert rows["ce+over-half"].endswith("|  |  |  |  |")
    told = over_partners(lines, "few")
    assert told == "ce+dos-half, la+dos-half − over-sampling: +2.00, 2 seeds, p = nan"
    assert over_partners(lines[:2], "few") == ""
    pieces = [{**one, "form": one["form"].replace("dos-", "pieces-")} for one in lines]
    assert over_partners(pieces, "few", "pieces-half") == told.replace("dos-", "pieces-")
    assert over_partners(lines, "few", "pieces-half") == ""


def test_every_margin_that_was_tried_afterwards_is_shown() -> None:
    tried = [{"0.5": 0.7, "-0.5": 0.2}, {"0.5": 0.9, "-0.5": 0.4}]
    lines = [
        {"form": form, "seed": s, "accuracy": 0.5, "lost": "", "adjusted": values}
        for form in ("la", "la+pieces-half")
        for s, values in enumerate(tried)
    ]
    del lines[-1]["adjusted"]  # of test images: none is chosen there
    head, _, *rows = modern_table.afterwards(lines)
    assert head == "| form | seeds | -0.5 | 0 | 0.5 |"
    assert rows == ["| la | 2 | 30.0 | 50.0 | 80.0 |"]


def test_names_say_the_partner() -> None:
    for name, form in FORMS.items():
        assert isinstance(form, Form)
        assert name.partition("+")[0] == form.partner
        assert form.partner in PARTNERS


def test_forms_are_compared_by_the_means_of_seeds_that_all_have(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = {"a": (0.5, 0.6, 0.9), "b": (0.7, 0.7), "c": (0.4, 0.7), "la": (0.5, 0.5)}
    lines = [
        {**vars(TINY), "form": form, "seed": seed, "accuracy": value, "lost": ""}
        for form, values in found.items()
        for seed, value in enumerate(values)
    ]
    path = tmp_path / "found.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    asked = ["modern_table.py", str(path), "--compare", "a", "b", "--to", "c", "la"]
    monkeypatch.setattr(sys, "argv", asked)
    modern_table.main()
    assert "+10.00, 2 seeds" in capsys.readouterr().out  # (.6 − .45 + .65 − .6) / 2
    monkeypatch.setattr(sys, "argv", [*asked, "d"])
    modern_table.main()
    assert "not here: d" in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", asked[:4])
    with pytest.raises(SystemExit):
        modern_table.main()
    assert "--compare and --to must be given together" in capsys.readouterr().err
