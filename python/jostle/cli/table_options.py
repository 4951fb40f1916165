"""Options of commands that print tables: columns, rows, order and output files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from jostle.cli import shell_completion
from jostle.cli.options import keyed
from jostle.cli.output_folders import make_folder_of
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
        Keys of rows and columns; None without `--pivot`.
    measure
        Measure of the pivot table.
    each, limit
        See `View`.
    """

    columns: tuple[str, ...]
    sort: str
    pivot: tuple[str, str] | None
    measure: str
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
        click.option(
            "--columns",
            metavar="MEASURE,…",
            shell_complete=shell_completion.several("measures"),
            help="Show these measures (`jostle list measures`), whatever the flows do.",
        ),
        click.option(
            "--sort",
            metavar="KEY[:up]",
            default="",
            help="Sort by a measure, the largest first (the smallest with :up), or by a key.",
        ),
        click.option(
            "--pivot",
            metavar="ROWKEY:COLKEY",
            help="With --measure: rows and columns are values of keys (of the grid, or flow, link, "
            "controller, phase).",
        ),
        click.option(
            "--measure",
            metavar="MEASURE",
            shell_complete=shell_completion.registered("measures"),
            help="What --pivot shows.",
        ),
        each_option,
        click.option(
            "--limit",
            type=click.IntRange(min=0),
            default=LIMIT,
            show_default=True,
            help="Rows of a table at most; 0 for all.",
        ),
        *file_options(),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def file_options(what: str = "all of it") -> list[Callable[[F], F]]:
    """Return the options that write the unrounded values to files."""
    return [
        click.option(
            f"--{suffix}",
            metavar="FILE",
            help=f"Write {what}, unrounded, as {title}{more}.",
        )
        for suffix, title, more in (
            ("csv", "CSV", "; - for stdout instead of tables"),
            ("parquet", "Parquet", ""),
        )
    ]


def output_files(options: dict[str, Any]) -> dict[str, str | None]:
    """Remove these options from the options of a command, and create the folders of the files."""
    into = {suffix: options.pop(suffix) for suffix in ("csv", "parquet")}
    for file in into.values():
        make_folder_of(file if file != "-" else None)
    return into


each_option = click.option(
    "--each", is_flag=True, help="Show each flow that `count` made, not their mean."
)


def conditions_option(command: F) -> F:
    """Add the option that selects conditions."""
    return click.option(
        "--where",
        metavar="KEY=VALUE",
        multiple=True,
        help="Only conditions with this value of a key of the grid.",
    )(command)


def parsed_where(given: Sequence[str]) -> dict[str, str]:
    """Split each `KEY=VALUE`.

    Raises
    ------
    InputError
        If an argument has another form.
    """
    return keyed("--where", given)


def _formats(
    _context: click.Context, _parameter: click.Parameter, given: tuple[str, ...]
) -> tuple[str, ...]:
    from jostle.figures.formats import chosen

    return chosen(given)


def formats_option(command: F) -> F:
    """Add the option that selects figure formats."""
    return click.option(
        "--format",
        "formats",
        multiple=True,
        metavar="png,svg,pdf",
        callback=_formats,
        help="Formats of figures; PNG if absent.",
    )(command)


def shown_of(options: dict[str, Any]) -> TableSelection:
    """Remove the table options from the options of a command, and return them.

    Raises
    ------
    InputError
        If a measure is unknown, or --pivot and --measure are not used together.
    """
    from jostle.results.measures import measure

    columns, pivot = options.pop("columns"), options.pop("pivot")
    wanted = options.pop("measure")
    names = tuple(name.strip() for name in columns.split(",") if name.strip()) if columns else ()
    if (pivot is None) != (wanted is None):
        raise InputError("--pivot ROWKEY:COLKEY and --measure MEASURE go together")
    keys = None
    if pivot is not None:
        row, colon, column = pivot.partition(":")
        if not (row and colon and column):
            raise InputError(f"--pivot {pivot}: write it as ROWKEY:COLKEY")
        keys = (row, column)
    return TableSelection(
        tuple(measure(name).name for name in names),
        options.pop("sort"),
        keys,
        measure(wanted).name if wanted else "",
        options.pop("each"),
        options.pop("limit"),
    )


def frame_of(
    every: Sequence[ResultSet], shown: TableSelection, phases: Sequence[str], files: Sequence[str]
) -> pl.DataFrame:
    """Return the values of all scenarios as a frame, with a file column if there are several."""
    import polars as pl

    from jostle.results.tidy_frame import tidy
    from jostle.runner.progress import on_stderr

    columns = (shown.measure,) if shown.pivot else shown.columns
    progress = on_stderr(what="conditions written", patient=True)
    progress.begin(sum(len(one.conditions) for one in every), 0)
    try:
        frames = [
            tidy(one, columns, phases or None, each=shown.each, advance=progress.advance)
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


def write_frame(frame: Callable[[], pl.DataFrame], given: Mapping[str, str | None]) -> bool:
    """Write a frame to the requested files; return whether stdout was one of them."""
    from jostle.safe_io.atomic_write import write_atomically

    made = None
    for suffix in ("csv", "parquet"):
        file = given.get(suffix)
        if file is None:
            continue
        made = frame() if made is None else made
        if suffix == "csv" and file == "-":
            echo(made.write_csv().rstrip("\n"))
            continue
        make_folder_of(file)
        write_atomically(Path(file), _bytes(made, suffix))
        echo(f"{suffix}: {file}", err=True)
    return given.get("csv") == "-"


def _bytes(frame: pl.DataFrame, suffix: str) -> bytes:
    import io

    buffer = io.BytesIO()
    if suffix == "csv":
        frame.write_csv(buffer)
    else:
        frame.write_parquet(buffer)
    return buffer.getvalue()
