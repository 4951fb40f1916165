"""Roles that insert numbers from generated files into a page, so that pages stay up to date.

`` {cells}`cubic alone` `` is the number of cells of results/fidelity.md with that controller that
are within the tolerances, such as "16 of 16". Kinds are `alone`, `lossy` and `sharing`; `all`
selects every controller. `` {per-ack}`bbr3` `` is the cost of an ACK for a controller from
per-ack.inc, in words, and `` {instructions}`bbr3` `` the number only.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxRole

_COLUMNS = {"alone": 1, "lossy": 2, "sharing": 3}
"""Columns of the table of results/fidelity.md with cells by controllers."""


class _Number(SphinxRole, ABC):
    """A role that is replaced by a value from a generated file."""

    source: str

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        path = Path(self.env.srcdir) / self.source
        self.env.note_dependency(str(path))
        try:
            return [nodes.Text(self.words(path.read_text("utf-8")))], []
        except ValueError as error:
            message = self.inliner.reporter.error(f"{self.source}: {error}", line=self.lineno)
            return [], [message]

    @abstractmethod
    def words(self, text: str) -> str:
        """Return the role's value from the text of the file."""


class Cells(_Number):
    """Cells of the fidelity page that are within the tolerances."""

    source = "results/fidelity.md"

    def words(self, text: str) -> str:
        """Count the cells with a controller, alone or with others."""
        name, _, kind = self.text.partition(" ")
        if kind not in _COLUMNS:
            raise ValueError(f"no kind of cells `{kind}`: one of {', '.join(_COLUMNS)}")
        header = "| controllers | a flow alone | alone, with random loss | flows that share |\n"
        _, found, table = text.partition(header)
        if not found:
            raise ValueError("there is no table by controllers")
        within = cells = 0
        for row in table.split("\n\n", 1)[0].splitlines()[1:]:
            columns = [cell.strip() for cell in row.strip("|").split("|")]
            count = re.fullmatch(r"(\d+) of (\d+)", columns[_COLUMNS[kind]])
            if count and (name == "all" or name in columns[0].split(" + ")):
                within += int(count[1])
                cells += int(count[2])
        if not cells:
            raise ValueError(f"no cell of `{name}` is {kind}")
        return f"{within} of {cells}"


class Instructions(_Number):
    """Instructions of a controller per ACK."""

    source = "per-ack.inc"

    def words(self, text: str) -> str:
        """Return the number only."""
        return self._row(text)[0]

    def _row(self, text: str) -> list[str]:
        for line in text.splitlines():
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            if cells[0] == f"`{self.text}`":
                return cells[1:]
        raise ValueError(f"no row `{self.text}`")


class PerAck(Instructions):
    """Cost of an ACK for a controller."""

    def words(self, text: str) -> str:
        """Return the number of instructions, compared with Reno."""
        alone, ratio, _, with_transport, *_ = self._row(text)
        return (
            f"{alone} instructions per ACK, {ratio} times Reno and {with_transport} times with the "
            "transport"
        )


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the roles."""
    app.add_role("cells", Cells())
    app.add_role("instructions", Instructions())
    app.add_role("per-ack", PerAck())
    return {"parallel_read_safe": True}
