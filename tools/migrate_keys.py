#!/usr/bin/env python3
"""Give the keys of TOML files of earlier versions their new names.

    python tools/migrate_keys.py FILE…          rewrites scenarios, studies and suites
    python tools/migrate_keys.py --check FILE…  lists what would change; exit status 1 if anything

Comments, order and layout stay. Files of other kinds are left alone. A file that is not
valid TOML, or whose names cannot all be changed, is reported and left alone; the exit status is 2.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from jostle.scenario.parsing.renamed_keys import FileKind, Position, file_kind, renames_in

_BLANK = re.compile(r"[ \t]*")
_SPACE = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_BASIC = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_LITERAL = re.compile(r"'[^'\n]*'")
_LONG_BASIC = re.compile(r'"""(?:[^\\]|\\.)*?"""(?:""|")?', re.DOTALL)
_LONG_LITERAL = re.compile(r"'''.*?'''(?:''|')?", re.DOTALL)
_PLAIN = re.compile(r"[^,\]}\s#]+(?:[ ][^,\]}\s#]+)?")
_AT_LINE = re.compile(r"\(at line (\d+)")


class MigrationError(Exception):
    """A file cannot be changed."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


@dataclass(frozen=True)
class Edit:
    """A name that changes: where it is, and its new text."""

    start: int
    end: int
    new: str


@dataclass(frozen=True)
class Assignment:
    """A line that begins with a key: where the key, the spaces before `=` and the value end."""

    start: int
    key_end: int
    equals: int
    end: int


@dataclass
class Scan:
    """Names that change in a text, and the lines with keys."""

    text: str
    kind: FileKind
    position: int = 0
    edits: list[Edit] = field(default_factory=list)
    assignments: list[Assignment] = field(default_factory=list)

    def run(self) -> None:
        """Read the whole text."""
        table = Position(self.kind)
        self._skip(_SPACE)
        while self.position < len(self.text):
            if self.text.startswith("[", self.position):
                array = self.text.startswith("[[", self.position)
                self.position += 2 if array else 1
                table = self._key(Position(self.kind))
                if array:
                    table = table.below(0)
                self.position += 2 if array else 1
            else:
                self._assignment(table, is_line=True)
            self._skip(_SPACE)

    def _assignment(self, table: Position, *, is_line: bool) -> None:
        start = self.position
        place = self._key(table)
        key_end = len(self.text[: self.position].rstrip(" \t"))
        equals = self.position
        self._expect("=")
        self._skip(_BLANK)
        self._value(place)
        if is_line:
            self.assignments.append(Assignment(start, key_end, equals, self.position))

    def _key(self, place: Position) -> Position:
        """Read a key with its dots; return the place of what it names."""
        while True:
            self._skip(_BLANK)
            start = self.position
            raw = self._match(_BASIC, _LITERAL, _BARE)
            key = _decoded(raw)
            # Only the last step of a key in a table that is written as one is the name of a value.
            new = place.renamed_key(key)
            if new is not None:
                text = new if raw[0] not in "\"'" else f"{raw[0]}{_encoded(new, raw[0])}{raw[0]}"
                self.edits.append(Edit(start, self.position, text))
            place = place.below(key)
            self._skip(_BLANK)
            if not self.text.startswith(".", self.position):
                return place
            self.position += 1

    def _value(self, place: Position) -> None:
        start = self.position
        head = self.text[start : start + 1]
        if head == "[":
            self.position += 1
            self._skip(_SPACE)
            while not self.text.startswith("]", self.position):
                self._value(place.below(0))
                self._separator()
            self.position += 1
        elif head == "{":
            self.position += 1
            self._skip(_SPACE)
            while not self.text.startswith("}", self.position):
                self._assignment(place, is_line=False)
                self._separator()
            self.position += 1
        elif head and head in "\"'":
            raw = self._match(_LONG_BASIC, _LONG_LITERAL, _BASIC, _LITERAL)
            if raw.startswith(('"""', "'''")) or not place.rule:
                return
            new = place.renamed_text(_decoded(raw))
            if new is not None:
                self.edits.append(Edit(start, self.position, f"{head}{_encoded(new, head)}{head}"))
        else:
            self._match(_PLAIN)

    def _separator(self) -> None:
        self._skip(_SPACE)
        if self.text.startswith(",", self.position):
            self.position += 1
            self._skip(_SPACE)

    def _skip(self, what: re.Pattern[str]) -> None:
        found = what.match(self.text, self.position)
        if found is not None:
            self.position = found.end()

    def _match(self, *forms: re.Pattern[str]) -> str:
        for form in forms:
            found = form.match(self.text, self.position)
            if found is not None:
                self.position = found.end()
                return found[0]
        raise MigrationError(self.line(self.position), "this is not understood")

    def _expect(self, word: str) -> None:
        if not self.text.startswith(word, self.position):
            raise MigrationError(self.line(self.position), f"`{word}` expected")
        self.position += len(word)

    def line(self, position: int) -> int:
        """Return the number of the line of a position."""
        return self.text.count("\n", 0, position) + 1


