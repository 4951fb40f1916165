"""Says which links of built pages lead nowhere.

    python tools/links.py docs/_build/html [PAGE.html …]

Links within what is given are followed, anchors included; those to other sites are judged by
their form only, because a test may not depend on somebody else's server. Backticks that stand on a
page as such are named, too: they are Markdown that nobody has read. Exit status 1 if there is
something to mend.
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
    """A link, the line that it stands on, and whether a reader finds something to click."""

    target: str
    line: int
    words: bool


@dataclass
class Page:
    """What of a page links can be judged by."""

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
    """Collect the links and anchors of a page."""
    reader = _Reader()
    reader.feed(text)
    reader.close()
    return reader.page


def problems(places: Iterable[Path]) -> Iterator[str]:
    """Say what is wrong with pages: files, or all in a folder.

    Yields
    ------
    str
        `FILE:LINE: what, and where it leads`.
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
    """Say what is wrong with a link of a page; None if nothing is."""
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
    """Say whether the file that a link leads to is missing, or the anchor in it."""
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
    """Check what the command line names."""
    found = list(problems(map(Path, sys.argv[1:])))
    print("\n".join(found), end="\n" if found else "", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
