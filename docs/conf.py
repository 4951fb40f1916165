"""Sphinx configuration."""

from __future__ import annotations

from importlib import metadata

project = "jostle"
author = "the jostle authors"
copyright = "the jostle authors"  # noqa: A001
release = metadata.version("jostle")

extensions = ["myst_parser"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
root_doc = "contents"
exclude_patterns = ["_build"]

myst_enable_extensions = ["colon_fence", "dollarmath", "deflist"]
myst_heading_anchors = 4

# Single backquotes in docstrings are code, as in Markdown.
default_role = "code"
smartquotes = False

html_theme = "furo"
html_title = f"jostle {release}"
html_static_path = ["_static"]
html_css_files = ["jostle.css"]
html_copy_source = False
html_show_sphinx = False
