"""On which line of a TOML text each key and each element stands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["KeyPath", "Lines", "line_of", "positions"]

KeyPath = tuple[str | int, ...]
"""Keys and list indices from the top of a document to one of its values."""

Lines = Mapping[str | int, tuple[int, Any]]
"""Key or index → line, and the lines of what lies below (None below a single value)."""


def positions(text: str) -> Lines:
    """Lines, counted from 1, of all tables, keys and list elements of a TOML text.

    A table's line is that of its first header or key. Empty for a text that is not TOML.

    Raises
    ------
    OverflowError
        If more than a few of its numbers have more than 64 bits.
    RecursionError
        If it nests deeper than 80 levels.
    """
    from jostle import _core

    try:
        return _core.toml_lines(text)
    except ValueError:
        return {}


def line_of(lines: Lines, path: KeyPath) -> int:
    """Line of `path`, or of the innermost table around it that is written down."""
    line = 1
    below: Lines | None = lines
    for step in path:
        if below is None or step not in below:
            break
        line, below = below[step]
    return line
