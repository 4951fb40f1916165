"""A study as one self-contained HTML file."""

from __future__ import annotations

import base64
import gzip
import platform
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from markupsafe import Markup

from jostle.backends.registry import DEFAULT
from jostle.report.page import rendered
from jostle.results.number_format import ABSENT
from jostle.results.text_table import Table, html_table
from jostle.runner.executors.threads import available_cores
from jostle.safe_io.untrusted_files import TEXT_BYTES, read_text
from jostle.studies.column import TITLES, Column, Evaluations, by_setup
from jostle.studies.coverage import coverage_rows
from jostle.studies.deviations import deviation_rows
from jostle.studies.findings import EvaluationsBySetup, filled, learned, not_run
from jostle.studies.fitted_setups import claim_split, fit_sentence, half_rows
from jostle.studies.json_document import (
    claim_rows,
    number_rows,
    ranking_rows,
    setup_rows,
)
from jostle.studies.operating_points_archive import BACKEND, FILE
from jostle.studies.runs import Runs
from jostle.studies.study import Study
from jostle.studies.text_markup import inline, render_page
from jostle.studies.time_series import over_time
from jostle.studies.verdicts import claim_verdicts, grouped

_TIMES: Final[Sequence[tuple[int, str]]] = ((3600, "h"), (60, "min"), (1, "s"))
_LONG_DECIMAL: Final = re.compile(rb"(\d\.\d\d)\d+")
_GLYPH: Final = re.compile(rb'<path id="DejaVuSans[^>]*/>')
_PARTS: Final = {
    "learned": "Findings",
    "claims-found": "Verdicts",
    "setups": "Setups",
    "fitted": "Fitted setup",
    "over-time": "Over time",
    "figures": "Figures",
    "differences": "Differences",
    "deviations": "Deviations",
    "claims": "Claims",
    "orders": "Orders",
    "numbers": "Numbers",
    "coverage": "Coverage",
    "setup": "Setup",
    "provenance": "Provenance",
    "repeat": "To repeat",
}
"""Sections of a page in order, and their titles in the navigation."""


@dataclass(frozen=True)
class Picture:
    """A drawn figure: name, caption, column of its runs, SVG text, and an optional finding."""

    name: str
    caption: str
    column: str
    svg: bytes
    finding: str = ""


_Figure = tuple[str, str, str, str, str]
"""Name, caption, column, packed SVG and finding of a figure."""
_ID_CHARACTERS: Final = 12
"""Characters of a run id on a page, which identify a run among billions."""


@dataclass(frozen=True)
class Provenance:
    """Runs of a column.

    Attributes
    ----------
    version
        Version of the backend.
    count
        Number of runs.
    runs
        Experiment and condition with its seeds and the beginnings of their run ids, without runs
        of an earlier column.
    """

    version: str
    count: int = 0
    runs: Sequence[tuple[str, str, str]] = ()


def page(
    study: Study,
    runs: Mapping[Column, Runs],
    evaluations: Evaluations,
    pictures: Sequence[Picture],
    command: Sequence[str],
    *,
    answer: str,
    elapsed_s: float,
) -> str:
    """Return a study's page.

    Parameters
    ----------
    study
        The study.
    runs, evaluations
        By column.
    pictures
        In the order of the study.
    command
        Words of the command that recreates the page.
    answer
        The result of the study in a sentence.
    elapsed_s
        Wall time of all runs of the command.
    """
    first_column, first = next(iter(evaluations.items()))
    named = by_setup(evaluations, first_column.backend)
    groups = grouped(claim_verdicts(evaluations))
    setups = setup_rows(study, evaluations)
    packed, glyphs = _packed([one.svg for one in pictures])
    shown: dict[str, Any] = {
        "answer": answer,
        "learned": learned(study.file, first_column.setup, named),
        "not_run": not_run(study.file, named),
        "groups": groups,
        "setups": _html(setups, "prose setups") if setups.rows else "",
        "fitted": fit_sentence(study.file, evaluations),
        "fitted_table": _html(half_rows(study.file, evaluations)),
        "findings": _findings(study, first_column.setup, named),
        "series": over_time(runs),
        "tables": _tables(study, evaluations),
    }
    return rendered(
        "jostle.studies",
        "study.html.jinja",
        filters={"inline": inline},
        **shown,
        title=study.file.title,
        paper=study.file.paper,
        parts=_sections(shown, figures=bool(pictures)),
        setup=render_page(read_text(study.folder / study.file.setup, TEXT_BYTES)),
        linux=any(column.backend != DEFAULT for column in evaluations),
        figures=_of_first_column(
            [
                (one.name, one.caption, one.column, svg, one.finding)
                for one, svg in zip(pictures, packed, strict=True)
            ]
        ),
        glyphs=glyphs,
        provenance=_provenance(runs)
        | _recorded_provenance(runs)
        | {one.title: Provenance(one.kept) for one in evaluations if one.kept},
        command=shlex.join(command),
        run_time=_run_time(runs.values(), elapsed_s),
        linux_version=_linux_version(study),
        judged=bool(first.claims) or any(row.published is not None for row in first.numbers),
    )


