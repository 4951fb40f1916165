"""A report in a headless browser: zoom, hover, hiding, conditions, every kind of screen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jostle
import pytest
from browser import opened
from jostle.report import write_report
from test_report import SCENARIO

pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("shared_browser")]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("pages")
    file = folder / "question.toml"
    file.write_text(SCENARIO.replace("A </script> & a $ title", "A question"), "utf-8")
    return write_report([jostle.run(file)], folder / "report.html", [str(file)]).as_uri()


@pytest.fixture
def page(address: str):
    with opened(address) as found:
        found.wait_for_selector('.charts[data-ready="yes"]')
        yield found
        assert found.said == []


def range_of(page: Any) -> list[float]:
    """What of the time axis the first panel shows, by the values under its two edges."""
    box = page.locator(".panel .u-over").first.bounding_box()
    shown = []
    for x in (box["x"] + 2, box["x"] + box["width"] - 2):
        page.mouse.move(x, box["y"] + 20)
        shown.append(float(page.locator(".readout").first.inner_text().split(" s")[0]))
    return shown


def test_a_report_stands_by_itself(page: Any) -> None:
    assert page.locator(".panel").count() == 5
    fits = page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert fits, "the page is wider than the window"


def test_dragging_zooms_every_panel_and_a_double_click_shows_everything(page: Any) -> None:
    assert range_of(page) == [0.5, 3.5]
    box = page.locator(".panel .u-over").nth(1).bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.3, box["y"] + 30)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.7, box["y"] + 40, steps=4)
    page.mouse.up()
    assert range_of(page) == [1.5, 2.5]
    page.locator(".panel .u-over").first.dblclick()
    assert range_of(page) == [0.5, 3.5]


def test_one_cursor_reads_every_panel(page: Any) -> None:
    box = page.locator(".panel .u-over").first.bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + 30)
    texts = page.locator(".readout").all_inner_texts()
    assert all(text.startswith("2.5 s · ") for text in texts)
    assert "incumbent (cubic)" in texts[0]
    assert "newcomer (bbr)" in texts[0]


def test_a_controller_keeps_its_colour_in_every_condition(tmp_path: Path) -> None:
    file = tmp_path / "newcomers.toml"
    grid = '\n[grid]\n"flows.newcomer.controller" = ["bbr", "reno", "cubic"]\n'
    file.write_text(SCENARIO.partition("[grid]")[0] + grid, "utf-8")
    path = write_report([jostle.run(file)], tmp_path / "report.html", [str(file)])
    with opened(path.as_uri()) as page:
        page.wait_for_selector('.charts[data-ready="yes"]')

        def colours() -> dict[str, str]:
            found = {}
            for button in page.locator(".legend-row button").all():
                mark = button.locator(".mark")
                found[button.inner_text()] = mark.get_attribute("style")
            return found

        seen: dict[str, set[str]] = {}
        for controller in ("bbr", "reno", "cubic"):
            page.get_by_label("newcomer.controller").select_option(label=controller)
            shown = colours()
            assert len(set(shown.values())) == len(shown)
            for name, style in shown.items():
                seen.setdefault(name, set()).add(style)
        assert {name: len(styles) for name, styles in seen.items()} == dict.fromkeys(seen, 1)
        assert len({style for styles in seen.values() for style in styles}) == len(seen)


def test_flows_are_hidden_and_shown(page: Any) -> None:
    button = page.locator(".legend-row button", has_text="newcomer")
    button.click()
    assert button.get_attribute("aria-pressed") == "false"
    box = page.locator(".panel .u-over").first.bounding_box()
    page.mouse.move(box["x"] + 300, box["y"] + 30)
    assert "newcomer" not in page.locator(".readout").first.inner_text()
    page.locator(".legend-row button", has_text="incumbent").click(modifiers=["Shift"])
    pressed = page.locator(".legend-row button").evaluate_all(
        "every => every.map(one => one.getAttribute('aria-pressed'))"
    )
    assert pressed.count("true") == 1


def test_conditions_measures_and_runs_are_chosen(page: Any) -> None:
    page.get_by_label("bottleneck.rate").select_option(label="20 Mbit/s")
    drawings = page.locator("svg.topology:visible")
    assert drawings.count() == 1
    assert "20 Mbit/s" in drawings.text_content()
    page.locator("summary", has_text="beside").click()
    page.get_by_label("10 Mbit/s", exact=True).check()
    box = page.locator(".panel .u-over").first.bounding_box()
    page.mouse.move(box["x"] + 300, box["y"] + 30)
    assert "— 10 Mbit/s" in page.locator(".readout").first.inner_text()
    page.locator("summary", has_text="beside").click()
    page.get_by_label("draw").select_option(label="every run")
    page.locator("summary", has_text="measures").click()
    page.get_by_label("Throughput", exact=True).check()
    assert page.locator(".panel").count() == 6
    page.locator(".panels").focus()
    page.keyboard.press("]")
    assert (
        page.get_by_label("bottleneck.rate").locator("option:checked").inner_text() == "10 Mbit/s"
    )


@pytest.mark.parametrize(
    ("scheme", "width"),
    [("light", 420), ("dark", 1280), pytest.param("dark", 420, marks=pytest.mark.slow)],
)
def test_every_screen_is_fine(address: str, scheme: str, width: int) -> None:
    how = {"color_scheme": scheme, "viewport": {"width": width, "height": 900}}
    with opened(address, **how) as page:
        page.mouse.wheel(0, 600)
        page.wait_for_selector('.charts[data-ready="yes"]')
        fits = page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        assert fits, "the page is wider than the window"
        paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (paper == "rgb(255, 255, 255)") == (scheme == "light")
        assert page.said == []


def test_the_columns_that_name_a_row_stay_while_a_table_scrolls(address: str) -> None:
    with opened(address, viewport={"width": 390, "height": 900}) as page:
        box = page.locator(".wide:has(table)").first
        assert box.evaluate("wide => wide.scrollWidth > wide.clientWidth")
        cells = box.locator("tbody tr").first.locator("td")
        before = cells.first.bounding_box()["x"]
        box.evaluate("wide => { wide.scrollLeft = 100; }")
        assert cells.first.bounding_box()["x"] == before
        assert cells.last.evaluate("cell => getComputedStyle(cell).position") == "static"
        assert page.said == []


def test_a_page_is_ready_at_once(address: str) -> None:
    with opened(address) as page:
        page.wait_for_selector('.charts[data-ready="yes"]', timeout=10_000)
        assert Path(page.url.removeprefix("file://")).stat().st_size < 5_000_000
