"""Check the links of built pages.

    python tools/links.py docs/_build/html [PAGE.html …]

Links to the given files are checked with their anchors. Links to other sites are checked by their
form only, because a test must not depend on other servers. Literal backticks on a page are
reported, too, because they are Markdown that was not rendered. The exit status is 1 if there is a
problem.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import SplitResult, unquote, urlsplit

_TARGETS = {"a": "href", "link": "href", "img": "src", "script": "src", "iframe": "src"}
_AS_IT_IS = {"code", "pre", "script", "style", "title", "textarea", "svg"}
_HOST = re.compile(r"[a-z0-9.-]+\.[a-z]{2,}(:\d+)?|localhost(:\d+)?|127\.0\.0\.1(:\d+)?", re.I)


@dataclass
class Link:
    """A link, its line, and whether it has text to click on."""

    target: str
    line: int
    words: bool


@dataclass
class Page:
    """The parts of a page that are needed to check links."""

    links: list[Link] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)
    twice: list[str] = field(default_factory=list)
    backticks: list[int] = field(default_factory=list)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.page = Page()
        self._within: list[str] = []
        self._open: Link | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if name := given.get("id"):
            if name in self.page.anchors:
                self.page.twice.append(name)
            self.page.anchors.add(name)
        if tag in _AS_IT_IS:
            self._within.append(tag)
        if tag == "img" and self._open is not None:
            self._open.words = True
        target = given.get(_TARGETS.get(tag, ""))
        if target is None:
            return
        named = tag != "a" or bool(given.get("aria-label") or given.get("title"))
        link = Link(target.strip(), self.getpos()[0], named)
        self.page.links.append(link)
        if tag == "a":
            self._open = link

    def handle_endtag(self, tag: str) -> None:
        if self._within and tag == self._within[-1]:
            self._within.pop()
        if tag == "a":
            self._open = None

    def handle_data(self, data: str) -> None:
        if self._open is not None and data.strip():
            self._open.words = True
        if not self._within and "`" in data:
            self.page.backticks.append(self.getpos()[0])


def read(text: str) -> Page:
    """Return the links and anchors of a page."""
    reader = _Reader()
    reader.feed(text)
    reader.close()
    return reader.page


def problems(places: Iterable[Path]) -> Iterator[str]:
    """Yield the problems of pages, which are files or all files of a folder.

    Yields
    ------
    str
        `FILE:LINE: problem, and target of the link`.
    """
    files = [
        file
        for place in places
        for file in (sorted(place.rglob("*.html")) if place.is_dir() else [place])
    ]
    pages = {file.resolve(): read(file.read_text("utf-8")) for file in files}
    for file in files:
        page = pages[file.resolve()]
        for name in page.twice:
            yield f"{file}: two elements are called #{name}"
        for line in page.backticks:
            yield f"{file}:{line}: a literal backtick"
        for link in page.links:
            said = _wrong(link, file.resolve(), pages)
            if said:
                yield f"{file}:{link.line}: {said}"


def _wrong(link: Link, file: Path, pages: dict[Path, Page]) -> str | None:
    """Return the problem of a link; None if there is none."""
    try:
        parts = urlsplit(link.target)
    except ValueError as error:
        return f"{link.target}: {error}"
    if not link.words:
        return f"{link.target}: the link has no words"
    if parts.scheme in ("http", "https"):
        right = _HOST.fullmatch(parts.netloc) and not re.search(r"[\s`<>]", link.target)
        return None if right else f"{link.target}: not the form of an address"
    if parts.scheme or parts.netloc or link.target == "":
        fine = parts.scheme in ("data", "mailto")
        return None if fine else f"“{link.target}”: not a link that a page may have"
    missing = _missing(parts, file, pages)
    return f"{link.target}: there is no such {missing}" if missing else None


def _missing(parts: SplitResult, file: Path, pages: dict[Path, Page]) -> str | None:
    """Return a message if the target file of a link, or the anchor in it, is missing."""
    target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
    if target.is_dir():
        target /= "index.html"
    if not target.is_file():
        return "file"
    if not parts.fragment or (target.suffix != ".html" and target != file):
        return None
    if target not in pages:
        pages[target] = read(target.read_text("utf-8"))
    return None if unquote(parts.fragment) in pages[target].anchors else "anchor"


def main() -> int:
    """Check the files that the command line names."""
    found = list(problems(map(Path, sys.argv[1:])))
    print("\n".join(found), end="\n" if found else "", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
