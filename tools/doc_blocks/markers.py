"""Markers of generated text in Markdown pages.

A block is between two marker lines:

    <!-- generated: KIND ARGUMENTS -->
    …
    <!-- end -->

and a number is inside a sentence: `<!-- number: NAME -->88 %<!-- end -->`. GitHub and Sphinx show
the text and hide the markers. Markers in code (fenced or between backticks) are examples.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

END: Final = "<!-- end -->"
_BLOCK: Final = re.compile(r"<!-- generated:\s*(\S+)\s*(.*?)\s*-->\s*$")
_FENCE: Final = re.compile(r"\s{0,3}(`{3,}|~{3,})(.*)$")
_NUMBER: Final = re.compile(
    r"(?P<code>(?P<ticks>`+)(?!`).+?(?<!`)(?P=ticks)(?!`))"
    r"|<!-- number:\s*(?P<name>[^\s>]*)\s*-->(?P<text>(?:(?!<!--).)*)(?P<end><!-- end -->)?",
    re.DOTALL,
)


class DocsError(Exception):
    """A fault of a page, with its file and line."""

    def __init__(self, path: Path, line: int, message: str) -> None:
        super().__init__(f"{path}:{line}: {message}")


@dataclass(frozen=True)
class Part:
    """A piece of a page.

    Attributes
    ----------
    line
        Line of its first character, or of its marker.
    text
        Text between the markers, or text that is not generated.
    kind
        Kind of a block, "number", or "" for text that is not generated.
    arguments
        Arguments of a block, or the name of a number.
    opening
        The opening marker with its line break; "" without a marker.
    """

    line: int
    text: str
    kind: str = ""
    arguments: str = ""
    opening: str = ""

    def with_text(self, text: str) -> str:
        """Return the source of the part with another text between its markers."""
        if not self.kind:
            return self.text
        if self.kind == "number":
            return f"{self.opening}{text}{END}"
        return f"{self.opening}{text.strip(chr(10))}\n{END}\n" if text else f"{self.opening}{END}\n"


def parts(path: Path, source: str) -> list[Part]:
    """Split a page into generated and other text.

    Raises
    ------
    DocsError
        When a marker is not closed, or an end has no marker.
    """
    found: list[Part] = []
    plain: list[str] = []
    start = 1
    block: tuple[int, str, str, str] | None = None
    body: list[str] = []
    fence = ""
    for number, line in enumerate(source.splitlines(keepends=True), start=1):
        if block is not None:
            if line.strip() == END:
                at, kind, arguments, opening = block
                found.append(Part(at, "".join(body).strip("\n"), kind, arguments, opening))
                block, start = None, number + 1
            elif _BLOCK.match(line) and not fence:
                raise DocsError(path, block[0], f"`generated: {block[1]}` has no `{END}`")
            else:
                fence = _fence_after(fence, line)
                body.append(line)
            continue
        fence = _fence_after(fence, line)
        marker = None if fence else _BLOCK.match(line)
        if marker is None:
            plain.append(line)
            continue
        found += _inline(path, start, "".join(plain))
        plain, body = [], []
        block = (number, marker[1], marker[2], line.rstrip("\n") + "\n")
    if block is not None:
        raise DocsError(path, block[0], f"`generated: {block[1]}` has no `{END}`")
    return found + list(_inline(path, start, "".join(plain)))


def _fence_after(fence: str, line: str) -> str:
    """Return the fence of code that is open after a line, "" for none."""
    match = _FENCE.match(line)
    if match is None:
        return fence
    if not fence:
        return match[1]
    closes = match[1].startswith(fence) and not match[2].strip()
    return "" if closes else fence


def _inline(path: Path, start: int, text: str) -> Iterator[Part]:
    """Yield the numbers of text that has no blocks, and what stands between them."""
    for line, piece, is_code in outside_fences(start, text):
        if is_code:
            yield Part(line, piece)
            continue
        after = 0
        for match in _NUMBER.finditer(piece):
            at = line + piece.count("\n", 0, match.start())
            if match["code"]:
                continue
            if match["end"] is None:
                raise DocsError(path, at, f"`number: {match['name']}` has no `{END}`")
            _no_stray_end(path, line, piece, after, match.start())
            if match.start() > after:
                yield Part(line + piece.count("\n", 0, after), piece[after : match.start()])
            opening = match[0][: match.start("text") - match.start()]
            yield Part(at, match["text"], "number", match["name"], opening)
            after = match.end()
        _no_stray_end(path, line, piece, after, len(piece))
        if after < len(piece):
            yield Part(line + piece.count("\n", 0, after), piece[after:])


def _no_stray_end(path: Path, line: int, piece: str, after: int, before: int) -> None:
    bare = re.sub(
        r"(`+)(?!`).+?(?<!`)\1(?!`)", lambda code: "·" * len(code[0]), piece[after:before]
    )
    at = bare.find(END)
    if at >= 0:
        where = line + piece.count("\n", 0, after + at)
        raise DocsError(path, where, f"`{END}` without an opening marker before it")


def outside_fences(start: int, text: str) -> Iterator[tuple[int, str, bool]]:
    """Yield (line, piece, whether it is fenced code) of a text."""
    lines: list[str] = []
    first, fence = start, ""
    for number, line in enumerate(text.splitlines(keepends=True), start=start):
        after = _fence_after(fence, line)
        if after and not fence:
            if lines:
                yield first, "".join(lines), False
            lines, first = [], number
        lines.append(line)
        if fence and not after:
            yield first, "".join(lines), True
            lines, first = [], number + 1
        fence = after
    if lines:
        yield first, "".join(lines), bool(fence)
