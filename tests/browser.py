"""A headless Chromium for tests of pages."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")


_launched: list[Any] = []
"""The browser that `launched` has started."""


@contextlib.contextmanager
def launched() -> Iterator[Any]:
    """Start a browser for several pages, if there is one; `opened` uses it meanwhile.

    No event loop can run in this thread until it ends.
    """
    if BROWSER is None:
        yield None
        return
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        _launched.append(browser)
        try:
            yield browser
        finally:
            _launched.remove(browser)
            browser.close()


@contextlib.contextmanager
def opened(url: str, **how: Any) -> Iterator[Any]:
    """Open a page; `page.said` is what its console said, and what it failed to fetch."""
    if BROWSER is None:
        if os.environ.get("JOSTLE_TEST_BROWSER"):
            pytest.fail("there is no Chromium here: apt-get install chromium")
        pytest.skip("there is no Chromium here: apt-get install chromium")
    with contextlib.ExitStack() as ends:
        browser = _launched[0] if _launched else ends.enter_context(launched())
        # Pages of other tests share nothing with it.
        context = browser.new_context(**({"viewport": {"width": 1280, "height": 2000}} | how))
        ends.callback(context.close)
        page = context.new_page()
        page.said = []
        page.on("console", lambda message: page.said.append(message.text))
        page.on("pageerror", lambda error: page.said.append(str(error)))
        page.on("requestfailed", lambda request: page.said.append(request.url))
        page.goto(url)
        yield page