def migrated(text: str, name: str, kind: FileKind | None = None) -> tuple[str, list[str]]:
    """Return a text with new names, and what changed as `LINE: old → new`.

    Parameters
    ----------
    text
        A TOML file.
    name
        Name of the file, without its folder.
    kind
        What kind of file it is; by its name and keys if absent.

    Raises
    ------
    MigrationError
        If it is not valid TOML, or has a name that cannot be changed.
    """
    document = _document(text)
    kind = kind or file_kind(name, document)
    if kind is None or next(renames_in(document, kind), None) is None:
        return text, []
    scan = Scan(text, kind)
    scan.run()
    changes = [
        f"{scan.line(edit.start)}: {text[edit.start : edit.end]} → {edit.new}"
        for edit in scan.edits
    ]
    edits = sorted([*scan.edits, *_aligned(scan)], key=lambda edit: (edit.start, edit.end))
    parts, end = [], 0
    for edit in edits:
        parts += [text[end : edit.start], edit.new]
        end = edit.end
    new = "".join([*parts, text[end:]])
    left = next(renames_in(_document(new), kind), None)
    if left is not None:
        key = ".".join(str(step) for step in left.path)
        raise MigrationError(1, f"{key}: {left.message}; change it by hand")
    return new, changes


def _document(text: str) -> dict[str, object]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = _AT_LINE.search(str(error))
        line = int(found[1]) if found else text.rstrip("\n").count("\n") + 1
        raise MigrationError(line, f"not valid TOML: {error}") from None
    except RecursionError:
        raise MigrationError(1, "not valid TOML: too many brackets within each other") from None


def _aligned(scan: Scan) -> Iterator[Edit]:
    """Set the spaces before `=`, so that those that were in one column still are."""
    # Studies and suites have texts of many words: only the lines of renamed keys change there.
    blocks = _blocks(scan) if scan.kind == "scenario" else ([one] for one in scan.assignments)
    for block in blocks:
        starts = {one.start for one in block}
        ends = {one.start: one.key_end for one in block}
        grown = {
            start: sum(
                len(edit.new) - (edit.end - edit.start)
                for edit in scan.edits
                if start <= edit.start < ends[start]
            )
            for start in starts
        }
        if not any(grown.values()):
            continue
        lengths = {one.start: one.key_end - one.start + grown[one.start] for one in block}
        if len(block) == 1:
            (one,) = block
            width = max(one.equals - one.start, lengths[one.start] + 1)
            if one.equals - one.key_end <= 1:
                width = lengths[one.start] + one.equals - one.key_end
        else:
            padded = any(one.equals - one.key_end > 1 for one in block)
            longest = max(lengths.values()) + 1
            was = max(one.key_end - one.start for one in block) + 1
            column = block[0].equals - block[0].start
            # A column that the longest key set is set by it again; a wider one stays.
            width = longest if column == was or not padded else max(column, longest)
        for one in block:
            spaces = " " * (width - lengths[one.start])
            if len(spaces) != one.equals - one.key_end:
                yield Edit(one.key_end, one.equals, spaces)


def _blocks(scan: Scan) -> Iterator[list[Assignment]]:
    """Keys on lines that follow each other, whose `=` are in one column."""
    block: list[Assignment] = []
    for one in scan.assignments:
        follows = (
            block
            and scan.line(one.start) == scan.line(block[-1].end) + 1
            and one.equals - one.start == block[-1].equals - block[-1].start
        )
        if block and not follows:
            yield block
            block = []
        block.append(one)
    if block:
        yield block


def _decoded(raw: str) -> str:
    if raw[0] == '"' and "\\" in raw:
        return str(tomllib.loads(f"value = {raw}")["value"])
    return raw[1:-1] if raw[0] in "\"'" else raw


def _encoded(text: str, quote: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"') if quote == '"' else text


def _rewrite(path: Path, text: str) -> None:
    """Write a file as a whole or not at all."""
    with tempfile.NamedTemporaryFile(
        "w", dir=path.parent, delete=False, encoding="utf-8", newline=""
    ) as file:
        file.write(text)
    os.chmod(file.name, path.stat().st_mode)
    Path(file.name).replace(path)


def main(arguments: Sequence[str] | None = None) -> int:
    """Return the exit status."""
    parser = argparse.ArgumentParser(
        prog="migrate_keys.py", description="Give keys of earlier versions their new names."
    )
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--check", action="store_true", help="list what would change")
    given = parser.parse_args(arguments)
    status = 0
    for path in given.files:
        try:
            text = path.read_bytes().decode()
            new, changes = migrated(text, path.name)
            if new != text and not given.check:
                _rewrite(path, new)
        except MigrationError as error:
            print(f"{path}:{error.line}: {error}", file=sys.stderr)
            status = 2
            continue
        except (OSError, UnicodeDecodeError) as error:
            print(f"{path}: {error}", file=sys.stderr)
            status = 2
            continue
        for change in changes:
            print(f"{path}:{change}")
        if changes and given.check:
            status = max(status, 1)
    return status


if __name__ == "__main__":
    sys.exit(main())
