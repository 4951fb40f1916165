"""A study's page in a headless browser: nothing fails, pictures are there, tables sort."""

from __future__ import annotations

import os
import shutil

import pytest
from jostle import _core
from jostle.cli import status
from jostle.cli.environment import Environment

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.fixture
def page(folder, monkeypatch):
    """The page of the small study, opened."""
    if BROWSER is None:
        if os.environ.get("JOSTLE_TEST_BROWSER"):
            pytest.fail("there is no Chromium here: apt-get install chromium")
        pytest.skip("there is no Chromium here: apt-get install chromium")
    from playwright.sync_api import sync_playwright

    monkeypatch.chdir(folder.parent)
    assert status(["study", "studies/small", "--jobs", "1"], Environment(_core)) == 0
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        opened = browser.new_page(viewport={"width": 1280, "height": 2000})
        opened.said = []
        opened.on("console", lambda message: opened.said.append(message.text))
        opened.on("pageerror", lambda error: opened.said.append(str(error)))
        opened.on("requestfailed", lambda request: opened.said.append(request.url))
        opened.goto((folder.parent / "reports" / "small.html").as_uri())
        yield opened
        browser.close()


def test_a_page_stands_by_itself(page) -> None:
    widths = page.eval_on_selector_all("img", "every => every.map(one => one.naturalWidth)")
    assert len(widths) == 6
    assert min(widths) > 0
    fits = page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert fits, "the page is wider than the window"
    assert page.said == []


def test_tables_sort_by_a_click(page) -> None:
    head = page.locator("#numbers + .wide th", has_text="published")
    cells = page.locator("#numbers + .wide tbody tr td:nth-child(3)")

    def published() -> list[float]:
        return [float(text.split(" ")[0]) for text in cells.all_text_contents()]

    head.click()
    assert published() == sorted(published())
    assert head.get_attribute("aria-sort") == "ascending"
    head.click()
    assert published() == sorted(published(), reverse=True)
    assert page.said == []
