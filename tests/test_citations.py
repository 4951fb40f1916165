"""BibTeX of the registry, of studies and of runs."""

from __future__ import annotations

import json
import re
import unicodedata
from pathlib import Path

import pytest
import yaml

from jostle.backends import load_engine
from jostle.cli import status
from jostle.cli.registry_names import papers_of
from jostle.results.citations import keys_of, references

ROOT = Path(__file__).parents[1]
REQUIRED = {
    "article": {"author", "title", "journal", "year"},
    "inproceedings": {"author", "title", "booktitle", "year"},
    "mastersthesis": {"author", "title", "school", "year"},
    "techreport": {"author", "title", "institution", "year"},
    "misc": {"author", "title", "howpublished"},
    "software": {"author", "title"},
}
"""Fields without which BibTeX warns, or a reader finds nothing."""
FIELD = re.compile(r"^  (\w+) += \{(.*)\},$")


def sources() -> dict[str, str]:
    """Every source of the registry, and every paper of a study."""
    registry = json.loads(load_engine().registry())
    rows = [row for rows in registry.values() for row in rows if row.get("source")]
    assert len({row["name"] for row in rows}) == len(rows)
    return papers_of() | {row["name"]: row["source"] for row in rows}


def fields(key: str) -> dict[str, str]:
    """Fields of an entry."""
    return fields_of(references()[key].text)[2]


def fields_of(entry: str) -> tuple[str, str, dict[str, str]]:
    """Type, key and fields of an entry, whose structure is checked."""
    head, *lines, tail = entry.splitlines()
    start = re.fullmatch(r"@([a-z]+)\{([\w.-]+),", head)
    assert start, entry
    assert tail == "}", entry
    found = {}
    for line in lines:
        field = FIELD.fullmatch(line)
        assert field, line
        assert field[1] not in found, entry
        found[field[1]] = field[2]
        depth = 0
        for brace in re.findall(r"[{}]", field[2]):
            depth += 1 if brace == "{" else -1
            assert depth >= 0, line
        assert depth == 0, line
        # These characters have a meaning in TeX.
        if field[1] not in ("doi", "url") and r"\url" not in line:
            assert not re.search(r"(?<!\\)[&%$#_~^]", field[2]), line
    return start[1], start[2], found


def surnames(authors: str) -> list[str]:
    """Surnames in an author field, without accents."""
    people = authors.strip("{}").split(" and ")
    return [
        plain(one.split(",")[0] if "," in one else one.split()[-1]) for one in people
    ]


def plain(text: str) -> str:
    """Text without accents."""
    folded = unicodedata.normalize("NFKD", text)
    return "".join(letter for letter in folded if not unicodedata.combining(letter))


def test_entries_are_complete_bibtex() -> None:
    text = (ROOT / "python/jostle/results/references.bib").read_text("utf-8")
    keys = re.findall(r"^@\w+\{([^,]+),$", text, re.MULTILINE)
    assert len(keys) == len(set(keys)) == len(references())
    for key, reference in references().items():
        kind, named, found = fields_of(reference.text)
        assert named == key
        assert REQUIRED[kind] <= found.keys(), key
        assert re.fullmatch(r"(19|20)\d\d", found.get("year", "2000")), key
        assert re.fullmatch(r"10\.\d{4,}/\S+", found.get("doi", "10.1000/x")), key


def test_every_source_has_entries_that_agree_with_it() -> None:
    for name, source in sources().items():
        keys = keys_of(name, source)
        years = re.findall(r"\b(?:19|20)\d\d\b", source)
        if not keys:
            # A process without a publication, or a study of our own.
            assert not re.search(r"\d|\.[ch]\b", source), name
        cited = {key: fields(key) for key in keys}
        for key, found in cited.items():
            if key.startswith(("rfc", "draft-", "linux-")):
                continue
            people = surnames(found["author"])
            if re.search(rf"{re.escape(people[0])} et al", plain(source)):
                people = people[:1]
            if not found["author"].startswith("{"):
                assert [one for one in people if one not in plain(source)] == [], (name, key)
            if "year" in found:
                assert found["year"] in years, (name, key)
        assert set(years) <= {found.get("year") for found in cited.values()}, name


def test_every_rfc_draft_and_kernel_of_a_source_has_an_entry() -> None:
    for name, source in sources().items():
        keys = keys_of(name, source)
        for rfc in re.findall(r"RFC (\d+)", source):
            assert f"rfc{rfc}" in keys, name
        for draft in re.findall(r"draft-[\w-]+", source):
            assert any(key.startswith(draft) for key in keys), (name, draft)
        assert keys.keys() <= references().keys(), name
        if re.search(r"(^|; )Linux [\d./a-z]", source) and "port of" not in source:
            assert any(files for files in keys.values()), name


def test_every_entry_is_cited_by_something_that_exists() -> None:
    known = sources()
    used = {key for name, source in known.items() for key in keys_of(name, source)}
    kernels = {name for name in references() if name.startswith("linux-")}
    assert references().keys() - used == {"jostle", *kernels} - used
    keywords = {name for key, each in references().items() for name in each.names - kernels}
    assert {name for name in keywords if not name.startswith("Linux ")} <= known.keys()


def test_the_entry_of_jostle_is_that_of_the_citation_file() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    found = fields("jostle")
    assert found["title"] == f"{{{citation['title']}}}"
    (author,) = citation["authors"]
    assert found["author"] == f"{{{author['name']}}}"
