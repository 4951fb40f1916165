"""Options of commands that print tables: measures, rows and order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from jostle.cli import shell_completion
from jostle.cli.options import keyed
from jostle.errors import InputError
from jostle.safe_io.terminal_text import echo

if TYPE_CHECKING:
    import polars as pl

    from jostle.results import ResultSet
    from jostle.results.tables import View

LIMIT = 60
"""Default maximum number of rows."""

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class TableSelection:
    """The table options of a command.

    Attributes
    ----------
    columns
        Names of measures.
    sort
        Value of `--sort`.
    pivot
        Keys of rows and columns; None without `--pivot`. The table shows the only measure.
    each, limit
        See `View`.
    """

    columns: tuple[str, ...]
    sort: str
    pivot: tuple[str, str] | None
    each: bool
    limit: int

    def view(self, width: int | None) -> View:
        """Return a view with a line width in characters."""
        from jostle.results.tables import View

        key, _, order = self.sort.rpartition(":")
        if order in ("up", "down") and key:
            return View(self.columns, key, order, self.each, self.limit, width)  # type: ignore[arg-type]
        return View(self.columns, self.sort, "down", self.each, self.limit, width)


def table_options(command: F) -> F:
    """Add the options that select columns and rows."""
    options = [
        measures_option,
        click.option(
            "--sort",
            metavar="KEY[:up]",
            default="",
            help="Sort by a measure, the largest first (the smallest with :up), or by a key.",
        ),
        click.option(
            "--pivot",
            metavar="ROWKEY:COLKEY",
            help="Show one measure of --measures with the values of these keys as rows and columns "
            "(keys of the grid, or flow, link, controller, phase).",
        ),
        per_flow_option,
        max_rows_option(LIMIT),
    ]
    for option in reversed(options):
        command = option(command)
    return command


measures_option = click.option(
    "--measures",
    metavar="MEASURE,…",
    default="",
    shell_complete=shell_completion.several("measures"),
    help="Show these measures (`jostle info list measures`) for all flows.",
)
per_flow_option = click.option(
    "--per-flow",
    "each",
    is_flag=True,
    help="Show each flow that `count` made, not the mean of all.",
)
filter_option = click.option(
    "--filter",
    "filters",
    metavar="KEY=VALUE",
    multiple=True,
    help="Use only conditions with this value of a key of the grid.",
)


def max_rows_option(default: int) -> Callable[[F], F]:
    """Return the option that limits the rows of a table."""
    return click.option(
        "--max-rows",
        "limit",
        metavar="N",
        type=click.IntRange(min=0),
        default=default,
        show_default=True,
        help="Show at most this many rows; 0 for all.",
    )


def parsed_filters(given: Sequence[str]) -> dict[str, str]:
    """Split each `KEY=VALUE`.

    Raises
    ------
    InputError
        If an argument has another form.
    """
    return keyed("--filter", given)


def measure_names(text: str) -> tuple[str, ...]:
    """Return the measures of `--measures`.

    Raises
    ------
    InputError
        If there is no such measure.
    """
    from jostle.results.measures import measure

    return tuple(measure(name.strip()).name for name in text.split(",") if name.strip())


def shown_of(options: dict[str, Any]) -> TableSelection:
    """Remove the table options from the options of a command, and return them.

    Raises
    ------
    InputError
        If a measure is unknown, or --pivot is used without one measure.
    """
    names, pivot = measure_names(options.pop("measures")), options.pop("pivot")
    keys = None
    if pivot is not None:
        row, colon, column = pivot.partition(":")
        if not (row and colon and column):
            raise InputError(f"--pivot {pivot}: write it as ROWKEY:COLKEY")
        if len(names) != 1:
            raise InputError("--pivot shows one measure: give --measures MEASURE")
        keys = (row, column)
    return TableSelection(
        names, options.pop("sort"), keys, options.pop("each"), options.pop("limit")
    )


def frame_of(
    every: Sequence[ResultSet], shown: TableSelection, phases: Sequence[str], files: Sequence[str]
) -> pl.DataFrame:
    """Return the values of all scenarios as a frame, with a file column if there are several."""
    import polars as pl

    from jostle.results.tidy_frame import tidy
    from jostle.runner.progress import on_stderr

    progress = on_stderr(what="conditions written", patient=True)
    progress.begin(sum(len(one.conditions) for one in every), 0)
    try:
        frames = [
            tidy(one, shown.columns, phases or None, each=shown.each, advance=progress.advance)
            for one in every
        ]
    finally:
        progress.end()
    if len(frames) == 1:
        return frames[0]
    named = [
        frame.select(pl.lit(file).alias("file"), pl.all())
        for file, frame in zip(files, frames, strict=True)
    ]
    return pl.concat(named, how="diagonal")


def print_csv(frame: pl.DataFrame) -> None:
    """Print a frame as CSV."""
    echo(frame.write_csv().rstrip("\n"))
