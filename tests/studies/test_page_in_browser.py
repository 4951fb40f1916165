"""A study's page in a headless browser: nothing fails, charts answer, tables sort."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from browser import opened
from jostle import _core
from jostle.cli import status
from jostle.cli.environment import Environment
from test_links import check

from .test_setups import SETUPS

pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("shared_browser")]


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """The page of the small study with two more setups."""
    folder = tmp_path_factory.mktemp("pages")
    shutil.copytree(Path(__file__).parent / "small", folder / "studies" / "small")
    path = folder / "studies" / "small" / "study.toml"
    head, _, rest = path.read_text().partition("[experiments.flow]")
    first, *tables = SETUPS.partition("[[setups]]")
    path.write_text(f"{head}{first}[experiments.flow]{rest}{''.join(tables)}")
    words = ["study", "run", str(path.parent), "--jobs", "1", "-o", f"{folder / 'reports'}/"]
    assert status(words, Environment(_core)) == 0
    return folder / "reports" / "small.html"


@pytest.fixture
def page(file):
    """That page, opened."""
    with opened(file.as_uri()) as found:
        yield found
        assert found.said == []


def test_every_link_leads_somewhere(file) -> None:
    assert check(file) == (0, "")


def test_what_was_learned_comes_first_and_every_part_is_in_the_navigation(page) -> None:
    headings = page.locator("h2").evaluate_all("every => every.map(one => one.textContent.trim())")
    assert headings[:3] == ["Findings", "Verdicts", "Setups"]
    links = page.locator("nav a").evaluate_all("every => every.map(one => one.hash.slice(1))")
    parts = page.locator("h2[id], section[id]").evaluate_all("every => every.map(one => one.id)")
    assert links == parts


def test_claims_stand_under_what_became_of_them(page) -> None:
    groups = page.locator("details:has(> .verdicts)")
    assert groups.locator("> summary").all_inner_texts() == ["Depends on the setup (2)"]
    true, false = (groups.locator("li").nth(number) for number in (0, 1))
    answers = false.locator(".answer").all_inner_texts()
    assert [text.split(":")[0] for text in answers] == [
        "as printed", "slower link", "slower for BBR",
    ]  # fmt: skip

    def classes(claim) -> list[str]:
        return claim.locator(".answer").evaluate_all("every => every.map(e => e.className)")

    assert classes(true) == ["answer yes", "answer no", "answer no"]
    assert classes(false) == ["answer no", "answer no", "answer yes"]
    assert false.locator(".facts").inner_text() == (
        "Holds in: slower for BBR. Fails in: as printed, slower link."
    )


def test_figures_have_the_glyphs_of_their_texts(page) -> None:
    """They are stored once for all figures, and not rounded."""
    images = page.locator("img[data-svg]")
    page.wait_for_function("[...document.querySelectorAll('img[data-svg]')].every(it => it.src)")
    for source in images.evaluate_all("every => every.map(one => decodeURIComponent(one.src))"):
        used = set(re.findall(r'href="#(DejaVuSans-[^"]*)"', source))
        defined = re.findall(r'<path id="(DejaVuSans-[^"]*)"', source)
        assert used
        assert used <= set(defined)
        assert len(set(defined)) == len(defined)
        assert source.count('transform="scale(0.015625)"/>') >= len(defined)


def test_figures_of_other_setups_are_folded(page) -> None:
    assert page.locator(".figures").first.locator("figure").count() == 6
    folded = page.locator("details:has(> .figures)")
    assert not folded.evaluate("one => one.open")
    assert folded.locator("summary").inner_text() == "1 figure of other setups and backends"


def test_charts_show_the_setup_that_is_chosen(page) -> None:
    page.locator(".charts").scroll_into_view_if_needed()
    page.wait_for_selector('.charts[data-ready="yes"]')
    panel = page.locator(".panel").first
    box = panel.locator(".u-over").bounding_box()

    def goodput() -> float:
        page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + 30)
        words = panel.locator(".readout").inner_text().split(" · ")[1]
        page.mouse.move(0, 0)
        return float(words.rsplit(" ", 1)[1])

    assert goodput() == pytest.approx(10, rel=0.1)
    page.get_by_label("setup", exact=True).select_option(label="slower link")
    # After a loss the goodput of an interval is lower or higher than the rate of the link.
    assert 3 < goodput() < 7
    page.locator(".legend-row button").first.click()
    assert page.locator('.legend-row button[aria-pressed="false"]').count() == 1


@pytest.mark.parametrize(
    ("scheme", "width"),
    [("light", 420), ("dark", 1280), pytest.param("dark", 420, marks=pytest.mark.slow)],
)
def test_every_screen_is_fine(file, scheme: str, width: int) -> None:
    how = {"color_scheme": scheme, "viewport": {"width": width, "height": 900}}
    with opened(file.as_uri(), **how) as page:
        fits = page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        assert fits, "the page is wider than the window"
        paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (paper == "rgb(255, 255, 255)") == (scheme == "light")
        wide = page.locator("#claims + details > .wide")
        assert not wide.is_visible(), "details are folded"
        page.locator('nav a[href="#claims"]').click()
        wide.scroll_into_view_if_needed()
        page.wait_for_function(
            "document.querySelector('#claims + details > .wide').className !== 'wide'"
            " || window.innerWidth > 1000"
        )
        assert ("more-right" in wide.get_attribute("class")) == (width == 420)
        assert page.said == []


def test_a_page_stands_by_itself(page) -> None:
    widths = page.eval_on_selector_all("img", "every => every.map(one => one.naturalWidth)")
    assert len(widths) == 7
    assert min(widths) > 0
    fits = page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert fits, "the page is wider than the window"


def test_tables_sort_by_a_click(page) -> None:
    page.locator('nav a[href="#numbers"]').click()
    head = page.locator("#numbers + details > .wide th", has_text="published")
    cells = page.locator("#numbers + details > .wide tbody tr td:nth-child(3)")

    def published() -> list[float]:
        return [float(text.split(" ")[0]) for text in cells.all_text_contents()]

    head.click()
    assert published() == sorted(published())
    assert head.get_attribute("aria-sort") == "ascending"
    head.click()
    assert published() == sorted(published(), reverse=True)


def test_figures_are_unpacked(page) -> None:
    page.wait_for_function(
        "[...document.querySelectorAll('.figures img')].every(one => one.naturalWidth > 100)"
    )
    assert page.locator(".figures img").count() > 0
