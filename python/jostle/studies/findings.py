"""What a study shows, in words, with the numbers that our runs gave."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jostle.results.formats import ABSENT
from jostle.studies.wording import with_interval

if TYPE_CHECKING:
    from jostle.stats import Estimate
    from jostle.studies.evaluate import Evaluation
    from jostle.studies.models import StudyFile

_REFERENCE = re.compile(r"\{([^{}@]*)(?:@([^{}@]*))?\}")

Readings = Mapping[str, "Evaluation"]
"""Evaluations of one backend by reading."""


@dataclass(frozen=True)
class Finding:
    """A paragraph of result.

    Attributes
    ----------
    figure, caption
        Name of the figure that shows it, and what is to be seen there.
    text
        The paragraph, numbers filled in.
    """

    figure: str
    caption: str
    text: str


def references(text: str) -> Iterator[tuple[str, str]]:
    """Numbers that a paragraph refers to, with the reading that is meant; empty for its own."""
    yield from _REFERENCE.findall(text)


def filled(text: str, reading: str, evaluations: Readings) -> str:
    """Fill in the numbers of a paragraph about a reading.

    What no run has given, as of a reading that was not run, is a dash.
    """

    def value(reference: re.Match[str]) -> str:
        evaluation = evaluations.get(reference[2] or reading)
        found = None if evaluation is None else _estimates(evaluation).get(reference[1])
        return ABSENT if found is None else with_interval(found, unit=True)

    return _REFERENCE.sub(value, text)


def _estimates(evaluation: Evaluation) -> dict[str, Estimate]:
    """Our numbers by their names, those of a claim by it and the part's number."""
    claims = {
        name: part.ours
        for row in evaluation.claims
        for at, part in enumerate(row.parts, 1)
        for name in ((row.id, f"{row.id}.{at}") if at == 1 else (f"{row.id}.{at}",))
    }
    return claims | {row.id: row.ours for row in evaluation.numbers}


def findings(file: StudyFile, reading: str, evaluations: Readings) -> list[Finding]:
    """Paragraphs of all figures that have one, as a reading fills them in."""
    return [
        Finding(figure.id, figure.caption, filled(figure.finding, reading, evaluations))
        for figure in file.figures
        if figure.finding
    ]


def learned(file: StudyFile, reading: str, evaluations: Readings) -> list[str]:
    """Sentences with which the study begins."""
    return [filled(text, reading, evaluations) for text in file.learned]


def not_run(file: StudyFile, evaluations: Readings) -> list[str]:
    """List readings that texts quote and that were not run: a dash stands for their numbers."""
    texts = [*file.learned, *(figure.finding for figure in file.figures)]
    texts += [number.finding for number in file.numbers]
    texts += [claim.finding for claim in file.claims]
    named = [reading for text in texts for _, reading in references(text) if reading]
    return [one for one in dict.fromkeys(named) if one not in evaluations]
