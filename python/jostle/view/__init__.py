"""A store in the browser: what was run, tables over conditions, charts of any runs."""

from __future__ import annotations

from jostle.view.redirect import redirect_file
from jostle.view.server import Viewer

__all__ = ["Viewer", "redirect_file"]
