"""`jostle study list` and `jostle study coverage`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from jostle.cli import shell_completion
from jostle.cli.options import allow_code_option, json_option
from jostle.cli.registry_names import studies_of
from jostle.cli.study_run import load_study, study_ids
from jostle.safe_io.terminal_text import echo, single_line

if TYPE_CHECKING:
    from jostle.studies import Study


@click.command("list", short_help="List the studies.")
def list_studies() -> None:
    """List the studies that are installed, and those in the folder `studies`.

    Example: jostle study list
    """
    found = studies_of()
    width = max(len(name) for name, _ in found)
    for name, title in found:
        echo(single_line(f"{name:<{width}}  {title}"))


@click.command(short_help="List which figures and tables of the papers are reproduced.")
@click.argument(
    "ids", metavar="ID…|all", nargs=-1, required=True, shell_complete=shell_completion.studies
)
@allow_code_option
@json_option
def coverage(*, ids: tuple[str, ...], allow_code: bool, as_json: bool) -> None:
    """List the figures and tables of a paper, and their counterparts in the study of each ID.

    Example: jostle study coverage geo-shared
    """
    studies = [load_study(name, allow_code=allow_code) for name in study_ids(ids)]
    _print_coverage(studies, as_json=as_json)


def _print_coverage(studies: Sequence[Study], *, as_json: bool) -> None:
    """Print which figures and tables of the papers are reproduced."""
    from jostle.cli import output
    from jostle.results.number_format import ABSENT
    from jostle.studies.coverage import coverage_count, coverage_document, coverage_rows

    if as_json:
        echo(json.dumps(coverage_document(studies), ensure_ascii=False))
        return
    for study in studies:
        if not study.file.coverage:
            continue
        to = output.console()
        to.print(study.file.paper, style="bold")
        to.print(coverage_count(study))
        # Stack the parts, because side by side they would not fit into 80 columns.
        table = coverage_rows(study)
        stacked: list[tuple[str, str]] = []
        for item, *cells in table.rows:
            stacked += [("", ""), (item, cells[0])]
            stacked += [
                (f"  {head}", cell)
                for head, cell in zip(table.header[2:], cells[1:], strict=True)
                if cell != ABSENT
            ]
        output.print_texts(("", ""), stacked, ())