def _linux_version(study: Study) -> str:
    """Return the Linux release whose behaviour scenarios ask for; empty without."""
    flows = (flow for scenario in study.scenarios.values() for flow in scenario.file.flows)
    return " and ".join(sorted({flow.linux_version for flow in flows if flow.linux_version}))


def _of_first_column(figures: Sequence[_Figure]) -> tuple[list[_Figure], list[_Figure]]:
    """Split figures into figures of the first column that has any, and other figures."""
    first = figures[0][2] if figures else ""
    return [one for one in figures if one[2] == first], [one for one in figures if one[2] != first]


def _packed(svgs: Sequence[bytes]) -> tuple[list[str], str]:
    """Return figures as base64 of gzip, and the glyphs of their texts, which they share.

    A page with twenty figures would have several megabytes otherwise. Coordinates of curves have
    two decimals.
    """
    glyphs = dict.fromkeys(glyph for svg in svgs for glyph in _GLYPH.findall(svg))
    curves = [_LONG_DECIMAL.sub(rb"\1", _GLYPH.sub(b"", svg)) for svg in svgs]
    return [_base64(one) for one in curves], _base64(b"".join(glyphs))


def _base64(content: bytes) -> str:
    return base64.b64encode(gzip.compress(content, mtime=0)).decode()


def _sections(shown: Mapping[str, Any], *, figures: bool) -> list[tuple[str, str]]:
    """Return the sections of a page: id, and title in the navigation."""
    here = {
        "learned": shown["learned"],
        "claims-found": shown["groups"],
        "setups": shown["setups"],
        "fitted": shown["fitted"],
        "over-time": shown["series"],
        "figures": figures,
        "differences": shown["findings"],
        **{name.lower(): True for name, *_ in shown["tables"]},
        **dict.fromkeys(("setup", "provenance", "repeat"), True),
    }
    return [(part, name) for part, name in _PARTS.items() if here.get(part)]


def _tables(study: Study, evaluations: Evaluations) -> list[tuple[str, Markup, int]]:
    """Return the tables that have rows, with their headings and numbers of rows."""
    made: dict[str, Table] = {
        "Deviations": deviation_rows(study.file, evaluations),
        "Claims": claim_rows(evaluations, claim_split(study.file)),
        "Orders": ranking_rows(evaluations),
        "Numbers": number_rows(evaluations),
        "Coverage": coverage_rows(study),
    }
    return [(name, _html(table), len(table.rows)) for name, table in made.items() if table.rows]


def _html(table: Table, css: str = "sortable prose") -> Markup:
    return Markup('<div class="wide">{}</div>').format(Markup(html_table(table, css, inline)))


def _provenance(runs: Mapping[Column, Runs]) -> dict[str, Provenance]:
    """Return the provenance of each column, by its title."""
    found, seen = {}, set[str]()
    for column, each in runs.items():
        conditions: dict[tuple[str, str], list[str]] = {}
        ids = []
        for experiment, results in each.results.items():
            for one in results.results:
                ids.append(one.run.run_id)
                if one.run.run_id not in seen:
                    of_condition = conditions.setdefault(
                        (experiment, results.labels[one.condition]), []
                    )
                    of_condition.append(f"{one.seed}: {one.run.run_id[:_ID_CHARACTERS]}")
        seen.update(ids)
        version = next((one.backend_version for one in each.results.values()), ABSENT)
        rows = [(*condition, ", ".join(said)) for condition, said in conditions.items()]
        found[column.title] = Provenance(version, len(ids), rows)
    return found


def _run_time(columns: Iterable[Runs], elapsed_s: float) -> str:
    """Return the number of runs, and the time that the command spent on them."""
    ids = {
        one.run.run_id
        for runs in columns
        for results in runs.results.values()
        for one in results.results
    }
    size, unit = next(pair for pair in _TIMES if elapsed_s >= 2 * pair[0] or pair[0] == 1)
    return (
        f"{len(ids)} runs. The command that wrote this page spent {elapsed_s / size:.0f} {unit} on "
        f"runs that were not in the store, on a machine with {available_cores()} cores "
        f"(Python {platform.python_version()}, {platform.system()} on {platform.machine()})."
    )


def _recorded_provenance(runs: Mapping[Column, Runs]) -> dict[str, Provenance]:
    """Return the provenance of recorded points of Linux's flows, unless Linux ran now."""
    kept = next((each.kept for each in runs.values() if each.kept is not None), None)
    if kept is None or any(column.backend == BACKEND for column in runs):
        return {}
    where = f"{kept.version}, {kept.date}, points of its flows kept in {FILE}"
    return {f"{TITLES[BACKEND]}, {kept.date}": Provenance(where)}


def _findings(study: Study, setup: str, named: EvaluationsBySetup) -> list[tuple[str, str]]:
    """Return the findings about numbers, without duplicates."""
    # The finding of a number with several labels applies to all of them.
    said = [
        (number.text.replace(f"{{{number.measured_by}}}", "…"), number.finding)
        for number in study.file.numbers
    ]
    found = [(text, filled(finding, setup, named)) for text, finding in said if finding]
    return list(dict(reversed(found)).items())[::-1]
