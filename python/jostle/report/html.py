"""Renders results as one HTML file that needs nothing beside it."""

from __future__ import annotations

import base64
import itertools
import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from jostle.figures.save import to_bytes
from jostle.foreign_files import SCENARIO_BYTES, read_text
from jostle.printable import printable
from jostle.replaced_files import replace_file
from jostle.report import assets, sequence
from jostle.report.page import rendered
from jostle.report.series import charts
from jostle.report.topology import topology
from jostle.results import pictures
from jostle.results.overview import overview
from jostle.results.tables import LINKS, Table, html_table, interval_note, phase_tables

if TYPE_CHECKING:
    from jostle.figures.sequence_data import SequencesData
    from jostle.results import ResultSet

MOST_DRAWINGS = 40
"""Networks that differ between conditions, of which each has a drawing."""
MOST_SPECS_BYTES = 500_000
"""Of the resolved keys of all conditions; those of the first are always there."""
_FEW_ROWS = 12
_FILE = {"report": ["FILE"], "analyze": []}
"""What stands for files whose names are not given: those of captures are among the options."""
_SERIES = "series"


def render(
    every: Sequence[ResultSet],
    files: Sequence[str] = (),
    options: Sequence[str] = (),
    *,
    command: str = "report",
    sequences: SequencesData | None = None,
) -> str:
    """Write results as an HTML document.

    Parameters
    ----------
    every
        Results of one scenario or several.
    files
        Files that the scenarios came from, in the same order: they stand in the page, as does the
        command that repeats the report.
    options
        Its options, word by word.
    command
        What it is called: another one for what was measured, not run.
    sequences
        A time–sequence diagram, which stands in the first part of the page.
    """
    names = [Path(file).name for file in files]
    return rendered(
        "jostle.report",
        "report.html.jinja",
        scenarios=[
            _scenario(results, file) for results, file in itertools.zip_longest(every, files)
        ],
        files=names,
        command=shlex.join(["jostle", command, *options, *(names or _FILE[command])]),
        sequence=None if sequences is None else _sequence(sequences),
        scripts=assets.SCRIPTS if sequences is None else assets.WITH_SEQUENCES,
    )


def write_report(
    every: Sequence[ResultSet],
    path: str | Path,
    files: Sequence[str] = (),
    options: Sequence[str] = (),
    *,
    command: str = "report",
    sequences: SequencesData | None = None,
) -> Path:
    """Write a report; see `render`.

    Raises
    ------
    InputError
        When the file cannot be written.
    """
    path = Path(path)
    page = render(every, files, options, command=command, sequences=sequences)
    replace_file(path, page.encode())
    return path


def _scenario(results: ResultSet, file: str | None) -> dict[str, Any]:
    source = _source(file)
    packed = charts(results) if results.results else None
    every = [(phase, phase_tables(results, phase.name)) for phase in results.phases]
    measured = _measured(results)
    drawings = [] if measured else _drawings(results)
    first = overview(results) if results.results else None
    return {
        "title": results.title or "Untitled scenario",
        "question": _question(source),
        "file": Path(file).name if file else "",
        "source": source,
        "backend": results.backend,
        "backend_version": results.backend_version,
        "runs": "1 run" if len(results) == 1 else f"{len(results)} runs",
        "conditions": [label for label in results.labels if label],
        "notes": results.notes,
        "failures": [(results.labels[f.condition], f.seed, f.error) for f in results.failures],
        "phases": [(phase, _html(tables, LINKS, of=False)) for phase, tables in every],
        "overview": Markup(html_table(first)) if first else "",
        "few_rows": all(len(t.rows) <= _FEW_ROWS for _, tables in every for t in tables),
        "legend": interval_note(results),
        "links": [(phase, _html(tables, LINKS, of=True)) for phase, tables in every],
        "charts": None if packed is None else data_block(packed.data, packed.values),
        "chart_notes": () if packed is None else packed.notes,
        "figures": [
            (name, base64.b64encode(to_bytes(draw(), "svg")).decode())
            for name, draw in pictures.all_figures(results).items()
            if not name.startswith(_SERIES)
        ],
        "drawings": drawings,
        "measured": measured,
        "back": any(flow["reverse_path"] for r in results.results for flow in r.run.spec["flows"]),
        "specs": _specs(results),
        "run_ids": [(results.labels[r.condition], r.seed, r.run.run_id) for r in results.results],
    }


def _sequence(sequences: SequencesData) -> tuple[Markup, str]:
    fitting = sequence.fitting(sequences)
    return data_block(*sequence.packed(fitting)), fitting.caption


def _html(tables: Sequence[Table], title: str, *, of: bool) -> Markup:
    """Write those tables that have a title, or those that have another."""
    return Markup("".join(html_table(table) for table in tables if (table.title == title) is of))


def data_block(data: object, values: str) -> Markup:
    """Write what charts are drawn from, so that no text in it can end the element that holds it."""
    text = json.dumps(
        {"data": data, "values": values}, ensure_ascii=False, allow_nan=False, separators=(",", ":")
    )
    return Markup(printable(text).replace("<", "\\u003c"))


def _source(file: str | None) -> str:
    """Text of the scenario's file, if there is one that can still be read."""
    if file is None:
        return ""
    try:
        return read_text(file, SCENARIO_BYTES)
    except (OSError, ValueError):
        return ""


def _question(source: str) -> list[str]:
    """Paragraphs of the comment that a scenario begins with: what its author asks."""
    lines = itertools.takewhile(lambda line: line.startswith("#"), source.splitlines())
    text = "\n".join(line.lstrip("#").strip() for line in lines)
    return [" ".join(part.split()) for part in text.split("\n\n") if part.strip()]


def _measured(results: ResultSet) -> list[tuple[str, str]]:
    """Files that were measured, and their digests; none if these are runs."""
    files = [file for r in results.results for file in r.run.spec.get("measured") or ()]
    return [(file["name"], file["sha256"]) for file in files]


def _drawings(results: ResultSet) -> list[tuple[str, Markup]]:
    """Every network that differs, with the positions of the conditions that have it."""
    found: dict[str, list[str]] = {}
    for position, index in enumerate(_with_runs(results)):
        drawing = topology(results.of(index)[0].run.spec)
        found.setdefault(drawing, []).append(str(position))
    first = itertools.islice(found.items(), MOST_DRAWINGS)
    return [(" ".join(at), Markup(drawing)) for drawing, at in first]


def _specs(results: ResultSet) -> list[tuple[str, str]]:
    """Take the keys of a run of each condition, as far as there is room, by position."""
    found, size = [], 0
    for position, index in enumerate(_with_runs(results)):
        text = json.dumps(results.of(index)[0].run.spec, indent=1, ensure_ascii=False)
        size += len(text)
        if position and size > MOST_SPECS_BYTES:
            break
        found.append((str(position), text))
    return found


def _with_runs(results: ResultSet) -> list[int]:
    return [index for index in range(len(results.conditions)) if results.of(index)]
