"""Results as text for a terminal."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from jostle.results.sweep_matrix import sweep_matrix
from jostle.results.tables import View, interval_note, phase_tables
from jostle.results.text_table import Table
from jostle.safe_io.terminal_text import echo, single_line, wrap_words

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from rich.console import Console
    from rich.text import Text

    from jostle.cli.table_options import TableSelection
    from jostle.results import ResultSet

_SHOWN_CAPTURES = 5
_GAP = "  "
_LONGEST_WORD = 16
"""Longest word that makes a column of texts wider; paths are longer, and are cut."""


def console() -> Console:
    """Return the console for results. Names from scenarios are never read as markup."""
    from rich.console import Console

    class PrintableConsole(Console):
        """A console that prints no control characters, and each text on one line."""

        def render_str(self, text: str, **options: Any) -> Text:
            return super().render_str(single_line(text), **options)

    # Lines are laid out by the caller, so rich must not wrap or crop them.
    return PrintableConsole(
        markup=False, emoji=False, highlight=False, soft_wrap=True, width=width()
    )


def width() -> int:
    """Return the line width: the terminal's, else COLUMNS, else 80."""
    return shutil.get_terminal_size((80, 24)).columns


def _headed(results: ResultSet, answer: str) -> Console:
    """Print the answer and the title, and return the console."""
    to = console()
    to.print(answer)
    if results.title:
        to.print(results.title, style="bold")
    return to


def print_tables(
    results: ResultSet, shown: TableSelection, phases: Sequence[str], answer: str
) -> None:
    """Print the answer and the selected tables of `phases`, or of all phases if there is none."""
    if not results.results:
        return
    to = _headed(results, answer)
    if shown.pivot is None:
        print_phases(to, results, phases, shown.view(width()))
    else:
        print_pivot(to, results, shown.pivot, shown, phases)


def print_phases(to: Console, results: ResultSet, phases: Sequence[str], view: View) -> None:
    """Print the tables of phases without a heading; see `print_tables`."""
    for name in phases or [phase.name for phase in results.phases]:
        to.print()
        to.print(f"{name} ({results.spans_of(name)})", style="bold cyan")
        for table in sweep_matrix(results, name, view) or phase_tables(results, name, view):
            print_table(to, table)
    print_note(to, interval_note(results))


def print_pivot(
    to: Console,
    results: ResultSet,
    keys: tuple[str, str],
    shown: TableSelection,
    phases: Sequence[str],
) -> None:
    """Print the tables of a measure over the `keys` of rows and columns."""
    from jostle.results.pivot import pivot_tables

    for table in pivot_tables(results, *keys, shown.columns[0], phases or None, each=shown.each):
        for part in fitting(table, width()):
            print_table(to, part)
    print_note(to, interval_note(results))


def print_texts(
    header: Sequence[str], rows: Sequence[Sequence[str]], fixed: Collection[str]
) -> None:
    """Print a table of texts. A terminal wraps them between words; a pipe gets whole lines.

    Parameters
    ----------
    header
        Names of the columns; empty names for a table without a header.
    rows
        Cells; a line break in a cell starts a new line there.
    fixed
        Names of the columns that are never wrapped.
    """
    from rich.table import Table as Grid
    from rich.text import Text

    to = console()
    grid = Grid(
        box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold",
        show_header=any(header),
    )  # fmt: skip
    for number, name in enumerate(header):
        longest = max((len(word) for row in rows for word in row[number].split()), default=0)
        grid.add_column(
            Text(name), no_wrap=name in fixed, overflow="fold",
            min_width=min(max(longest, len(name)), _LONGEST_WORD),
        )  # fmt: skip
    for row in rows:
        # Text is not passed through `render_str`, so each line is escaped here.
        grid.add_row(*(Text("\n".join(map(single_line, cell.split("\n")))) for cell in row))
    if not to.is_terminal and "COLUMNS" not in os.environ:
        unlimited = to.options.update(max_width=sys.maxsize)
        to.width = max(to.width, to.measure(grid, options=unlimited).maximum)
    to.print(grid)
    to.print()


