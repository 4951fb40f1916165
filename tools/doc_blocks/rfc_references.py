"""References to RFCs in code, tests and texts, and the tables of sections that follow from them.

A reference has the form `RFC 9002 §7.3`; further sections of the same RFC follow as `and §7.5`. An
appendix is a section, too: `§B.6`. `tools/references/rfc_sections.tsv` has the title of each RFC
that is mentioned and, if its sections are, their numbers and headings.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from doc_blocks.source_texts import ROOT, files_with, passages

SECTIONS: Final = "tools/references/rfc_sections.tsv"
OMISSIONS: Final = "tools/references/rfc_omissions.toml"
_TEST: Final = re.compile(r"(^|/)tests?[/.]|_tests?\.rs|^suites/|^benches/")
_SECTION: Final = r"§(?:[0-9]+|[A-Z])(?:\.[0-9]+)*"
_REFERENCE: Final = re.compile(
    rf"\bRFC (?P<rfc>[0-9]+)(?P<list>(?:(?:,? and|,| to|;)? {_SECTION})*)"
)
_OTHER_FORM: Final = re.compile(
    r"\bRFC[0-9-]+\b|\bRFC [0-9]+(?:'s)?,? (?:\(?[Ss]ection|\(?[Ss]ec\.|\(?[Aa]ppendi|\(§)"
    r"|\bRFC [0-9]+(?:,| \()? ?[0-9]+\.[0-9]|\bRFC [0-9]+, (?:§|[A-Z]\.[0-9])"
    r"|(?:\b[Ss]ections? |\b[Aa]ppendix |§)[0-9A-Z.]+ of RFC [0-9]"
)


class Reference(NamedTuple):
    """A section of an RFC, named in a file; without a section, the RFC as a whole."""

    path: str
    rfc: str
    section: str


def references(text: str, path: str = "") -> Iterator[Reference]:
    """Yield the references of a text without line breaks."""
    for match in _REFERENCE.finditer(text):
        sections = re.findall(_SECTION, match["list"]) or [""]
        yield from (Reference(path, match["rfc"], section.lstrip("§")) for section in sections)


def malformed_references(text: str) -> list[str]:
    """Return references of a text that have another form, with what follows."""
    return [text[match.start() : match.end() + 12] for match in _OTHER_FORM.finditer(text)]


def headings(root: Path = ROOT) -> dict[str, dict[str, str]]:
    """Return the headings of each RFC by section; section "" has its title."""
    found: dict[str, dict[str, str]] = {}
    for line in (root / SECTIONS).read_text("utf-8").splitlines():
        rfc, section, heading = line.split("\t")
        found.setdefault(rfc, {})[section] = heading
    return found


@cache
def _code_references(root: Path) -> tuple[tuple[bool, Reference], ...]:
    """Return the references of code and tests, and whether each is one of a test."""
    found = []
    for path in files_with("RFC", root=root):
        code, _, test = (root / path).read_text("utf-8").partition("#[cfg(test)]\nmod tests {")
        for is_test, text in ((bool(_TEST.search(path)), code), (True, test)):
            if not path.startswith(("docs/", "tools/", "studies/", "tests/test_checked_ref")):
                found += [(is_test, each) for each in references(passages(text, "RFC"), path)]
    return tuple(found)


class Sections:
    """Where each section of an RFC is implemented and tested, or why it is not.

    Parameters
    ----------
    rfc
        The number of an RFC of `rfc_omissions.toml`.

    Attributes
    ----------
    implemented, tested
        Files by section.
    omitted
        Reason by section. It holds for the subsections without files, too.
    """

    def __init__(self, rfc: str, root: Path = ROOT) -> None:
        omissions = tomllib.loads((root / OMISSIONS).read_text("utf-8"))
        if rfc not in omissions["rfcs"]:
            raise ValueError(f"{OMISSIONS} has no RFC {rfc}")
        self._without_rules = re.compile(omissions["without_rules"])
        self.headings = headings(root)[rfc]
        self.omitted = {
            section: reason
            for reason, sections in omissions["rfcs"][rfc].items() for section in sections
        }  # fmt: skip
        self.implemented: dict[str, set[str]] = {}
        self.tested: dict[str, set[str]] = {}
        for is_test, reference in _code_references(root):
            if reference.rfc == rfc:
                files = self.tested if is_test else self.implemented
                files.setdefault(reference.section, set()).add(reference.path)

    def reason(self, section: str) -> str:
        """Return why a section or the one that it belongs to is not implemented, or ""."""
        parts = section.split(".")
        names = (".".join(parts[:count]) for count in range(len(parts), 0, -1))
        return next((self.omitted[name] for name in names if name in self.omitted), "")

    def shown(self) -> list[str]:
        """Return the sections of the page: with files, with a reason, or gaps."""
        cited = self.implemented.keys() | self.tested.keys()
        return [
            section for section, heading in self.headings.items()
            if section
            and (section in cited or section in self.omitted or self._is_gap(section, heading))
        ]  # fmt: skip

    def _is_gap(self, section: str, heading: str) -> bool:
        """Return whether a section has rules, no reason, and no subsections that have them."""
        is_parent = any(other.startswith(f"{section}.") for other in self.headings)
        above = self.headings.get(section.partition(".")[0], "")
        without_rules = any(self._without_rules.fullmatch(each) for each in (heading, above))
        return not (is_parent or without_rules or self.reason(section))

    def gaps(self) -> list[str]:
        """Return the sections that have neither code nor a reason."""
        return [
            section for section in self.shown()
            if section not in self.implemented and not self.reason(section)
        ]  # fmt: skip

    def idle_reasons(self) -> set[str]:
        """Return the sections with a reason that all have code: their reason is out of date."""
        needed = {
            name for section in self.headings if section not in self.implemented
            for name in self.omitted if f"{section}.".startswith(f"{name}.")
        }  # fmt: skip
        return self.omitted.keys() - needed

    def table(self) -> str:
        """Return the table of a page."""
        lines = ["| Section | Implemented in | Tested in |", "| --- | --- | --- |"]
        for section in self.shown():
            code = (
                _files(self.implemented.get(section, set())) or f"– {self.reason(section)}".strip()
            )
            tests = _files(self.tested.get(section, set())) or "–"
            lines.append(f"| §{section} {self.headings[section]} | {code} | {tests} |")
        return "\n".join(lines)


def pages(root: Path = ROOT) -> list[str]:
    """Return the numbers of the RFCs that have a page."""
    return list(tomllib.loads((root / OMISSIONS).read_text("utf-8"))["rfcs"])


def list_of_pages() -> list[str]:
    """Return the lines of a table of the pages."""
    lines = ["| RFC | Title | Sections: implemented | tested |", "| --- | --- | --- | --- |"]
    for rfc in pages():
        found = Sections(rfc)
        counts = [sum(name in files for name in found.headings if name)
                  for files in (found.implemented, found.tested)]  # fmt: skip
        title = f"| [{rfc}](rfcs/{rfc}.md) | {found.headings['']} | {counts[0]} | {counts[1]} |"
        lines.append(title)
    return lines


def _files(paths: set[str]) -> str:
    return ", ".join(f"`{path.removeprefix('crates/')}`" for path in sorted(paths))
