"""A study's page in a headless browser: nothing fails, pictures are there, tables sort."""

from __future__ import annotations

import pytest
from browser import opened
from jostle import _core
from jostle.cli import status
from jostle.cli.environment import Environment


@pytest.fixture
def page(folder, monkeypatch):
    """The page of the small study, opened."""
    monkeypatch.chdir(folder.parent)
    assert status(["study", "studies/small", "--jobs", "1"], Environment(_core)) == 0
    with opened((folder.parent / "reports" / "small.html").as_uri()) as found:
        yield found


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
