"""A store in the browser: what was run, tables over conditions, charts of any runs."""

from __future__ import annotations

from jostle.report.viewer.redirect import redirect_file
from jostle.report.viewer.server import StoreServer

__all__ = ["StoreServer", "redirect_file"]
