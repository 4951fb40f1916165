"""A table of text, and its form in HTML and Markdown; `cli/output.py` prints it on a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

VERDICT: Final = "holds"
"""Heading of columns with verdicts; the first word of a cell is its class in HTML."""


ALL: Final = 1 << 16
"""More columns than any table has."""


@dataclass(frozen=True)
class Table:
    """A table of text.

    Attributes
    ----------
    header, rows
        Texts; a header text may have several lines.
    groups
        Rows at which a new condition begins.
    text_columns
        Number of columns, counted from the left, that contain text instead of numbers; by
        default all.
    title
        Title; empty if it is the only table.
    sections
        A heading above the rows of each of `groups`; empty if the rows contain the condition.
    notes
        Remarks below the table.
    """

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    groups: tuple[int, ...] = ()
    text_columns: int = ALL
    title: str = ""
    sections: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def _lines(text: str) -> str:
    return escape(text).replace("\n", "<br>")


def html_table(table: Table, css: str = "jostle", text: Callable[[str], str] = _lines) -> str:
    """Return a table as HTML, with numbers right-aligned and a class of each verdict.

    Parameters
    ----------
    table
        The table.
    css
        Classes in the style sheet of the page; `prose` aligns cells to the left.
    text
        Converts the text of a cell to HTML.
    """
    lines = [f'<table class="{css}">']
    if table.title:
        lines.append(f"<caption>{escape(table.title)}</caption>")
    is_prose = "prose" in css.split()
    heads = _html_cells("th", table.header, table, _lines, is_prose=is_prose)
    lines += ["<thead><tr>", heads, "</tr></thead><tbody>"]
    headings = dict(zip(table.groups, table.sections, strict=False))
    for number, row in enumerate(table.rows):
        if number in headings:
            span = f'<th colspan="{len(table.header)}" style="text-align:left">'
            lines.append(f"<tr>{span}{escape(headings[number])}</th></tr>")
        first = ' class="first"' if number in table.groups else ""
        lines.append(f"<tr{first}>{_html_cells('td', row, table, text, is_prose=is_prose)}</tr>")
    lines.append("</tbody></table>")
    lines += [f'<p class="note">{escape(note)}</p>' for note in table.notes]
    return "".join(lines)


def _html_cells(
    tag: str, cells: Sequence[str], table: Table, text: Callable[[str], str], *, is_prose: bool
) -> str:
    made = []
    for number, (head, cell) in enumerate(zip(table.header, cells, strict=True)):
        side = "left" if number < table.text_columns else "right"
        kind = f' class="{escape(cell.split(" ")[0])}"' if head == VERDICT != cell else ""
        scope = ' scope="col"' if tag == "th" else ""
        style = "" if is_prose and side == "left" else f' style="text-align:{side}"'
        made.append(f"<{tag}{scope}{kind}{style}>{text(cell)}</{tag}>")
    return "".join(made)


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table as Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(_cell(text) for text in line)} |" for line in lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