def print_note(to: Console, note: str) -> None:
    """Print a note, wrapped to the line width."""
    if note:
        for line in wrap_words(note, width()):
            to.print(line)


def print_assumptions(to: Console, sentences: Sequence[str]) -> None:
    """Print what a command assumed about its input, and what it left out."""
    print_sentences(to, "Assumptions", sentences)


def print_sentences(to: Console, title: str, sentences: Sequence[str]) -> None:
    """Print a list of sentences below a title; nothing if there are none."""
    if not sentences:
        return
    to.print()
    to.print(title, style="bold")
    for sentence in sentences:
        for at, line in enumerate(wrap_words(sentence, width() - 2)):
            to.print(f"{'  ' if at else '- '}{line}")


def print_notes(results: ResultSet, err: bool) -> None:
    """Print the notes on the results; remarks on failed runs only where no table has them."""
    tabled = results.failure_notes if results.results and not err else ()
    for note in (one for one in results.notes if one not in tabled):
        echo(single_line(f"note: {note}"), err=err)


def print_captures(results: ResultSet, err: bool) -> None:
    """Print the folders of captures; of many runs, only the first."""
    folders: dict[str, int] = {}
    for result in results.results:
        for path in result.run.captures.values():
            folders[str(path.parent)] = folders.get(str(path.parent), 0) + 1
    for folder, count in list(folders.items())[:_SHOWN_CAPTURES]:
        echo(f"captures: {folder} ({count} files)", err=err)
    if len(folders) > _SHOWN_CAPTURES:
        more = len(folders) - _SHOWN_CAPTURES
        echo(f"captures: of {more} more runs", err=err)


def print_table(to: Console, table: Table) -> None:
    """Print a table, with empty lines between conditions that have several rows."""
    widths = _widths(table)
    to.print()
    if table.title:
        to.print(table.title, style="bold")
    height = max(name.count("\n") for name in table.header) + 1
    lifted = [["", *[""] * height, *name.split("\n")][-height:] for name in table.header]
    for number in range(height):
        to.print(_line([name[number] for name in lifted], widths, table.text_columns))
    to.print("─" * (sum(widths) + len(_GAP) * (len(widths) - 1)), style="dim")
    sections = dict(zip(table.groups, table.sections, strict=False))
    spaced = len(table.rows) > len(table.groups) or sections
    for number, row in enumerate(table.rows):
        if number and number in table.groups and spaced:
            to.print()
        if number in sections:
            to.print(sections[number], style="bold")
        to.print(_line(row, widths, table.text_columns))
    for note in table.notes:
        print_note(to, note)


def _widths(table: Table) -> list[int]:
    return [
        max(len(line) for cell in column for line in cell.split("\n"))
        for column in zip(table.header, *table.rows, strict=True)
    ]


def fitting(table: Table, most: int) -> list[Table]:
    """Split a table that is too wide; each part has the text columns and some numeric columns."""
    widths = _widths(table)
    named = range(table.text_columns)
    used = sum(widths[at] + len(_GAP) for at in named)
    parts: list[list[int]] = [[]]
    taken = used
    for at in range(table.text_columns, len(widths)):
        if parts[-1] and taken + widths[at] > most:
            parts.append([])
            taken = used
        parts[-1].append(at)
        taken += widths[at] + len(_GAP)
    return [
        replace(
            table,
            header=tuple(table.header[at] for at in (*named, *part)),
            rows=tuple(tuple(row[at] for at in (*named, *part)) for row in table.rows),
            title=table.title if number == 0 else f"{table.title} (continued)",
            notes=table.notes if part is parts[-1] else (),
        )
        for number, part in enumerate(parts)
    ]


def _line(cells: Sequence[str], widths: Sequence[int], words: int) -> str:
    """Format a row: text columns left-aligned, numbers right-aligned."""
    return _GAP.join(
        f"{cell:<{wide}}" if number < words else f"{cell:>{wide}}"
        for number, (cell, wide) in enumerate(zip(cells, widths, strict=True))
    ).rstrip()
