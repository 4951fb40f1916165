"""Pictures over time of the runs that decide on criteria."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from jostle.results.time_series_data import series_data
from jostle.suites.evaluate import CriterionResult
from jostle.suites.models import SuiteValue
from jostle.suites.result_documents import comparison_label
from jostle.suites.run_suite import SuiteOutcome

if TYPE_CHECKING:
    from jostle.figures.renderer import FigureData

Key = tuple[str, str, str]
"""Suite, controller, criterion."""
_WIDTH: Final = 720
_COLOURS: Final = 48
"""Enough for lines and bands: a picture has a tenth of the bytes then."""


def small(png: bytes) -> bytes:
    """Write a picture as small as a page with many of them needs it."""
    from PIL import Image

    picture = Image.open(io.BytesIO(png)).convert("RGB")
    height = round(picture.height * _WIDTH / picture.width)
    few = picture.resize((_WIDTH, height), Image.Resampling.LANCZOS).quantize(
        _COLOURS, dither=Image.Dither.NONE
    )
    written = io.BytesIO()
    few.save(written, "PNG", optimize=True)
    return written.getvalue()


def picture_data(outcomes: Sequence[SuiteOutcome], most: int) -> dict[Key, tuple[str, FigureData]]:
    """Take the series of the condition that decides on each criterion, and say what it is.

    Parameters
    ----------
    outcomes
        Cards with the runs that they are made of.
    most
        How many there may be; criteria that are not met come first, and the strongest levels.
    """
    order = ("must", "should", "explore")
    every = [
        (row.verdict != "fail", order.index(row.criterion.level), at, outcome, row)
        for outcome in outcomes
        for at, row in enumerate(outcome.card.rows)
        if row.deciding is not None
    ]
    every.sort(key=lambda one: one[:3])
    found: dict[Key, tuple[str, FigureData]] = {}
    for *_, outcome, row in every:
        if len(found) == most:
            break
        for shows, data in _of(outcome, row):
            card = outcome.card
            found[card.suite, card.controller, row.criterion.id] = (shows, data)
    return found


def _of(outcome: SuiteOutcome, row: CriterionResult) -> Iterator[tuple[str, FigureData]]:
    """Take the condition of the comparison that is worst off; nothing if it was not run."""
    decided = row.deciding
    suite = outcome.task.suite
    if decided is None:
        return
    value = row.criterion.parts[decided.part].left
    assert isinstance(value, SuiteValue)
    placed = suite.placed(value, decided.where)
    conditions = outcome.task.study.conditions(placed)
    results = outcome.runs.results.get(placed.experiment)
    if results is None or not conditions:
        return
    position = outcome.runs.position(placed.experiment, conditions[0])
    if position < 0 or not results.runs_of(position):
        return
    title = suite.scenarios[suite.experiment_of(value)].title
    yield f"{title}{comparison_label(decided, ', ')}", series_data(results, position)
