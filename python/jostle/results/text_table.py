"""A table of text, and its form in HTML and Markdown; `cli/output.py` prints it on a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

VERDICT: Final = "holds"
"""Heading of columns with verdicts; the first word of a cell is its class in HTML."""


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
        Number of columns, counted from the left, that contain text instead of numbers.
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
    text_columns: int = 0
    title: str = ""
    sections: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def html_table(table: Table) -> str:
    """Return a table as HTML, with numbers right-aligned."""
    lines = ['<table class="jostle">']
    if table.title:
        lines.append(f"<caption>{escape(table.title)}</caption>")
    lines += ["<thead><tr>", _html_cells("th", table.header, table), "</tr></thead><tbody>"]
    headings = dict(zip(table.groups, table.sections, strict=False))
    for number, row in enumerate(table.rows):
        if number in headings:
            span = f'<th colspan="{len(table.header)}" style="text-align:left">'
            lines.append(f"<tr>{span}{escape(headings[number])}</th></tr>")
        first = ' class="first"' if number in table.groups else ""
        lines.append(f"<tr{first}>{_html_cells('td', row, table)}</tr>")
    lines.append("</tbody></table>")
    lines += [f'<p class="note">{escape(note)}</p>' for note in table.notes]
    return "".join(lines)


def _html_cells(tag: str, cells: Iterable[str], table: Table) -> str:
    return "".join(
        f'<{tag} style="text-align:{"left" if number < table.text_columns else "right"}">'
        f"{escape(cell).replace(chr(10), '<br>')}</{tag}>"
        for number, cell in enumerate(cells)
    )


def html_text_table(table: Table, text: Callable[[str], str], css: str = "sortable prose") -> str:
    """Return a table of texts as HTML, with classes of its style sheet and a class per verdict."""
    verdicts = {at for at, name in enumerate(table.header) if name == VERDICT}
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in table.header)
    lines = [f'<div class="wide"><table class="{css}"><thead><tr>{head}</tr></thead><tbody>']
    for row in table.rows:
        cells = (
            f"""<td{f' class="{escape(cell.split(" ")[0])}"' if at in verdicts else ""}>"""
            f"{text(cell)}</td>"
            for at, cell in enumerate(row)
        )
        lines.append(f"<tr>{''.join(cells)}</tr>")
    return "\n".join([*lines, "</tbody></table></div>"])


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table as Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(_cell(text) for text in line)} |" for line in lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
