"""Renders results as one HTML file that needs nothing beside it."""

from __future__ import annotations

import base64
import shlex
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from jostle.figures.files import replace_file
from jostle.figures.save import to_bytes
from jostle.printable import printable_markup
from jostle.results import pictures
from jostle.results.tables import html_table, interval_note, phase_tables

if TYPE_CHECKING:
    from jostle.results import ResultSet


def render(
    every: Sequence[ResultSet], files: Sequence[str] = (), options: Sequence[str] = ()
) -> str:
    """Write results as an HTML document.

    Parameters
    ----------
    every
        Results of one scenario or several.
    files
        Files that the scenarios came from, for the command that repeats the report.
    options
        Its options, word by word.
    """
    environment = Environment(
        loader=PackageLoader("jostle.report"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=printable_markup,
    )
    return environment.get_template("report.html.jinja").render(
        scenarios=[_scenario(results) for results in every],
        command=shlex.join(["jostle", "report", *options, *(files or ["FILE"])]),
        version=metadata.version("jostle"),
    )


def write_report(
    every: Sequence[ResultSet],
    path: str | Path,
    files: Sequence[str] = (),
    options: Sequence[str] = (),
) -> Path:
    """Write a report; see `render`.

    Raises
    ------
    InputError
        When the file cannot be written.
    """
    path = Path(path)
    replace_file(path, render(every, files, options).encode())
    return path


def _scenario(results: ResultSet) -> dict[str, Any]:
    return {
        "title": results.title or "Untitled scenario",
        "backend": results.backend,
        "backend_version": results.backend_version,
        "runs": len(results),
        "conditions": [label for label in results.labels if label],
        "notes": results.notes,
        "failures": [(results.labels[f.condition], f.seed, f.error) for f in results.failures],
        "phases": [
            (phase, Markup("".join(map(html_table, phase_tables(results, phase.name)))))
            for phase in results.phases
        ],
        "legend": interval_note(results),
        "figures": [
            (name, base64.b64encode(to_bytes(draw(), "svg")).decode())
            for name, draw in pictures.all_figures(results).items()
        ],
        "run_ids": [(results.labels[r.condition], r.seed, r.run.run_id) for r in results.results],
    }
