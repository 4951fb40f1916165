"""Comparison of many scenarios as a Markdown page on the accuracy of the simulator."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from jostle.fidelity.applications import APPLICATIONS, TITLES, Application
from jostle.fidelity.causes import UNEXPLAINED, Cause, cause_of, without_repetition
from jostle.fidelity.compared_quantities import quantities
from jostle.fidelity.tables import difference_text
from jostle.fidelity.tolerances import TOLERANCES, Kind, Tolerance
from jostle.results.measures import measure
from jostle.results.number_format import ABSENT, with_interval
from jostle.results.text_table import markdown_table

if TYPE_CHECKING:
    from jostle.fidelity.comparison import (
        Comparison,
        ComparisonCell,
        FlowComparison,
        MeasureComparison,
    )

WORST: Final = 10
"""Number of cells that are listed even if nothing explains them."""

_KIND_TITLES: Final[dict[Kind, str]] = {
    "solo": "a flow alone",
    "lossy": "alone, with random loss",
    "shared": "flows that share",
    "applications": "next to an application",
}

Row = Sequence[str]


def page(
    comparisons: Sequence[Comparison],
    causes: Sequence[Cause],
    command: str,
    title: str = "Fidelity",
) -> str:
    """Return the page as Markdown.

    Parameters
    ----------
    comparisons
        Comparisons, one per scenario.
    causes
        Known causes of differences.
    command
        Command that regenerates the page.
    title
        Heading of the page.
    """
    placed = [(c.scenario, cell) for c in comparisons for cell in c.cells]
    cells = [cell for _, cell in placed]
    parts = [
        f"# {title}",
        _introduction(comparisons, command),
        "## What is compared",
        _METHOD,
        _tolerances(cells),
        *_omissions(comparisons),
        "## How many cells are within the tolerances",
        _share_by(cells, _by_kind, ("", "cells", "within", "share")),
        "By quantity, where it is judged:",
        _by_quantity(cells),
        "By the controllers of a cell:",
        _by_controllers(cells),
        "By scenario:",
        _by_scenario(comparisons),
        "## The worst cells",
        _worst(placed, causes),
        "## Every cell",
        "The kernel's mean, and the simulator's less the kernel's. "
        "A difference outside its tolerance is **bold**; one whose own 95 % interval (Welch) "
        "reaches 0 may be chance and is marked ~.",
        *(_every_cell(comparison) for comparison in comparisons),
    ]
    return "\n\n".join(parts) + "\n"


_METHOD: Final = """\
Both sides run the same scenario with the same seeds and, drawn from them, the same starts of the
flows; the simulator may run more often, since that costs little. Where packets are lost at random
both lose the same ones, and only runs of the same seed are compared. Where a scenario gives no
`start_jitter`, every flow starts at a time drawn from one shortest round trip, because competition
is chaotic and a single pair of starts would show one of many outcomes. A cell is one condition of a
scenario; its numbers are means over the runs with Student's 95 % interval. Goodput, share and
smoothed RTT are means over the second half of a run. Retransmissions and measures of applications
are over the complete run. [Measures](../reference/measures.md) defines them, except the smoothed
RTT (SRTT): it is sampled at the ends of the intervals. A cell is within the tolerances if each of
its flows is:"""


def _omissions(comparisons: Sequence[Comparison]) -> list[str]:
    """Return a section on conditions and runs that are not compared; the method says the rest."""
    said = [
        f"- {comparison.scenario}: {sentence}"
        for comparison in comparisons
        for sentence in comparison.assumptions
        if sentence.startswith("Left out")
    ]
    return ["## What was left out", "\n".join(said)] if said else []


def _introduction(comparisons: Sequence[Comparison], command: str) -> str:
    kernels = sorted({c.kernel_version for c in comparisons})
    simulators = sorted({c.simulator_version for c in comparisons})
    return (
        "The simulator compared with the real Linux stack, cell by cell. "
        "This command writes the page:\n\n"
        f"```console\n$ {command}\n```\n\n"
        f"Simulator `{'`, `'.join(simulators)}`, {_runs(comparisons, 0)} per cell; "
        f"kernel `{'`, `'.join(kernels)}`, {_runs(comparisons, 1)} per cell."
    )


def _runs(comparisons: Sequence[Comparison], side: int) -> str:
    counts = {cell.runs[side] for comparison in comparisons for cell in comparison.cells}
    fewest, most = min(counts), max(counts)
    if fewest == most:
        return "1 run" if most == 1 else f"{most} runs"
    return f"{fewest} to {most} runs"


def _tolerances(cells: Sequence[ComparisonCell]) -> str:
    return "\n".join(
        f"- {title}: " + "; ".join(f"{_title(t.quantity)} {t.words}" for t in tolerances)
        for title, tolerances, _ in _judged(cells)
    )


def _judged(
    cells: Sequence[ComparisonCell],
) -> Iterator[tuple[str, Sequence[Tolerance], Callable[[ComparisonCell, FlowComparison], bool]]]:
    """Yield name, tolerances, and a function that selects the flows to which they apply."""

    def is_bulk(kind: Kind) -> Callable[[ComparisonCell, FlowComparison], bool]:
        return lambda cell, flow: cell.kind == kind and flow.application is None

    def carries(application: Application) -> Callable[[ComparisonCell, FlowComparison], bool]:
        return lambda _, flow: flow.application == application

    some = any(cell.kind == "applications" for cell in cells)
    for kind, title in _KIND_TITLES.items():
        if some or kind != "applications":
            yield title, TOLERANCES[kind], is_bulk(kind)
    for application, title in TITLES.items():
        if any(flow.application == application for cell in cells for flow in cell.flows):
            yield title, APPLICATIONS[application], carries(application)


def _title(name: str) -> str:
    return (
        next((one.title for one in quantities() if one.name == name), None) or measure(name).title
    )


def _by_kind(cell: ComparisonCell) -> str:
    return "not compared: runs failed" if cell.kind is None else _KIND_TITLES[cell.kind]


def _share_by(
    cells: Sequence[ComparisonCell], key: Callable[[ComparisonCell], str], header: Row
) -> str:
    names = list(dict.fromkeys(key(cell) for cell in cells))
    rows = []
    for name in names:
        found = [cell.within for cell in cells if key(cell) == name]
        rows.append((name, *_counts(found)))
    return markdown_table(header, rows)


def _counts(within: Sequence[bool]) -> tuple[str, str, str]:
    share = f"{100 * sum(within) / len(within):.1f} %" if within else ABSENT
    return str(len(within)), str(sum(within)), share


def _by_quantity(cells: Sequence[ComparisonCell]) -> str:
    rows = []
    for title, tolerances, concerns in _judged(cells):
        for tolerance in tolerances:
            found = []
            for cell in cells:
                of_cell = [
                    bool(one.within)
                    for flow, one in cell.judged
                    if one.tolerance is tolerance and concerns(cell, flow)
                ]
                found += [all(of_cell)] if of_cell else []
            if found:
                rows.append((title, _title(tolerance.quantity), *_counts(found)))
    return markdown_table(("", "quantity", "cells", "within", "share"), rows)


def _by_controllers(cells: Sequence[ComparisonCell]) -> str:
    compared = [cell for cell in cells if cell.compared]
    mixes = list(dict.fromkeys(_mix(cell) for cell in compared))
    kinds = [kind for kind in _KIND_TITLES if any(cell.kind == kind for cell in compared)]
    rows = []
    for mix in mixes:
        row = [mix]
        for kind in kinds:
            found = [c.within for c in compared if c.kind == kind and _mix(c) == mix]
            row.append(f"{sum(found)} of {len(found)}" if found else "")
        rows.append(row)
    return markdown_table(("controllers", *(_KIND_TITLES[kind] for kind in kinds)), rows)


def _mix(cell: ComparisonCell) -> str:
    return " + ".join(cell.controllers)


def _by_scenario(comparisons: Sequence[Comparison]) -> str:
    rows = [
        (f"`{c.scenario}`", c.title, *_counts([cell.within for cell in c.cells]))
        for c in comparisons
    ]
    return markdown_table(("scenario", "", "cells", "within", "share"), rows)


def _worst(placed: Sequence[tuple[str, ComparisonCell]], causes: Sequence[Cause]) -> str:
    outside = [(scenario, cell) for scenario, cell in placed if not cell.within]
    if not outside:
        return "Every cell is within the tolerances."
    ordered = sorted(outside, key=lambda item: -item[1].excess)
    worst = [
        (scenario, cell)
        for at, (scenario, cell) in enumerate(ordered)
        if at < WORST or cause_of(causes, scenario, cell) != UNEXPLAINED
    ]
    told = without_repetition([cause_of(causes, scenario, cell) for scenario, cell in worst])
    rows = [
        (f"`{scenario}` {cell.label}".rstrip(), _worst_difference(cell), cause)
        for (scenario, cell), cause in zip(worst, told, strict=True)
    ]
    return markdown_table(("cell", "largest difference, simulator less kernel", "cause"), rows)


def _worst_difference(cell: ComparisonCell) -> str:
    if not cell.compared:
        return cell.why_not_compared
    if not cell.judged:
        return "not judged: neither side has a value"
    flow, measure = max(cell.judged, key=_excess)
    return (
        f"{flow.name}: {measure.quantity.title} {difference_text(measure)}: "
        f"{_mean(measure, 'simulator')} instead of {_mean(measure, 'kernel')} "
        f"{measure.quantity.shown_unit}"
    )


def _excess(pair: tuple[FlowComparison, MeasureComparison]) -> float:
    excess = pair[1].excess
    return float("inf") if excess is None else excess


def _mean(measure: MeasureComparison, side: str) -> str:
    return with_interval(getattr(measure, side), measure.quantity.factor, measure.quantity.decimals)


def _every_cell(comparison: Comparison) -> str:
    if any(cell.kind == "applications" for cell in comparison.cells):
        return _every_application(comparison)
    rows: list[Row] = []
    alone = all(len(cell.flows) <= 1 for cell in comparison.cells)
    judged = [tolerance.quantity for tolerance in TOLERANCES["solo" if alone else "shared"]]
    for cell in comparison.cells:
        for number, flow in enumerate(cell.flows):
            rows.append(_flow_row(cell if number == 0 else None, flow, judged, alone))
        if not cell.compared:
            rows.append((cell.label, "", cell.why_not_compared, *[""] * (2 * len(judged) - 1)))
    names = [_title(name) for name in judged]
    header = (
        "condition",
        "controller" if alone else "flow",
        *(text for name in names for text in (f"{name}, kernel", "difference")),
    )
    return f"### {comparison.scenario}\n\n{comparison.title}\n\n{markdown_table(header, rows)}"


def _every_application(comparison: Comparison) -> str:
    """Return a table with a row per quantity, because flows have different ones."""
    rows: list[Row] = []
    for cell in comparison.cells:
        label = cell.label
        if not cell.compared:
            rows.append((label, "", cell.why_not_compared, "", ""))
        name = ""
        for flow, one in (*cell.judged, *cell.absent):
            shown = one.quantity
            same, name = flow.name == name, flow.name
            rows.append(
                (
                    label,
                    "" if same else name,
                    shown.title,
                    f"{_mean(one, 'kernel')} {shown.shown_unit}".rstrip(),
                    _difference(one),
                )
            )
            label = ""
    header = ("condition", "flow", "quantity", "kernel", "difference")
    return f"### {comparison.scenario}\n\n{comparison.title}\n\n{markdown_table(header, rows)}"


def _difference(measure: MeasureComparison) -> str:
    text = difference_text(measure)
    if measure.resolved is False:
        text = f"~ {text}"
    return f"**{text}**" if measure.within is False else text


def _flow_row(
    cell: ComparisonCell | None, flow: FlowComparison, judged: Sequence[str], alone: bool
) -> list[str]:
    name = flow.sender if alone else f"{flow.name} ({flow.sender})"
    row = [cell.label if cell else "", name]
    for quantity in judged:
        measure = flow.of(quantity)
        shown = measure.quantity
        row.append(f"{_mean(measure, 'kernel')} {shown.shown_unit}")
        row.append(_difference(measure))
    return row
