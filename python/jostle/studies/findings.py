"""What a study's figures show, in words, with the numbers that our runs gave."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jostle.studies.wording import with_interval

if TYPE_CHECKING:
    from jostle.studies.evaluate import Evaluation
    from jostle.studies.models import StudyFile

_REFERENCE = re.compile(r"\{([^{}]*)\}")


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


def references(finding: str) -> Iterator[str]:
    """Names of the numbers that a paragraph refers to."""
    yield from _REFERENCE.findall(finding)


def findings(file: StudyFile, evaluation: Evaluation) -> list[Finding]:
    """Paragraphs of all figures that have one."""
    found = {row.id: with_interval(row.ours, unit=True) for row in evaluation.numbers}
    return [
        Finding(
            figure.id,
            figure.caption,
            _REFERENCE.sub(lambda reference: found[reference[1]], figure.finding),
        )
        for figure in file.figures
        if figure.finding
    ]
