"""Results as text for a terminal."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from jostle.printable import echo, printable
from jostle.results.tables import Table, interval_note, phase_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console
    from rich.text import Text

    from jostle.results import ResultSet

# A pipe has no width; tables then take what they need.
_PIPE_WIDTH = 240
_FOLDED_WIDTH = 18
_SHOWN_CAPTURES = 5


def console() -> Console:
    """Where results go. What scenarios call things is never read as markup."""
    from rich.console import Console

    class PrintableConsole(Console):
        """Prints no characters that a terminal would obey."""

        def render_str(self, text: str, **options: Any) -> Text:
            return super().render_str(printable(text), **options)

    to = PrintableConsole(markup=False, emoji=False, highlight=False)
    if not sys.stdout.isatty():
        to.width = _PIPE_WIDTH
    return to


def print_results(results: ResultSet, phases: Sequence[str]) -> None:
    """Print a table for each of `phases`, or for all of them if there are none."""
    if not results.results:
        return
    to = console()
    if results.title:
        to.print(results.title, style="bold")
    windows = {phase.name: phase for phase in results.phases}
    for name in phases or windows:
        window = windows[name]
        to.print(f"\n{name} ({window.from_s:g}–{window.to_s:g} s)", style="bold cyan")
        print_table(to, phase_rows(results, name))
    to.print(interval_note(results))


def print_notes(results: ResultSet, err: bool) -> None:
    """Print what a reader of the numbers should know."""
    for note in results.notes:
        echo(f"note: {note}", err=err)


def print_captures(results: ResultSet, err: bool) -> None:
    """Print where the captures of each run are; of many runs, where the first ones are."""
    folders: dict[str, int] = {}
    for result in results.results:
        for path in result.run.captures.values():
            folders[str(path.parent)] = folders.get(str(path.parent), 0) + 1
    for folder, count in list(folders.items())[:_SHOWN_CAPTURES]:
        echo(f"captures: {folder} ({count} files)", err=err)
    if len(folders) > _SHOWN_CAPTURES:
        more = len(folders) - _SHOWN_CAPTURES
        echo(f"captures: of {more} more runs, beside these", err=err)


def print_table(to: Console, table: Table) -> None:
    """Print a table, a line of space between conditions of several flows."""
    from rich import box
    from rich.table import Table as RichTable

    drawn = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, header_style="")
    for number, name in enumerate(table.header):
        words = number < table.text_columns
        # Only long names of conditions are folded.
        folds = name == "condition"
        drawn.add_column(name, justify="left" if words else "right", no_wrap=not folds)
    for number, row in enumerate(table.rows):
        last = number + 1 in table.groups and len(table.rows) > len(table.groups)
        drawn.add_row(*row, end_section=last)
    # A narrow terminal had better break lines than have names and numbers cut.
    to.width = max(to.width, _least_width(table))
    to.print(drawn)


def _least_width(table: Table) -> int:
    """Width with nothing folded but long names of conditions."""
    width = 2
    for name, *cells in zip(table.header, *table.rows, strict=True):
        widest = max(len(text) for text in (*name.split("\n"), *cells))
        width += 3 + (min(widest, _FOLDED_WIDTH) if name == "condition" else widest)
    return width
