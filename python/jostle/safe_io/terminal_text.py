"""Escaping of untrusted text for terminals.

Titles, names and error messages come from files that users exchange. A terminal interprets control
characters (ECMA-48), and Unicode direction marks change the order in which a line is read (UTS 39,
section 5.4). Both are escaped before printing.
"""

from __future__ import annotations

import re
import textwrap
from typing import Final

import click

__all__ = ["echo", "escape_control_characters", "escape_markup", "single_line", "wrap_words"]

# C0 except tab and line feed, DEL and C1; zero-width characters and direction marks
# (Bidi_Control); surrogates, which JSON allows but UTF-8 does not.
_UNSAFE: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060\u2066-\u2069\ufeff"
    "\ud800-\udfff]"
)


def escape_control_characters(text: str) -> str:
    r"""Replace control characters and direction marks by ``\u001b`` and so on.

    This is JSON's escape syntax, so a JSON document keeps its meaning.
    """
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def single_line(text: str) -> str:
    """Escape text, including line feeds: a title, a name, a table cell."""
    return escape_control_characters(text).replace("\n", "\\u000a")


class _NameWrapper(textwrap.TextWrapper):
    """A wrapper that also breaks a list of names, such as `cwnd,rtt`, after a comma."""

    wordsep_simple_re = re.compile(r"([\t\n ]+)|(?<=,)(?=[a-z])")


def wrap_words(text: str, width: int) -> list[str]:
    """Wrap text at spaces and in lists of names, never within a name."""
    return _NameWrapper(width, break_long_words=False, break_on_hyphens=False).wrap(text)


def escape_markup(value: object) -> object:
    """Escape a value of a template, and keep its type, which marks markup."""
    return type(value)(escape_control_characters(value)) if isinstance(value, str) else value


def echo(text: object = "", *, err: bool = False) -> None:
    """Print a line with control characters escaped."""
    click.echo(escape_control_characters(str(text)), err=err)
