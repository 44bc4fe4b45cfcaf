"""The page: one file, whatever the story; honest in words, and nothing breaks out of it."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deep_oversampling.errors import InputError
from deep_oversampling.report import Mistake, Moment, OverSampled, Story, write_report
from deep_oversampling.report.headline import cautions, number, sentence, signed
from deep_oversampling.report.page import render
from deep_oversampling.report.pictures import data_uri, over_sampled
from deep_oversampling.report.scores import score
from stories import NASTY, nasty_story, some_probabilities, story


def embedded(page: str) -> Any:
    found = re.search(r'<script id="data" type="application/json">(.*?)</script>', page, re.S)
    assert found
    return json.loads(found[1])


class Elements(HTMLParser):
    """Every start tag with its attributes, and the texts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, text: str) -> None:
        self.texts.append(text)


STORIES = {
    "two classes": story(2),
    "no baseline": story(baseline=False),
    "no pictures": story(pictures=False),
    "one moment": story(moments=1),
    "no moments": story(moments=0),
    "no rounds": story(rounds=0),
    "no histories": story(histories={}),
    "nothing rare": story(minority=()),
    "all rare": story(minority=(0, 1, 2, 3)),
    "one class": story(1, labels=np.zeros(200, int)),
    "one sample": story(4, 1),
    "no samples of a class": story(labels=np.arange(200) % 3),
    "no mistakes": story(mistakes={}, over_sampled=(), facts={}),
    "hundred classes": story(100, 500),
}


@pytest.mark.parametrize("made", STORIES.values(), ids=STORIES.keys())
def test_any_story_becomes_a_page(made: Story, tmp_path: Path) -> None:
    write_report(made, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert embedded(page)["classes"] == list(made.classes)
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    assert "NaN" not in page.split('id="data"')[1].split("</script>")[0]


def test_same_story_same_page() -> None:
    assert render(story()) == render(story())


def test_page_needs_nothing_from_outside() -> None:
    page = render(story())
    assert set(re.findall(r"https?:[^\s\"'<>]*", page)) == {"http://www.w3.org/2000/svg"}
    for tag, attributes in Elements(page).found:
        assert tag not in {"iframe", "object", "embed", "base"}
        assert "srcset" not in attributes
        for name in ("src", "href"):
            assert (attributes.get(name) or "data:").startswith("data:")
    style = page.split("<style>")[1].split("</style>")[0]
    assert "url(" not in style
    assert "@import" not in style
    assert "default-src 'none'" in page


def test_nothing_breaks_out() -> None:
    made = nasty_story()
    page = render(made)
    plain = render(story(len(NASTY)))
    elements = Elements(page)
    tags = {tag for tag, _ in elements.found}
    assert tags <= {tag for tag, _ in Elements(plain).found}  # no <b> of theirs, no new <img>
    assert not any(name.startswith("on") for _, attributes in elements.found for name in attributes)
    assert page.count("<script") == 2  # data and script
    assert embedded(page)["classes"] == list(NASTY)
    assert "<" not in page.split('type="application/json">')[1].split("</script>")[0]
    texts = "".join(elements.texts)
    for name in NASTY:  # shown as they are
        assert name in texts


def test_names_that_are_no_utf8_do_not_stop_it(tmp_path: Path) -> None:
    made = story(classes=("a\udcff", "b", "c", "d\x00"), facts={"file": "\udcfe.png"})
    write_report(made, tmp_path / "report.html")
    assert embedded((tmp_path / "report.html").read_text("utf-8"))["classes"][0] == "a\udcff"


@pytest.mark.slow
def test_page_of_a_large_set_stays_small() -> None:
    generator, n, t = np.random.default_rng(0), 100, 10_000
    labels = generator.integers(n, size=t)
    p = {m: some_probabilities(labels, n, 1.2, generator) for m in ("plain", "dos")}
    photo = generator.integers(256, size=(224, 224, 3), dtype=np.uint8)  # noise packs worst
    neighbours = tuple((photo, "n", 0.1) for _ in range(10))
    moments = tuple(
        Moment(str(i), generator.normal(size=(t, 2)).astype(np.float32)) for i in range(40)
    )
    made = replace(
        story(n),
        labels=labels,
        probabilities=p,
        moments=moments,
        moment_labels=labels,
        over_sampled=tuple(OverSampled(j, photo, "s", 0.0, neighbours) for j in range(50, 100)),
        mistakes={m: (Mistake(60, 0, 0.9, photo, "m"),) * 20 for m in p},
    )
    assert len(render(made).encode()) < 5_000_000


def test_page_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="choose another"):
        write_report(story(), tmp_path / "file" / "report.html")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def said(**how: Any) -> str:
    made = story(4, 400, **how)
    return sentence(made, score(made, resamples=200))


def test_sentence_says_what_the_interval_allows() -> None:
    assert re.fullmatch(
        r"DOS raised F1 of the 2 rare classes from \.\d{3} to \.\d{3}: \+\.\d{3} "
        r"\(95 % interval \+\.\d{3} to \+\.\d{3}\)\.",
        said(skills=(0.5, 2.0)),
    )
    assert said(skills=(2.0, 0.5)).startswith("DOS lowered F1 of the 2 rare classes from")
    assert "The interval contains 0" in said(skills=(1.0, 1.0))
    assert "no plain network was trained beside it" in said(baseline=False)
    assert "of the rare class " in said(minority=(3,))
    assert "all classes (the plan favours none)" in said(minority=())
    assert "no validation sample of the rare class" in said(
        minority=(3,), labels=np.arange(400) % 3
    )


def test_few_validation_samples_are_told() -> None:
    assert len(cautions(story(4, 400))) == 1
    assert "the least 5" in cautions(story(4, 20))[1]


@pytest.mark.parametrize(
    ("value", "plain", "with_sign"),
    [
        (0.8484, ".848", "+.848"),
        (1.0, "1.000", "+1.000"),
        (-0.05, "-0.050", "−.050"),
        (0.0004, ".000", ".000"),
        (float("nan"), "–", "–"),
    ],
)
def test_numbers_are_short(value: float, plain: str, with_sign: str) -> None:
    assert number(value) == plain
    assert signed(value) == with_sign


def test_pictures_are_reduced_and_samples_spread_over_classes() -> None:
    assert data_uri(np.zeros((200, 100, 3), np.uint8)).startswith("data:image/png;base64,")
    many = tuple(OverSampled(j, None, f"row {i}", 1.0, ()) for j in (2, 3) for i in range(40))
    text = over_sampled(story(over_sampled=many))
    assert text.count("class 2") == text.count("class 3") == 12
    assert "… and 56 more." in text


def test_neighbours_that_do_not_fit_are_summed() -> None:
    neighbours = tuple((None, f"n{i}", 0.1) for i in range(9))
    text = over_sampled(story(over_sampled=(OverSampled(3, None, "x", 0.1, neighbours),)))
    assert "3 more<br>.300" in text
