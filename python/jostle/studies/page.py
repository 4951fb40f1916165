"""A study as one HTML file that needs nothing beside it."""

from __future__ import annotations

import base64
import hashlib
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markdown_it import MarkdownIt
from markupsafe import Markup
from mdit_py_plugins.deflist import deflist_plugin

from jostle.foreign_files import TEXT_BYTES, read_text
from jostle.printable import printable_markup
from jostle.studies.coverage import coverage_rows
from jostle.studies.document import (
    Evaluations,
    by_reading,
    claim_rows,
    number_rows,
    ranking_rows,
    reading_rows,
    score,
)
from jostle.studies.findings import Readings, filled, learned
from jostle.studies.study import Study


@dataclass(frozen=True)
class Picture:
    """A drawn figure: its name, its caption, whose runs it shows, and its SVG text.

    Beside it, what it shows in a paragraph, which may be empty.
    """

    name: str
    caption: str
    column: str
    svg: bytes
    finding: str = ""


@dataclass(frozen=True)
class Provenance:
    """Runs of a column: the backend's version, and each by experiment, condition, seed and id."""

    version: str
    runs: Sequence[tuple[str, str, int, str]]


def page(
    study: Study,
    evaluations: Evaluations,
    pictures: Sequence[Picture],
    provenance: Mapping[str, Provenance],
    command: Sequence[str],
) -> str:
    """Write a study's page.

    Parameters
    ----------
    study
        The study.
    evaluations
        By column.
    provenance
        By the column's title.
    pictures
        In the order of the study.
    command
        Words of the command that gives the page again.
    """
    environment = Environment(
        loader=PackageLoader("jostle.studies"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=printable_markup,
    )
    first_column, first = next(iter(evaluations.items()))
    named = by_reading(evaluations, first_column.backend)
    script = (Path(__file__).parent / "templates" / "sortable.js").read_text("utf-8")
    judged = bool(first.claims) or any(row.published is not None for row in first.numbers)
    tables = [
        (name, *make(evaluations))
        for name, make in (
            ("Claims", claim_rows), ("Orders", ranking_rows), ("Numbers", number_rows)
        )
        if make(evaluations)[1]
    ]  # fmt: skip
    if study.file.coverage:
        tables.append(("Coverage", *coverage_rows(study)))
    return environment.get_template("study.html.jinja").render(
        title=study.file.title,
        paper=study.file.paper,
        setup=_setup(read_text(study.folder / study.file.setup, TEXT_BYTES)),
        script=Markup(script),
        script_sha256=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        tables=tables,
        learned=learned(study.file, first_column.reading, named),
        readings=reading_rows(study, evaluations),
        findings=_findings(study, first_column.reading, named),
        score={one.title: score(each.claims) for one, each in evaluations.items() if each.claims},
        figures=[
            (
                one.name,
                one.caption,
                one.column,
                base64.b64encode(one.svg).decode(),
                one.finding,
            )
            for one in pictures
        ],
        provenance=provenance,
        command=shlex.join(command),
        judged=judged,
        version=metadata.version("jostle"),
    )


def _setup(text: str) -> Markup:
    """Write the study's own page as HTML; HTML in it is shown as text."""
    return Markup(
        MarkdownIt("commonmark", {"html": False})
        .enable("table")
        # An image would be fetched from somewhere, and tell that the page is read.
        .disable("image")
        .use(deflist_plugin)
        .render(text)
    )


def _findings(study: Study, reading: str, named: Readings) -> list[tuple[str, str]]:
    """Collect what is to be said of claims and numbers, each text once."""
    # A number of several labels is one: what is said of it holds for all of them.
    numbers = [
        (number.text.replace(f"{{{number.by}}}", "…"), number.finding)
        for number in study.file.numbers
    ]
    said = [*((claim.text, claim.finding) for claim in study.file.claims), *numbers]
    found = [(text, filled(finding, reading, named)) for text, finding in said if finding]
    return list(dict(reversed(found)).items())[::-1]
