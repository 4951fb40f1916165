"""Findings of a study as text, with numbers from our runs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jostle.results.number_format import ABSENT, estimate_text

if TYPE_CHECKING:
    from jostle.stats import Estimate
    from jostle.studies.evaluate import Evaluation
    from jostle.studies.models import StudyFile

_REFERENCE = re.compile(r"\{([^{}@]*)(?:@([^{}@]*))?\}")

EvaluationsBySetup = Mapping[str, "Evaluation"]
"""Evaluations of one backend by setup."""


@dataclass(frozen=True)
class Finding:
    """A paragraph about a result.

    Attributes
    ----------
    figure, caption
        Name and caption of the figure that shows it.
    text
        The paragraph with numbers filled in.
    """

    figure: str
    caption: str
    text: str


def references(text: str) -> Iterator[tuple[str, str]]:
    """Yield the numbers that a paragraph refers to, and their setups; empty for its own setup."""
    yield from _REFERENCE.findall(text)


def filled(text: str, setup: str, evaluations: EvaluationsBySetup) -> str:
    """Fill in the numbers of a paragraph about a setup.

    A number without runs, such as one of a setup that was not run, is replaced by a dash.
    """

    def value(reference: re.Match[str]) -> str:
        evaluation = evaluations.get(reference[2] or setup)
        found = None if evaluation is None else _estimates(evaluation).get(reference[1])
        return ABSENT if found is None else estimate_text(found, unit=True)

    return _REFERENCE.sub(value, text)


def _estimates(evaluation: Evaluation) -> dict[str, Estimate]:
    """Return our estimates by id; parts of a claim have the ids `claim` and `claim.number`."""
    claims = {
        name: part.ours
        for row in evaluation.claims
        for at, part in enumerate(row.parts, 1)
        for name in ((row.id, f"{row.id}.{at}") if at == 1 else (f"{row.id}.{at}",))
    }
    return claims | {row.id: row.ours for row in evaluation.numbers}


def findings(file: StudyFile, setup: str, evaluations: EvaluationsBySetup) -> list[Finding]:
    """Return the paragraphs of all figures that have one, with the numbers of a setup."""
    return [
        Finding(figure.id, figure.caption, filled(figure.finding, setup, evaluations))
        for figure in file.figures
        if figure.finding
    ]


def learned(file: StudyFile, setup: str, evaluations: EvaluationsBySetup) -> list[str]:
    """Return the sentences of the study's introduction."""
    return [filled(text, setup, evaluations) for text in file.findings]


def not_run(file: StudyFile, evaluations: EvaluationsBySetup) -> list[str]:
    """Return the setups that texts refer to but that were not run; their numbers are dashes."""
    texts = [*file.findings, *(figure.finding for figure in file.figures)]
    texts += [number.finding for number in file.numbers]
    texts += [claim.finding for claim in file.claims]
    named = [setup for text in texts for _, setup in references(text) if setup]
    return [one for one in dict.fromkeys(named) if one not in evaluations]
