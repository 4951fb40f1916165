"""On which line of a TOML text each key and each element stands.

`tomllib` tells no positions and the format-preserving parsers keep theirs to themselves, so this
walks over a text that `tomllib` has already accepted. That makes it short: it looks only for where
keys and values begin and end, and never has to judge them.
"""

from __future__ import annotations

import re
import tomllib
from typing import Final

__all__ = ["KeyPath", "line_of", "positions"]

KeyPath = tuple[str | int, ...]
"""Keys and list indices from the top of a document to one of its values."""

_BLANK: Final = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*")
_SPACE: Final = re.compile(r"[ \t]*")
_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
# The closing delimiter of a multi-line string may be preceded by two quotes of its content.
_STRING: Final = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}(?!")'
    r"|'''.*?'{3,5}(?!')"
    r'|"(?:[^"\\]|\\.)*"'
    r"|'[^']*'",
    re.DOTALL,
)
_SCALAR: Final = re.compile(r"[^,\]}#\r\n]+")


def positions(text: str) -> dict[KeyPath, int]:
    """Lines, counted from 1, of all tables, keys and list elements of a valid TOML text.

    Parameters
    ----------
    text
        A document that `tomllib` accepts.

    Returns
    -------
    dict
        From path to line. A table's line is that of its first header or key.
    """
    return _Scanner(text).document()


def line_of(lines: dict[KeyPath, int], path: KeyPath) -> int:
    """Line of `path`, or of the innermost table around it that is written down."""
    for length in range(len(path), 0, -1):
        line = lines.get(path[:length])
        if line is not None:
            return line
    return 1


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.lines: dict[KeyPath, int] = {}
        # Number of elements of each array of tables so far, by the path of the array.
        self.tables: dict[KeyPath, int] = {}
        self.line = 1
        self.counted = 0

    def document(self) -> dict[KeyPath, int]:
        table: KeyPath = ()
        while self.skip(_BLANK):
            if self.text.startswith("[[", self.at):
                table = self.header(2)
            elif self.text[self.at] == "[":
                table = self.header(1)
            else:
                self.pair(table)
        return self.lines

    def skip(self, pattern: re.Pattern[str]) -> bool:
        match = pattern.match(self.text, self.at)
        if match is not None:
            self.at = match.end()
        return self.at < len(self.text)

    def note(self, path: KeyPath, start: int) -> None:
        self.line += self.text.count("\n", self.counted, start)
        self.counted = max(start, self.counted)
        for length in range(1, len(path) + 1):
            self.lines.setdefault(path[:length], self.line)

    def header(self, brackets: int) -> KeyPath:
        start = self.at
        self.at += brackets
        keys = self.keys()
        self.at += brackets
        path: KeyPath = ()
        for index, key in enumerate(keys):
            path = (*path, key)
            if brackets == 2 and index == len(keys) - 1:
                self.tables[path] = self.tables.get(path, 0) + 1
            if path in self.tables:
                path = (*path, self.tables[path] - 1)
        self.note(path, start)
        return path

    def keys(self) -> list[str]:
        keys = []
        while True:
            self.skip(_SPACE)
            quoted = self.text[self.at] in "\"'"
            match = (_STRING if quoted else _BARE).match(self.text, self.at)
            if match is None:
                raise ValueError("not a TOML document")
            self.at = match.end()
            # Only quoted keys can hold escapes; tomllib knows how to read them.
            keys.append(str(tomllib.loads(f"k = {match[0]}")["k"]) if quoted else match[0])
            self.skip(_SPACE)
            if self.text[self.at] != ".":
                return keys
            self.at += 1

    def pair(self, table: KeyPath) -> None:
        start = self.at
        path = (*table, *self.keys())
        self.at += 1  # the equals sign
        self.skip(_SPACE)
        self.note(path, start)
        self.value(path)

    def value(self, path: KeyPath) -> None:
        first = self.text[self.at]
        if first == "[":
            self.elements(path)
        elif first == "{":
            self.inline_table(path)
        else:
            self.skip(_STRING if first in "\"'" else _SCALAR)

    def elements(self, path: KeyPath) -> None:
        self.at += 1
        index = 0
        while self.skip(_BLANK) and self.text[self.at] != "]":
            if self.text[self.at] == ",":
                self.at += 1
                continue
            self.note((*path, index), self.at)
            self.value((*path, index))
            index += 1
        self.at += 1

    def inline_table(self, path: KeyPath) -> None:
        self.at += 1
        while self.skip(_BLANK) and self.text[self.at] != "}":
            if self.text[self.at] == ",":
                self.at += 1
            else:
                self.pair(path)
        self.at += 1
