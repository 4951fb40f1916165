"""`jostle report`."""

from __future__ import annotations

from typing import Any

import click

from jostle.cli.environment import Environment
from jostle.cli.options import options_of_a_report, plan_options
from jostle.cli.output_folders import make_folder_of
from jostle.cli.run import carry_out, plan_files
from jostle.safe_io.terminal_text import echo


@click.command(short_help="Write a self-contained HTML report.")
@plan_options
@click.option(
    "--output",
    "-o",
    metavar="HTML",
    default="report.html",
    show_default=True,
    help="File to write.",
)
@click.pass_obj
def report(environment: Environment, /, output: str, **options: Any) -> int:
    """Run each scenario FILE that is not in the store, and write a report.

    The report is one HTML file with tables, figures, and everything needed to repeat the runs.
    """
    plans = plan_files(environment, **options)
    make_folder_of(output)
    every = carry_out(environment, plans, **options)
    from jostle.report import write_report

    path = write_report(every, output, options["files"], options_of_a_report(options))
    echo(f"report: {path}")
    return 1 if any(results.failures for results in every) else 0
