"""Renders results as one self-contained HTML file."""

from __future__ import annotations

import base64
import itertools
import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from jostle.fidelity.validation_status import in_a_line, statuses
from jostle.figures.save import to_bytes
from jostle.report import assets, time_sequence
from jostle.report.chart_data import charts
from jostle.report.page import rendered
from jostle.report.topology_svg import topology
from jostle.results import figure_files
from jostle.results.sweep_overview import overview
from jostle.results.tables import LINKS, interval_note, phase_tables
from jostle.results.text_table import Table, html_table
from jostle.safe_io.atomic_write import write_atomically
from jostle.safe_io.terminal_text import escape_control_characters
from jostle.safe_io.untrusted_files import SCENARIO_BYTES, read_text

if TYPE_CHECKING:
    from jostle.figures.time_sequence_data import SequencesData
    from jostle.results import ResultSet

MOST_DRAWINGS = 40
"""Largest number of distinct networks that are drawn."""
MOST_SPECS_BYTES = 500_000
"""Largest total size of resolved keys; the first condition is always included."""
_FEW_ROWS = 12
_FILE = {"run": ["FILE"], "analyze": []}
"""Placeholder in the command for files without name; captures are given as options."""
_SERIES = "series"


def render(
    every: Sequence[ResultSet],
    files: Sequence[str] = (),
    options: Sequence[str] = (),
    *,
    command: str = "run",
    sequences: SequencesData | None = None,
    answers: Sequence[str] = (),
) -> str:
    """Render results as an HTML document.

    Parameters
    ----------
    every
        Results of one scenario or several.
    files
        Files of the scenarios, in the same order. The page contains them and the command that
        repeats the report.
    options
        Options of the command, word by word.
    command
        Name of the command, which differs for measured captures.
    sequences
        A time-sequence diagram for the first section of the page.
    answers
        A sentence for each of `every` that answers its question.
    """
    names = [Path(file).name for file in files]
    return rendered(
        "jostle.report",
        "report.html.jinja",
        scenarios=[
            _scenario(results, file, answer)
            for results, file, answer in itertools.zip_longest(every, files, answers)
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
    command: str = "run",
    sequences: SequencesData | None = None,
    answers: Sequence[str] = (),
) -> Path:
    """Write a report, with the command that writes it again; see `render`.

    Raises
    ------
    InputError
        When the file cannot be written.
    """
    path = Path(path)
    words = ("-o", path.name, *options)
    page = render(every, files, words, command=command, sequences=sequences, answers=answers)
    write_atomically(path, page.encode())
    return path


def _scenario(results: ResultSet, file: str | None, answer: str | None) -> dict[str, Any]:
    source = _source(file)
    packed = charts(results) if results.results else None
    every = [
        (phase, results.spans_of(phase.name), phase_tables(results, phase.name))
        for phase in results.phases
    ]
    measured = _measured(results)
    drawings = [] if measured else _drawings(results)
    first = overview(results) if results.results else None
    return {
        "title": results.title or "Untitled scenario",
        "question": _question(source),
        "answer": answer or "",
        "file": Path(file).name if file else "",
        "source": source,
        "backend": results.backend,
        "backend_version": results.backend_version,
        "runs": str(results.run_counts),
        "validation": statuses(results),
        "validation_line": in_a_line(statuses(results)),
        "conditions": [label for label in results.labels if label],
        "notes": results.notes,
        "failures": [(results.labels[f.condition], f.seed, f.error) for f in results.failures],
        "phases": [(phase, span, _html(tables, LINKS, of=False)) for phase, span, tables in every],
        "overview": Markup(html_table(first)) if first else "",
        "few_rows": all(len(t.rows) <= _FEW_ROWS for *_, tables in every for t in tables),
        "legend": interval_note(results),
        "links": [(phase, span, _html(tables, LINKS, of=True)) for phase, span, tables in every],
        "charts": None if packed is None else data_block(packed.data, packed.values),
        "chart_notes": () if packed is None else (*packed.notes, *results.failure_notes),
        "figures": [
            (name, base64.b64encode(to_bytes(draw(), "svg")).decode())
            for name, draw in figure_files.all_figures(results).items()
            if not name.startswith(_SERIES)
        ],
        "drawings": drawings,
        "measured": measured,
        "back": any(flow["reverse_path"] for r in results.results for flow in r.run.spec["flows"]),
        "specs": _specs(results),
        "run_ids": [(results.labels[r.condition], r.seed, r.run.run_id) for r in results.results],
    }


def _sequence(sequences: SequencesData) -> tuple[Markup, str]:
    fitting = time_sequence.fitting(sequences)
    return data_block(*time_sequence.packed(fitting)), fitting.caption


def _html(tables: Sequence[Table], title: str, *, of: bool) -> Markup:
    """Render the tables that have a given title, or all others."""
    return Markup("".join(html_table(table) for table in tables if (table.title == title) is of))


def data_block(data: object, values: str) -> Markup:
    """Return data of charts as a JSON element that no text in the data can close."""
    text = json.dumps(
        {"data": data, "values": values}, ensure_ascii=False, allow_nan=False, separators=(",", ":")
    )
    return Markup(escape_control_characters(text).replace("<", "\\u003c"))


def _source(file: str | None) -> str:
    """Return the text of the scenario's file if it can still be read."""
    if file is None:
        return ""
    try:
        return read_text(file, SCENARIO_BYTES)
    except (OSError, ValueError):
        return ""


def _question(source: str) -> list[str]:
    """Return the paragraphs of the comment at the start of a scenario: the author's question."""
    lines = itertools.takewhile(lambda line: line.startswith("#"), source.splitlines())
    text = "\n".join(line.lstrip("#").strip() for line in lines)
    return [" ".join(part.split()) for part in text.split("\n\n") if part.strip()]


def _measured(results: ResultSet) -> list[tuple[str, str]]:
    """Return measured files and their digests; empty for runs of a scenario."""
    files = [file for r in results.results for file in r.run.spec.get("measured") or ()]
    return [(file["name"], file["sha256"]) for file in files]


def _drawings(results: ResultSet) -> list[tuple[str, Markup]]:
    """Return every distinct network, with the positions of its conditions."""
    found: dict[str, list[str]] = {}
    for position, index in enumerate(_with_runs(results)):
        drawing = topology(results.runs_of(index)[0].run.spec)
        found.setdefault(drawing, []).append(str(position))
    first = itertools.islice(found.items(), MOST_DRAWINGS)
    return [(" ".join(at), Markup(drawing)) for drawing, at in first]


def _specs(results: ResultSet) -> list[tuple[str, str]]:
    """Return the keys of a run of each condition, as far as there is room, by position."""
    found, size = [], 0
    for position, index in enumerate(_with_runs(results)):
        text = json.dumps(results.runs_of(index)[0].run.spec, indent=1, ensure_ascii=False)
        size += len(text)
        if position and size > MOST_SPECS_BYTES:
            break
        found.append((str(position), text))
    return found


def _with_runs(results: ResultSet) -> list[int]:
    return [index for index in range(len(results.conditions)) if results.runs_of(index)]
