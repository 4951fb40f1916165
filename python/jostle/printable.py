"""Text of other people, made safe to print.

Titles, names and error messages come from files that people exchange. A terminal obeys control
characters (ECMA-48), and the direction marks of Unicode change the order in which a line is read
(UTS 39, section 5.4), so neither is ever printed as it is.
"""

from __future__ import annotations

import re
from typing import Final

import click

__all__ = ["echo", "printable", "printable_markup", "single_line"]

# C0 but tabulator and line feed, DEL and C1; zero-width and direction marks (Bidi_Control);
# surrogates, which JSON can hold and UTF-8 cannot.
_UNSAFE: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060\u2066-\u2069\ufeff"
    "\ud800-\udfff]"
)


def printable(text: str) -> str:
    r"""Replace what a terminal or a reader would take for more than text by ``\u001b`` and so on.

    That is how JSON writes them, so a JSON document remains the same document.
    """
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def single_line(text: str) -> str:
    """Make a text printable that must not begin another line: a title, a name, a table's cell."""
    return printable(text).replace("\n", "\\u000a")


def printable_markup(value: object) -> object:
    """Make a value of a template printable; that it is markup stays as it is."""
    return type(value)(printable(value)) if isinstance(value, str) else value


def echo(text: object = "", *, err: bool = False) -> None:
    """Print a line, without characters that a terminal would obey."""
    click.echo(printable(str(text)), err=err)
