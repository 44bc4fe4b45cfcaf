"""The page in a real browser: it opens in silence, and what can be moved moves."""

import csv
import io
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deep_oversampling.report import write_report
from stories import NASTY, nasty_story, story

api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
PHONE, LAPTOP = {"width": 390, "height": 844}, {"width": 1280, "height": 800}
STORIES = {
    "two": story(2),
    "four": story(4),
    "hundred": story(100, 1000),
    "nasty": nasty_story(),
    "bare": story(baseline=False, pictures=False, moments=0, histories={}, mistakes={}),
    "one moment": story(moments=1),
}

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """The system's Chromium, or the one that playwright brought; skipped where there is none."""
    paths = [found for name in BROWSERS if (found := shutil.which(name))]
    with api.sync_playwright() as playwright:
        try:
            opened = playwright.chromium.launch(
                executable_path=paths[0] if paths else None,
                args=["--no-sandbox"] if os.geteuid() == 0 else [],  # root may have none
            )
        except api.Error as error:
            pytest.skip(f"no browser: {str(error).splitlines()[0]}")
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    for name, made in STORIES.items():
        write_report(made, folder / f"{name}.html")
    return {name: folder / f"{name}.html" for name in STORIES}


@pytest.fixture
def visit(browser: Any, pages: dict[str, Path]) -> Iterator[Any]:
    """Open a page; at the end nothing may have been complained about or asked for."""
    trouble: list[str] = []
    contexts = []

    def go(name: str, viewport: Any = LAPTOP, **options: Any) -> Any:
        context = browser.new_context(viewport=viewport, accept_downloads=True, **options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: trouble.append(message.text))
        page.on("pageerror", lambda error: trouble.append(str(error)))
        page.on("requestfailed", lambda request: trouble.append(request.url))
        page.on("dialog", lambda dialog: trouble.append(dialog.message))
        asked = pages[name].as_uri()
        allowed = ("data:", "blob:", asked)
        page.on("request", lambda r: r.url.startswith(allowed) or trouble.append(r.url))
        page.goto(asked)
        return page

    yield go
    for context in contexts:
        context.close()
    assert not trouble


def drawn(page: Any, selector: str) -> str:
    """The pixels of a canvas."""
    return str(page.eval_on_selector(selector, "canvas => canvas.toDataURL()"))


@pytest.mark.parametrize("viewport", [LAPTOP, PHONE], ids=["laptop", "phone"])
@pytest.mark.parametrize("name", STORIES)
def test_opens_in_silence_and_fits(visit: Any, name: str, viewport: Any) -> None:
    page = visit(name, viewport)
    page.wait_for_timeout(100)
    assert page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
    assert page.locator("#scores tbody tr").count() == len(STORIES[name].classes)
    assert page.locator("#confusion canvas").count() == len(STORIES[name].probabilities)


def test_what_is_not_there_is_left_out(visit: Any) -> None:
    page = visit("bare")
    for section in ("embedding", "rounds", "mistakes"):
        assert page.locator(f"#{section}").is_hidden()
    assert page.locator("#pictures").is_visible()
    assert page.locator("#pictures img").count() == 0
    assert page.get_by_role("button", name="difference").count() == 0
    page = visit("one moment")
    assert page.locator("#embedding canvas").first.is_visible()
    assert page.locator("#embedding input").is_hidden()


def test_names_are_shown_as_they_are(visit: Any) -> None:
    page = visit("nasty")
    assert page.title() == NASTY[0]
    shown = page.locator("#scores tbody th bdi").all_text_contents()
    assert sorted(shown) == sorted(NASTY)
    page.locator("#curves select").select_option("0")


@pytest.mark.parametrize("name", ["four", "hundred"])
def test_table_sorts_by_mouse_and_keyboard(visit: Any, name: str) -> None:
    page = visit(name)
    head = page.get_by_role("columnheader", name="DOS")
    head.get_by_role("button").click()
    assert head.get_attribute("aria-sort") == "descending"
    order = [cell[:4] for cell in page.locator("#scores td:nth-child(3)").all_text_contents()]
    assert order == sorted(order, reverse=True)
    page.keyboard.press("Enter")  # the button is still focused
    assert head.get_attribute("aria-sort") == "ascending"
    again = [cell[:4] for cell in page.locator("#scores td:nth-child(3)").all_text_contents()]
    assert again == sorted(order)
    page.get_by_role("columnheader", name="class").get_by_role("button").click()
    names = page.locator("#scores tbody th bdi").all_text_contents()
    assert names == [f"class {j}" for j in range(len(names))]  # 2 before 10


def test_measure_can_be_chosen(visit: Any) -> None:
    page = visit("four")
    before = page.locator("#scores tbody").text_content()
    button = page.get_by_role("button", name="AUPRC")
    button.click()
    assert button.get_attribute("aria-pressed") == "true"
    assert page.locator("#scores tbody").text_content() != before


