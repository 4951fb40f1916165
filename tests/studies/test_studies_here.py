"""The studies of the source tree can be read: all that they name is there."""

from __future__ import annotations

from pathlib import Path

import pytest
from jostle.studies import load, names

STUDIES = Path(__file__).parents[2] / "studies"


@pytest.mark.parametrize("name", names(STUDIES))
def test_a_study_can_be_read(name: str) -> None:
    study = load(name, STUDIES)
    assert (study.folder / study.file.setup).is_file()
    assert all(scenario.conditions for scenario in study.scenarios.values())
    assert study.file.claims or any(figure.finding for figure in study.file.figures)


@pytest.mark.parametrize("name", names(STUDIES))
def test_what_is_said_of_differences_is_said_in_sentences(name: str) -> None:
    file = load(name, STUDIES).file
    said = [one.finding for one in (*file.claims, *file.numbers, *file.figures) if one.finding]
    assert [text for text in said if not text.rstrip("”)").endswith((".", "?"))] == []
