"""Rules of hand-written pages: they read well on GitHub and in Sphinx, and stay few."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from doc_blocks.markers import DocsError, Part, outside_fences, parts
from doc_blocks.typed_numbers import FOLDER, typed_numbers

FOLDERS: Final = ("tutorials", "howto", "reference", "explanation")
MOST_PAGES: Final = 36
MOST_WORDS: Final = 45_000
_ALGORITHMS: Final = "algorithms"
"""Folder of pages that are outside the limits."""
_EXAMPLES: Final = ("output", "file", "figure")
"""Kinds of blocks that belong to a hand-written page."""
_LINK: Final = re.compile(r"!?\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]*)(?: \"[^\"]*\")?\)")
_CODE: Final = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)", re.DOTALL)


def problems(root: Path) -> Iterator[str]:
    """Yield what is wrong with the pages, with file and line."""
    docs = root / "docs"
    pages = {path: path.read_text("utf-8") for path in written_pages(docs)}
    for path, source in pages.items():
        for line, message in sorted([*_page(path, source), *_typed(path, source)]):
            yield f"{path.relative_to(root)}:{line}: {message}"
    if pages:
        yield from _contents(root, list(pages))
        yield from _limits(root, pages)


def written_pages(docs: Path) -> list[Path]:
    """Return the pages of the four folders."""
    return sorted(path for folder in FOLDERS for path in (docs / folder).rglob("*.md"))


def _page(path: Path, source: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(source.splitlines(), start=1):
        if re.match(r"\s*(`{3,}|~{3,}|:{3,})\s*\{", line):
            yield number, f"a directive, which GitHub shows as raw text: {line.strip()}"
        if line.startswith("<!-- number:"):
            yield (
                number,
                "a number at the start of a line ends the paragraph: put a word first",
            )
    for first, piece, is_code in outside_fences(1, source):
        if is_code:
            continue
        text = _CODE.sub(lambda code: re.sub(r"[^\n]", "·", code[0]), piece)
        for link in _LINK.finditer(text):
            message = _link(path, link[1], link[2])
            if message:
                yield first + text.count("\n", 0, link.start()), message
        for role in re.finditer(r"\{[a-z:-]+\}(?=·)", text):
            yield first + text.count("\n", 0, role.start()), f"a role: {role[0]}"


def _typed(path: Path, source: str) -> Iterator[tuple[int, str]]:
    """Yield typed numbers of a tutorial that none of its outputs shows."""
    if path.parent.name != FOLDER:
        return
    try:
        found = parts(path, source)
    except DocsError:
        # Reported elsewhere.
        return
    yield from typed_numbers(found)


def _link(path: Path, words: str, target: str) -> str | None:
    """Return what is wrong with a link."""
    if not words.strip():
        return f"a link without a text: ({target})"
    if re.match(r"[a-z]+:", target):
        return None
    file, _, anchor = target.partition("#")
    page = (path.parent / file).resolve() if file else path
    if not page.exists():
        return f"there is no {target}"
    if anchor and page.suffix == ".md" and anchor not in anchors(page.read_text("utf-8")):
        return f"there is no heading for {target}"
    return None


def anchors(source: str) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    found: set[str] = set()
    for _, piece, is_code in outside_fences(1, source):
        for title in () if is_code else re.findall(r"(?m)^#{1,6} +(.+?)(?: +#*)?$", piece):
            text = _LINK.sub(lambda link: link[1], title).lower()
            name = re.sub(r"[^\w\- ]", "", text).strip().replace(" ", "-")
            number = 0
            while (unique := f"{name}-{number}" if number else name) in found:
                number += 1
            found.add(unique)
    return found


def _contents(root: Path, pages: list[Path]) -> Iterator[str]:
    contents = root / "docs" / "contents.rst"
    if not contents.exists():
        yield "docs/contents.rst: it is missing, and lists all pages"
        return
    entries = re.findall(r"(?m)^ {3}([^\s:]\S*)$", contents.read_text("utf-8"))
    listed = {path for entry in entries for path in contents.parent.glob(f"{entry}.md")}
    for path in pages:
        if path not in listed:
            yield f"docs/contents.rst: {path.relative_to(contents.parent)} is not in it"


def _limits(root: Path, pages: dict[Path, str]) -> Iterator[str]:
    home = root / "docs" / "index.md"
    counted = {home: home.read_text("utf-8")} if home.exists() else {}
    counted |= {path: text for path, text in pages.items() if path.parent.name != _ALGORITHMS}
    words, by_hand = 0, 0
    for path, source in counted.items():
        try:
            found = parts(path, source)
        except DocsError:
            return
        mine = sum(_words(part) for part in found if not part.kind)
        words += mine
        tables = sum(_words(p) for p in found if p.kind and p.kind not in (*_EXAMPLES, "number"))
        by_hand += mine >= tables
    if by_hand > MOST_PAGES:
        yield f"docs: {by_hand} hand-written pages, of {MOST_PAGES} at most"
    if words > MOST_WORDS:
        yield f"docs: {words} hand-written words, of {MOST_WORDS} at most"


def _words(part: Part) -> int:
    return sum(any(letter.isalnum() for letter in word) for word in part.text.split())
