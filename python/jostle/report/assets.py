"""Scripts and styles of pages, and the policy under which a browser may run them."""

from __future__ import annotations

import base64
import functools
import hashlib
from collections.abc import Sequence
from importlib import resources

from markupsafe import Markup

STYLES = ("uplot.css", "page.css")
SCRIPTS = ("uplot.js", "charts.js", "page.js")
"""uPlot 1.6.32 (MIT, Leon Sorokin; licence in `static/uplot.LICENSE`), then our own."""

WITH_SEQUENCES = (*SCRIPTS, "sequence.js")
"""Of pages that have time–sequence diagrams."""


@functools.cache
def asset(name: str) -> str:
    """Text of a file in `static/`."""
    return (resources.files("jostle.report") / "static" / name).read_text("utf-8")


def styles() -> Markup:
    """Everything that belongs into a page's `<style>`."""
    return Markup("\n".join(asset(name) for name in STYLES))


def scripts(names: Sequence[str] = SCRIPTS) -> list[Markup]:
    """One text for each `<script>` of a page."""
    return [Markup(asset(name)) for name in names]


def policy(names: Sequence[str] = SCRIPTS, *, connect: str = "'none'") -> Markup:
    """Content security policy: the scripts of this package run, and nothing is fetched.

    Parameters
    ----------
    names
        Scripts of the page.
    connect
        Where its scripts may ask for data.
    """
    hashes = " ".join(f"'sha256-{_sha256(asset(name))}'" for name in names)
    return Markup(
        f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src {hashes}; "
        f"connect-src {connect}; base-uri 'none'; form-action 'none'"
    )


def _sha256(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
