"""Count the cells of fidelity.md and fidelity-quic.md by controller and queue, for runs to quote.

usage: python tools/results/record_cells.py [--check]

Writes python/jostle/fidelity/recorded_cells.toml. A cell counts for each of its controllers (of
fidelity-quic.md for those over QUIC) with the queue of its bottleneck. A cell outside the
tolerances has a bold number. Its cause is taken from fidelity-causes.toml; the column of causes on
fidelity.md is renewed from there, too.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, cast

import jostle
from jostle.fidelity.causes import UNEXPLAINED, cause_of, read_causes, without_repetition
from jostle.results.condition_names import labels

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs/results/fidelity.md"
QUIC_PAGE: Final = ROOT / "docs/results/fidelity-quic.md"
CAUSES: Final = ROOT / "docs/results/fidelity-causes.toml"
DATA: Final = ROOT / "python/jostle/fidelity/recorded_cells.toml"


@dataclass(frozen=True)
class RecordedCell:
    """A cell of a page: its scenario, label, transport, controllers, queue, verdict and cause."""

    scenario: str
    label: str
    transport: str
    controllers: tuple[str, ...]
    queue: str
    within: bool
    cause: str


def recorded_cells(page: Path = PAGE, transport: str = "tcp") -> list[RecordedCell]:
    """Return all cells of a page, in its order, with their controllers over a transport."""
    text = page.read_text("utf-8")
    sections = re.split(r"^### ([\w-]+)$", text.partition("## Every cell")[2], flags=re.M)[1:]
    found = []
    for scenario, text in zip(sections[::2], sections[1::2], strict=True):
        found += _cells_of(scenario, dict(_rows(text)), transport)
    return found


def _rows(text: str) -> Iterator[tuple[str, str]]:
    """Yield the label of each cell, and all of its rows."""
    label, rows = "", ""
    for line in text.splitlines():
        first = line.split("|")[1].strip() if line.startswith("| ") else ""
        if first in ("condition", "---") or not line.startswith("| "):
            continue
        if first and label:
            yield label, rows
            rows = ""
        label = first or label
        rows += line
    if label:
        yield label, rows


def _cells_of(scenario: str, rows: dict[str, str], transport: str) -> Iterator[RecordedCell]:
    plan = jostle.load(ROOT / f"scenarios/validation/{scenario}.toml").plan()
    causes = read_causes(CAUSES).causes
    runs = plan.first_run_of_each_condition()
    assert set(rows) == set(labels(plan.conditions)), f"{scenario}: other conditions than the page"
    for label, condition, run in zip(labels(plan.conditions), plan.conditions, runs, strict=True):
        flows = run.spec["flows"]
        controllers = tuple(dict.fromkeys(flow["controller"]["name"] for flow in flows))
        within = "**" not in rows[label]
        cell = cast("Any", SimpleNamespace(condition=condition, controllers=controllers))
        cause = "" if within else cause_of(causes, scenario, cell)
        queue = run.spec["links"][flows[0]["path"][0]]["queue"]["kind"]
        counted = tuple(
            dict.fromkeys(
                flow["controller"]["name"] for flow in flows if flow["transport"] == transport
            )
        )
        yield RecordedCell(scenario, label, transport, counted, queue, within, cause)


def data_of(cells: list[RecordedCell]) -> str:
    """Return the text of the data file."""
    groups: dict[tuple[str, str, str], list[RecordedCell]] = {}
    for cell in cells:
        for controller in cell.controllers:
            groups.setdefault((controller, cell.transport, cell.queue), []).append(cell)
    tables = []
    for (controller, transport, queue), each in sorted(groups.items()):
        unexplained = [
            f'    "{cell.scenario}: {cell.label}",\n' for cell in each if cell.cause == UNEXPLAINED
        ]
        listed = f"[\n{''.join(unexplained)}]" if unexplained else "[]"
        tables.append(
            f'[[cells]]\ncontroller = "{controller}"\ntransport = "{transport}"\n'
            f'queue = "{queue}"\ncells = {len(each)}\n'
            f"within = {sum(cell.within for cell in each)}\nunexplained = {listed}\n"
        )
    head = "# Made by tools/results/record_cells.py from fidelity.md and fidelity-quic.md.\n\n"
    return head + "\n".join(tables)


def page_with_causes(cells: list[RecordedCell]) -> str:
    """Return the page with the causes that are known now."""
    causes = {f"`{cell.scenario}` {cell.label}": cell.cause for cell in cells}
    before, heading, rest = PAGE.read_text("utf-8").partition("## The worst cells")
    worst, next_heading, after = rest.partition("\n## ")
    rows = [line.split(" | ") for line in worst.splitlines()]
    named = [row for row in rows if row[0].removeprefix("| ") in causes]
    told = without_repetition([causes[row[0].removeprefix("| ")] for row in named])
    for row, cause in zip(named, told, strict=True):
        row[2:] = [f"{cause} |"]
    lines = "\n".join(" | ".join(row) for row in rows)
    return f"{before}{heading}{lines}\n{next_heading}{after}"


def main() -> int:
    """Write both files, or compare them."""
    cells = recorded_cells()
    quic = recorded_cells(QUIC_PAGE, "quic")
    wanted = {DATA: data_of([*cells, *quic]), PAGE: page_with_causes(cells)}
    stale = [path for path, text in wanted.items()
             if not path.exists() or path.read_text("utf-8") != text]  # fmt: skip
    if "--check" in sys.argv:
        for path in stale:
            print(f"{path.relative_to(ROOT)} is out of date: python tools/results/record_cells.py")
        return len(stale)
    for path in stale:
        path.write_text(wanted[path], "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
