"""References to RFCs in code, tests and texts, and the tables of sections that follow from them.

A reference has the form `RFC 9002 §7.3`; further sections of the same RFC follow as `and §7.5`. An
appendix is a section, too: `§B.6`. `tools/references/rfc_sections.tsv` has the title of each RFC
that is mentioned and, if its sections are, their numbers and headings.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from doc_blocks.source_texts import ROOT

SECTIONS: Final = "tools/references/rfc_sections.tsv"
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


def other_forms(text: str) -> list[str]:
    """Return references of a text that have another form, with what follows."""
    return [text[match.start() : match.end() + 12] for match in _OTHER_FORM.finditer(text)]


def headings(root: Path = ROOT) -> dict[str, dict[str, str]]:
    """Return the headings of each RFC by section; its title is that of section ""."""
    found: dict[str, dict[str, str]] = {}
    for line in (root / SECTIONS).read_text("utf-8").splitlines():
        rfc, section, heading = line.split("\t")
        found.setdefault(rfc, {})[section] = heading
    return found
