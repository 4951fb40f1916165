"""Cards of several controllers as one self-contained HTML file."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from markupsafe import Markup

from jostle.report.page import rendered
from jostle.safe_io.terminal_text import escape_control_characters
from jostle.safe_io.untrusted_files import TEXT_BYTES, read_text
from jostle.studies.text_markup import inline, render_page
from jostle.suites.criterion_chart import drawing
from jostle.suites.evaluate import CriterionResult, SuiteResult
from jostle.suites.models import LEVELS
from jostle.suites.ranking import DRAWS, LEVEL_WEIGHTS, RankingEntry, entries, rank_controllers
from jostle.suites.result_documents import command, counted, document, in_words, is_open
from jostle.suites.run_suite import SuiteOutcome

SCRIPTS: Final = ("uplot.js", "charts.js", "page.js", "scorecard.js")
MOST_PICTURES: Final = 48
"""Largest number of time-series figures; figures of missed criteria come first."""
SCHEMA: Final = "jostle.scorecard/2"
"""Name and version of the document. Removing or redefining a key requires a new version."""


@dataclass(frozen=True)
class ScorecardCell:
    """Result of a criterion for a controller, as shown on the page."""

    controller: str
    verdict: str
    words: str
    open: bool
    reason: str
    command: str
    picture: str
    shows: str


@dataclass(frozen=True)
class Row:
    """A criterion with the results of all controllers, and the drawing of its comparisons."""

    first: CriterionResult
    answers: tuple[ScorecardCell, ...]
    drawing: Markup


Pictures = Mapping[tuple[str, str, str], tuple[str, bytes]]
"""Suite, controller and criterion → caption and contents of the picture."""


def scorecard_document(cards: Sequence[SuiteResult]) -> dict[str, Any]:
    """Return cards and their league table as plain data, `jostle.scorecard/2`."""
    return {
        "schema": SCHEMA,
        "weights": dict(LEVEL_WEIGHTS),
        "league": [
            {
                "controller": one.controller,
                "score": one.score,
                "rank": one.rank,
                "rank_interval": None if one.low is None else [one.low, one.high],
                "met": one.met,
                "judged": one.judged,
            }
            for one in rank_controllers(cards)
        ],
        "cards": [document(card) for card in cards],
    }


def page(outcomes: Sequence[SuiteOutcome], pictures: Pictures, words: str, answer: str) -> str:
    """Render the page.

    Parameters
    ----------
    outcomes
        One for each controller and suite.
    pictures
        Drawings of the outcomes' `picture_data`.
    words
        The command that recreates the page.
    answer
        The result in a sentence.
    """
    cards = [one.card for one in outcomes]
    controllers, counted_in = entries(cards)
    first = cards[0]
    return rendered(
        "jostle.suites",
        "scorecard.html.jinja",
        scripts=SCRIPTS,
        filters={"inline": inline},
        controllers=controllers,
        suites=[
            _suite([one for one in outcomes if one.card.suite == name], pictures)
            for name in dict.fromkeys(card.suite for card in cards)
        ],
        counts=[(card, counted(card)) for card in cards],
        league=rank_controllers(cards),
        levels=LEVELS,
        weights=LEVEL_WEIGHTS,
        draws=DRAWS,
        data=_data(controllers, counted_in, quick=first.quick),
        left_out=sum(len(card.rows) for card in cards[:: len(controllers)]) - len(counted_in),
        failures=[(card, text) for card in cards for text in card.failures],
        quick=first.quick,
        baseline=first.baseline,
        backend=f"{first.backend} {first.version}",
        runs=sum(card.runs for card in cards),
        command=words,
        answer=answer,
    )


def _data(controllers: Sequence[str], counted_in: Sequence[RankingEntry], *, quick: bool) -> Markup:
    """Return the data of the ranking as a JSON element that no text in the data can close."""
    document = {
        "controllers": list(controllers),
        "draws": 0 if quick else DRAWS,
        "entries": [[one.suite, one.level, list(one.chances)] for one in counted_in],
    }
    text = json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Markup(escape_control_characters(text).replace("<", "\\u003c"))


def _suite(outcomes: Sequence[SuiteOutcome], pictures: Pictures) -> dict[str, Any]:
    suite = outcomes[0].task.suite
    return {
        "id": suite.id,
        "title": suite.file.title,
        "source": suite.file.source,
        "summary": suite.file.summary,
        "not_covered": suite.file.not_covered,
        "setup": render_page(read_text(suite.folder / suite.file.setup, TEXT_BYTES)),
        "levels": [
            (level, rows)
            for level in LEVELS
            if (rows := [row for row in _rows(outcomes, pictures) if _level(row) == level])
        ],
    }


def _level(row: Row) -> str:
    return row.first.criterion.level


def _rows(outcomes: Sequence[SuiteOutcome], pictures: Pictures) -> Iterator[Row]:
    cards = [one.card for one in outcomes]
    for each in zip(*(card.rows for card in cards), strict=True):
        named = [(card.controller, row) for card, row in zip(cards, each, strict=True)]
        answers = tuple(
            _scorecard_cell(card, row, pictures) for card, row in zip(cards, each, strict=True)
        )
        yield Row(each[0], answers, drawing(named))


def _scorecard_cell(card: SuiteResult, row: CriterionResult, pictures: Pictures) -> ScorecardCell:
    shows, picture = pictures.get((card.suite, card.controller, row.criterion.id), ("", b""))
    return ScorecardCell(
        card.controller,
        row.verdict,
        in_words(row) if row.deciding is not None else "",
        is_open(row),
        row.reason,
        command(card, row),
        base64.b64encode(picture).decode(),
        shows,
    )
