"""Line numbers of the keys and list elements of a TOML text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["KeyPath", "Lines", "line_of", "positions"]

KeyPath = tuple[str | int, ...]
"""Keys and list indices that lead from the top of a document to a value."""

Lines = Mapping[str | int, tuple[int, Any]]
"""Line by key or index, with the lines of the nested values (None for a single value)."""


def positions(text: str) -> Lines:
    """Return the lines, counted from 1, of all tables, keys and list elements of a TOML text.

    A table has the line of its first header or key. The result is empty if the text is not TOML.

    Raises
    ------
    OverflowError
        If the text contains more than a few numbers with more than 64 bits.
    RecursionError
        If the text nests deeper than 80 levels.
    """
    from jostle import _core

    try:
        return _core.toml_lines(text)
    except ValueError:
        return {}


def line_of(lines: Lines, path: KeyPath) -> int:
    """Return the line of `path`, or of the innermost enclosing table that the text contains."""
    line = 1
    below: Lines | None = lines
    for step in path:
        if below is None or step not in below:
            break
        line, below = below[step]
    return line
