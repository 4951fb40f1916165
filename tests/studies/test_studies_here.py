"""The studies of the source tree can be read: all that they name is there."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest
from jostle.studies.findings import references
from jostle.studies.library import STUDIES as LIBRARY
from jostle.studies.load import load as load_study
from jostle.studies.load import paragraphs
from jostle.studies.models import StudyFile
from jostle.studies.recorded_results import RecordedStudy

STUDIES = Path(__file__).parents[2] / "studies"
load = cache(load_study)


@pytest.mark.parametrize("name", LIBRARY.names(STUDIES))
def test_a_study_can_be_read(name: str) -> None:
    study = load(name, STUDIES)
    assert (study.folder / study.file.setup).is_file()
    assert all(scenario.conditions for scenario in study.scenarios.values())
    assert study.file.claims or any(figure.finding for figure in study.file.figures)


@pytest.mark.parametrize("name", LIBRARY.names(STUDIES))
def test_what_is_said_of_differences_is_said_in_sentences(name: str) -> None:
    file = load(name, STUDIES).file
    said = [one.finding for one in (*file.claims, *file.numbers, *file.figures) if one.finding]
    assert [text for text in said if not text.rstrip("”)").endswith((".", "?"))] == []


PAPERS = {
    "geo-shared": [
        *(f"Figure {n}" for n in range(1, 7)), "Figure 7a", "Figure 7b", "Model of Ware et al.",
        "Measurements of Obata et al.", "Measurements of Wang et al.", "Model of Utsumi et al.",
    ],
    "geo-solo": [
        *(f"Figure {n}" for n in range(1, 7)), *(f"Table {n}" for n in range(1, 8)),
        "Model of Utsumi et al.",
    ],
    "interactions": [
        *(f"Figure {n}" for n in range(1, 7)), "Table I", "Table II", "Table III", "Section IV-E",
    ],
    # The findings, risks and scenarios of a repository.
    "l4s-tests": [
        *(f"Finding {n}" for n in range(1, 10)), "Risk: severity", "Risk: likelihood",
        *(f"Scenario {n}" for n in range(1, 7)), "Scenarios 7 to 13",
    ],
    "modest-bbr": [
        "Figure 1", "Figure 2a", "Figure 2b", "Figure 3", "Figure 4", "Figure 5a", "Figure 5b",
        "Figure 6", "Figure 7", "Figure 8a", "Figure 8b", "Figure 9a", "Figure 9b", "Figure 10",
        "Figure 11a", "Figure 11b", "Figure 12", "Figure 13a", "Figure 13b", "Table I",
        "Algorithm 1",
    ],
    # Those that the digest shows or speaks of; it keeps the numbers of the papers that it digests.
    "slow-start": [
        "Figure 1", "Figure 2", "Figure 5", "Figure 6", "Figure 16", "Figure 19a", "Figure 19b",
        "Table 5",
        "Table 6",
    ],
    # What was measured stands in four sections without figures, and in the last one.
    "starvation": [
        "Table 1", *(f"Figure {n}" for n in range(1, 8)), *(f"Section 5.{n}" for n in range(1, 5)),
    ],
}  # fmt: skip
"""Every figure and table, counted in the papers, and models that they cite."""


@pytest.mark.parametrize("name", sorted(PAPERS))
def test_every_figure_and_table_of_the_paper_is_listed(name: str) -> None:
    assert [one.item for one in load(name, STUDIES).file.coverage] == PAPERS[name]


def test_every_published_study_lists_what_it_covers() -> None:
    published = [name for name in LIBRARY.names(STUDIES) if load(name, STUDIES).file.claims]
    assert published == sorted(PAPERS)


_QUANTITY = r"\d[\d.]* ?(?:%|×|Mbit/s|Mbit|ms|s|MB|kB|times it)"
_OF_LINUX = re.compile(rf"{_QUANTITY},? on Linux|Linux[^.,;{{}}]{{0,15}} {_QUANTITY}")
"""A number beside its name, as in `33 % on Linux` or `Linux gives it 28 %`."""


@pytest.mark.parametrize("name", sorted(PAPERS))
def test_what_linux_gave_is_quoted_by_reference(name: str) -> None:
    """A number of Linux in words would stay as it is when Linux runs again."""
    assert [
        found for text in said(load(name, STUDIES).file) for found in _OF_LINUX.findall(text)
    ] == []


def said(file: StudyFile) -> list[str]:
    """Every text that may quote numbers."""
    return [text for _, text in paragraphs(file)]


@pytest.mark.parametrize("name", sorted(PAPERS))
def test_what_linux_gave_is_there_where_it_is_quoted(name: str) -> None:
    study = load(name, STUDIES)
    recorded = study.folder / "linux.json"
    texts = said(study.file)
    quoted = {one for text in texts for one, setup in references(text) if setup == "linux"}
    if all(one.backends == ("sim",) for one in study.file.experiments.values()):
        assert not recorded.exists()
        assert quoted == set()
        return
    kept = RecordedStudy.model_validate_json(recorded.read_text("utf-8")).setups["described"]
    there = set(kept.numbers) | {
        name
        for claim, row in kept.claims.items()
        for at, part in enumerate(row.parts, 1)
        if part.ours is not None
        for name in ((claim, f"{claim}.{at}") if at == 1 else (f"{claim}.{at}",))
    }
    assert quoted <= there
