"""Sphinx configuration."""

from __future__ import annotations

import sys
from importlib import metadata
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent / "_ext"), str(Path(__file__).parents[1] / "tools")]

project = "jostle"
author = "the jostle authors"
copyright = "the jostle authors"  # noqa: A001
release = metadata.version("jostle")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "jostle_reference",
    "jostle_algorithms",
    "jostle_numbers",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
# The only page in reStructuredText lists all others; without it, the start page does.
root_doc = "contents" if (Path(__file__).parent / "contents.rst").exists() else "index"
# The start page of before lists no results, whose links lead to pages that it does not list either.
exclude_patterns = ["_build"] if root_doc == "contents" else ["_build", "results"]

myst_enable_extensions = ["colon_fence", "dollarmath", "deflist"]
myst_heading_anchors = 4

napoleon_google_docstring = False
napoleon_use_rtype = False
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
# Single backquotes in docstrings are code, as in Markdown.
default_role = "code"
smartquotes = False

html_theme = "furo"
html_title = f"jostle {release}"
html_static_path = ["_static"]
html_css_files = ["jostle.css"]
html_copy_source = False
html_show_sphinx = False
