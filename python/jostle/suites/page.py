"""Cards of several controllers as one HTML file that needs nothing beside it."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from markupsafe import Markup

from jostle.foreign_files import TEXT_BYTES, read_text
from jostle.printable import printable
from jostle.report.page import rendered
from jostle.studies.prose import inline, whole
from jostle.suites.carry_out import Outcome
from jostle.suites.chart import drawing
from jostle.suites.document import command, counted, document, in_words, is_open
from jostle.suites.judge import Card, Judged
from jostle.suites.league import DRAWS, LEVEL_WEIGHTS, Entry, entries, league
from jostle.suites.models import LEVELS

SCRIPTS: Final = ("uplot.js", "charts.js", "page.js", "scorecard.js")
MOST_PICTURES: Final = 48
"""Runs over time that a page shows: those that decide on criteria that are not met come first."""
SCHEMA: Final = "jostle.scorecard/1"
"""Name and version of the document. A key that goes or means something else makes it another."""


@dataclass(frozen=True)
class Answer:
    """What is shown of a criterion and a controller."""

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
    """A criterion with the answers of all controllers, and the drawing of its comparisons."""

    first: Judged
    answers: tuple[Answer, ...]
    drawing: Markup


Pictures = Mapping[tuple[str, str, str], tuple[str, bytes]]
"""Of suite, controller and criterion: what the picture shows, and the picture."""


def scorecard_document(cards: Sequence[Card]) -> dict[str, Any]:
    """Give cards and their league table as plain data, `jostle.scorecard/1`."""
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
            for one in league(cards)
        ],
        "cards": [document(card) for card in cards],
    }


def page(outcomes: Sequence[Outcome], pictures: Pictures, words: str) -> str:
    """Write the page.

    Parameters
    ----------
    outcomes
        Of each controller one for each suite.
    pictures
        As `picture_data` of them, drawn.
    words
        The command that gives the page again.
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
        league=league(cards),
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
    )


def _data(controllers: Sequence[str], counted_in: Sequence[Entry], *, quick: bool) -> Markup:
    """Write what the page ranks by, so that no text in it can end the element that holds it."""
    document = {
        "controllers": list(controllers),
        "draws": 0 if quick else DRAWS,
        "entries": [[one.suite, one.level, list(one.chances)] for one in counted_in],
    }
    text = json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Markup(printable(text).replace("<", "\\u003c"))


def _suite(outcomes: Sequence[Outcome], pictures: Pictures) -> dict[str, Any]:
    suite = outcomes[0].task.suite
    return {
        "id": suite.id,
        "title": suite.file.title,
        "source": suite.file.source,
        "summary": suite.file.summary,
        "left_out": suite.file.left_out,
        "setup": whole(read_text(suite.folder / suite.file.setup, TEXT_BYTES)),
        "levels": [
            (level, rows)
            for level in LEVELS
            if (rows := [row for row in _rows(outcomes, pictures) if _level(row) == level])
        ],
    }


def _level(row: Row) -> str:
    return row.first.criterion.level


def _rows(outcomes: Sequence[Outcome], pictures: Pictures) -> Iterator[Row]:
    cards = [one.card for one in outcomes]
    for each in zip(*(card.rows for card in cards), strict=True):
        named = [(card.controller, row) for card, row in zip(cards, each, strict=True)]
        answers = tuple(_answer(card, row, pictures) for card, row in zip(cards, each, strict=True))
        yield Row(each[0], answers, drawing(named))


def _answer(card: Card, row: Judged, pictures: Pictures) -> Answer:
    shows, picture = pictures.get((card.suite, card.controller, row.criterion.id), ("", b""))
    return Answer(
        card.controller,
        row.verdict,
        in_words(row) if row.deciding is not None else "",
        is_open(row),
        row.reason,
        command(card, row),
        base64.b64encode(picture).decode(),
        shows,
    )