@pytest.mark.parametrize("name", ["four", "nasty"])
def test_csv_downloads_and_reads_back(visit: Any, name: str) -> None:
    page = visit(name)
    with page.expect_download() as download:
        page.get_by_role("button", name="Download CSV").click()
    assert download.value.suggested_filename == "classes.csv"
    text = Path(download.value.path()).read_bytes().decode("utf-8-sig")
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    made = STORIES[name]
    assert [row["class"].removeprefix("'") for row in rows] == list(made.classes)
    assert [row["rare"] == "1" for row in rows] == [
        j in made.minority for j in range(len(made.classes))
    ]
    assert 0 <= float(rows[0]["f1_dos_low"]) <= float(rows[0]["f1_dos"]) <= 1
    assert float(rows[0]["f1_dos"]) - float(rows[0]["f1_plain"]) == pytest.approx(
        float(rows[0]["f1_difference"]), abs=2e-4
    )
    if name == "nasty":
        assert rows[4]["class"].startswith("'=1+1")  # no formula


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_theme_follows_the_system_and_can_be_changed(visit: Any, scheme: Any) -> None:
    page = visit("four", color_scheme=scheme)
    page.wait_for_timeout(600)  # until the points rest
    ground = "getComputedStyle(document.body).backgroundColor"
    before, heat = page.evaluate(ground), drawn(page, "#confusion canvas")
    assert (before == "rgb(20, 23, 27)") == (scheme == "dark")
    page.get_by_role("button", name="Switch between light and dark").click()
    after = page.evaluate(ground)
    assert (after == "rgb(20, 23, 27)") == (scheme == "light")
    assert drawn(page, "#confusion canvas") != heat
    page.reload()
    assert page.evaluate(ground) == after


@pytest.mark.parametrize("motion", ["no-preference", "reduce"])
def test_slider_moves_the_points(visit: Any, motion: Any) -> None:
    page = visit("four", reduced_motion=motion)
    page.wait_for_timeout(600)
    before = drawn(page, "#embedding canvas")
    page.locator("#embedding input").focus()
    page.keyboard.press("ArrowRight")
    assert page.locator("#embedding output").text_content() == "after round 1"
    assert page.locator("#embedding input").get_attribute("aria-valuetext") == "after round 1"
    if motion == "no-preference":
        page.wait_for_timeout(700)
    after = drawn(page, "#embedding canvas")
    assert after != before
    page.wait_for_timeout(100)
    assert drawn(page, "#embedding canvas") == after  # arrived
    page.keyboard.press("ArrowLeft")
    page.wait_for_timeout(700)
    assert drawn(page, "#embedding canvas") == before


def test_play_goes_to_the_end(visit: Any) -> None:
    page = visit("four", reduced_motion="reduce")
    page.get_by_role("button", name="Play").click()
    page.locator("#embedding output", has_text="after round 2").wait_for()
    page.get_by_role("button", name="Play").wait_for()  # it has stopped by itself


@pytest.mark.parametrize("name", ["two", "hundred"])
def test_legend_hides_classes(visit: Any, name: str) -> None:
    page = visit(name, reduced_motion="reduce")
    whole = drawn(page, "#embedding canvas")
    button = page.locator("#embedding .legend > button").first
    button.click()
    assert button.get_attribute("aria-pressed") == "false"
    fewer = drawn(page, "#embedding canvas")
    assert fewer != whole
    page.get_by_role("button", name="none", exact=True).click()
    nobody = drawn(page, "#embedding canvas")
    assert nobody != fewer
    page.get_by_role("button", name="all", exact=True).click()
    assert drawn(page, "#embedding canvas") == whole


@pytest.mark.parametrize("name", ["two", "hundred"])
def test_confusion_tells_a_cell_by_mouse_and_keyboard(visit: Any, name: str) -> None:
    page = visit(name)
    canvas = page.locator("#confusion canvas").first
    canvas.scroll_into_view_if_needed()
    canvas.hover(position={"x": 200, "y": 100})
    assert "→ class" in page.locator("#tip").text_content()
    canvas.focus()
    page.mouse.move(0, 0)
    for key in ("ArrowDown", "ArrowRight"):
        page.keyboard.press(key)
    assert page.locator("#tip").is_visible()
    assert page.locator("#tip").text_content().count("class") == 2


def test_curves_can_be_chosen(visit: Any) -> None:
    page = visit("hundred")
    select = page.locator("#curves select")
    assert select.locator("option").count() == 101
    before = page.locator("#curves path").first.get_attribute("d")
    select.select_option("7")
    assert page.locator("#curves path").first.get_attribute("d") != before
    assert "AUPRC" in page.locator("#curves .key").text_content()


def test_every_table_and_figure_has_a_name(visit: Any) -> None:
    page = visit("four")
    assert page.evaluate(
        """() => [...document.querySelectorAll("svg[role=img], canvas, button, input, select")]
            .filter((one) => !one.closest("[aria-hidden=true], label"))
            .every((one) => one.getAttribute("aria-label") || one.textContent.trim())"""
    )
    assert page.evaluate(
        """() => [...document.querySelectorAll("table")]
            .every((one) => one.caption && one.querySelector("th[scope]"))"""
    )
