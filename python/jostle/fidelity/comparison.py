"""Comparison of simulator runs and kernel runs by cell.

A cell is one condition of a scenario, with the mean over the runs of each side. A cell is within
the tolerances if all of its judged quantities are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from jostle.fidelity.applications import Application, application_of, tolerances_of
from jostle.fidelity.compared_quantities import (
    ComparedQuantity,
    Observation,
    observe,
    quantities,
    quantities_of,
)
from jostle.fidelity.tolerances import TOLERANCES, Kind, Tolerance
from jostle.stats import Estimate, difference, estimate

if TYPE_CHECKING:
    from jostle.backends import Spec
    from jostle.results import ConditionRun, Failure, ResultSet
    from jostle.results.condition_names import Condition
    from jostle.run_spec import FlowSpec


@dataclass(frozen=True)
class MeasureComparison:
    """One quantity of one flow, on both sides.

    Attributes
    ----------
    quantity
        Compared quantity.
    simulator, kernel
        Mean over the runs, with its 95 % interval.
    difference
        Simulator minus kernel, with Welch's interval.
    tolerance
        Tolerance; None if the quantity is shown but not judged.
    """

    quantity: ComparedQuantity
    simulator: Estimate
    kernel: Estimate
    difference: Estimate
    tolerance: Tolerance | None

    @property
    def absent(self) -> bool:
        """Whether neither side has a value."""
        return self.simulator.value is self.kernel.value is None

    @property
    def judged(self) -> bool:
        """Whether it has a tolerance and at least one side has a value."""
        return self.tolerance is not None and not self.absent

    @cached_property
    def excess(self) -> float | None:
        """Difference divided by the tolerance (within up to 1); None if not judged or missing."""
        if self.tolerance is None or self.absent:
            return None
        expected = self.tolerance.expected(self.simulator, self.kernel)
        return None if expected is None else expected.used_margin

    @property
    def within(self) -> bool | None:
        """Whether the difference is within the tolerance; None if it is not judged."""
        if not self.judged:
            return None
        return self.excess is not None and self.excess <= 1.0

    @property
    def wider_bound(self) -> str:
        """The bound that accepts a difference which its first bound rejects; empty if none does."""
        if self.tolerance is None or not self.within or self.difference.value is None:
            return ""
        return self.tolerance.wider_bound(
            self.difference.value, self.kernel, self.quantity.shown_unit
        )

    @property
    def resolved(self) -> bool | None:
        """Whether the difference is statistically significant: its interval does not contain 0.

        None if there are too few runs for an interval.
        """
        low, high = self.difference.low, self.difference.high
        return None if low is None or high is None else not low <= 0.0 <= high

    @property
    def relative(self) -> float | None:
        """Difference as a share of the kernel's mean."""
        if self.difference.value is None or not self.kernel.value:
            return None
        return self.difference.value / abs(self.kernel.value)


@dataclass(frozen=True)
class FlowComparison:
    """One flow of a cell, with its application if it has one."""

    name: str
    controller: str
    transport: str
    measures: tuple[MeasureComparison, ...]
    application: Application | None = None

    @property
    def sender(self) -> str:
        """Controller, with the transport unless it is TCP."""
        carrier = {"quic": "QUIC", "udp": "UDP"}.get(self.transport)
        return f"{self.controller} over {carrier}" if carrier else self.controller

    def of(self, quantity: str) -> MeasureComparison:
        """Return the comparison of a quantity."""
        return next(m for m in self.measures if m.quantity.name == quantity)


@dataclass(frozen=True)
class ComparisonCell:
    """One condition of a scenario, on both sides.

    Attributes
    ----------
    condition, label
        Grid values and name of the condition.
    kind
        Kind of the cell, which selects the judged quantities; None if it is not compared.
    flows
        Flows in the order of the scenario; empty if it is not compared, because a run failed or a
        side has no run.
    runs
        Number of runs of the simulator and of the kernel.
    incomplete
        How many runs of each side failed, and why; empty if none failed.
    """

    condition: Condition
    label: str
    kind: Kind | None
    flows: tuple[FlowComparison, ...]
    runs: tuple[int, int]
    incomplete: str = ""

    @property
    def compared(self) -> bool:
        """Whether both sides have runs, of which none failed."""
        return bool(self.flows)

    @property
    def why_not_compared(self) -> str:
        """Why it is not compared."""
        return f"runs failed: {self.incomplete}" if self.incomplete else "runs failed"

    @property
    def judged(self) -> tuple[tuple[FlowComparison, MeasureComparison], ...]:
        """All judged quantities with their flows."""
        return tuple((f, m) for f in self.flows for m in f.measures if m.judged)

    @property
    def absent(self) -> tuple[tuple[FlowComparison, MeasureComparison], ...]:
        """All quantities with a tolerance of which neither side has a value, with their flows."""
        return tuple(
            (f, m) for f in self.flows for m in f.measures if m.tolerance is not None and m.absent
        )

    @property
    def not_judged(self) -> tuple[tuple[FlowComparison, MeasureComparison], ...]:
        """All quantities that are shown without a tolerance, with their flows.

        The share of a flow alone is no result.
        """
        return tuple(
            (f, m)
            for f in self.flows
            for m in f.measures
            if m.tolerance is None and (len(self.flows) > 1 or m.quantity.name != "share")
        )

    @property
    def within(self) -> bool:
        """Whether there are judged quantities, and all are within their tolerance."""
        return bool(self.judged) and all(measure.within for _, measure in self.judged)

    @property
    def excess(self) -> float:
        """Largest difference divided by its tolerance; infinite if one side lacks a value."""
        excesses = [measure.excess for _, measure in self.judged]
        return max((float("inf") if e is None else e for e in excesses), default=float("inf"))

    @property
    def controllers(self) -> tuple[str, ...]:
        """Controllers of the flows without duplicates, with transport unless it is TCP."""
        return tuple(dict.fromkeys(flow.sender for flow in self.flows))


@dataclass(frozen=True)
class Comparison:
    """One scenario on both sides.

    Attributes
    ----------
    scenario
        Name of its file without folder and extension.
    title
        Title of the scenario.
    simulator_version, kernel_version
        Versions of the backends.
    cells
        Cells, one per condition.
    failures
        Failed runs: side and failure.
    assumptions
        Sentences on what was assumed about the runs, and on what was left out.
    """

    scenario: str
    title: str
    simulator_version: str
    kernel_version: str
    cells: tuple[ComparisonCell, ...]
    failures: tuple[tuple[str, Failure], ...]
    assumptions: tuple[str, ...] = ()

    @property
    def within(self) -> int:
        """Number of cells within the tolerances."""
        return sum(cell.within for cell in self.cells)


def compare(scenario: str, simulator: ResultSet, kernel: ResultSet) -> Comparison:
    """Compare two result sets of the same plan.

    Parameters
    ----------
    scenario
        Name of the scenario file without folder and extension.
    simulator, kernel
        Results of the same plan on the two backends.

    Raises
    ------
    ValueError
        If the plans have different conditions.
    """
    if simulator.conditions != kernel.conditions:
        raise ValueError("the two sides have different conditions")
    cells = tuple(
        _cell(simulator, kernel, index, label) for index, label in enumerate(simulator.labels)
    )
    sides = (("simulator", simulator), ("kernel", kernel))
    return Comparison(
        scenario=scenario,
        title=simulator.title,
        simulator_version=simulator.backend_version,
        kernel_version=kernel.backend_version,
        cells=cells,
        failures=tuple((side, failure) for side, found in sides for failure in found.failures),
        assumptions=tuple(_omissions(cells, simulator, kernel)),
    )


def _omissions(
    cells: Sequence[ComparisonCell], simulator: ResultSet, kernel: ResultSet
) -> Iterator[str]:
    """Say which finished runs are not part of the comparison.

    Conditions with the same reason share a line.
    """
    unpaired: dict[tuple[str, int], list[str]] = {}
    missing = []
    for index, cell in enumerate(cells):
        done = [len(side.runs_of(index)) for side in (simulator, kernel)]
        for side, count, used in zip(("simulator", "kernel"), done, cell.runs, strict=True):
            if used < count:
                unpaired.setdefault((side, count - used), []).append(cell.label)
        if not cell.compared and any(done):
            missing.append(cell.label or "the scenario")
    for (side, runs), labels in unpaired.items():
        yield (
            f"Left out: {runs} runs of the {side}{_where(labels, len(cells))}, because the other "
            "side has no run with the same seed, and seeds set the losses."
        )
    if missing:
        yield f"Left out: {'; '.join(missing)}, of which one side has no run."


def _where(labels: Sequence[str], conditions: int) -> str:
    """Return the words for the conditions with these labels, of this number of conditions."""
    if len(labels) == 1:
        return f" of {labels[0]}" if labels[0] else ""
    if len(labels) == conditions:
        return f" of each of the {conditions} conditions"
    return f" of each of {len(labels)} conditions ({'; '.join(labels)})"


def _cell(simulator: ResultSet, kernel: ResultSet, condition: int, label: str) -> ComparisonCell:
    ours = [observe(result.run) for result in simulator.runs_of(condition)]
    theirs = [observe(result.run) for result in kernel.runs_of(condition)]
    place, runs = simulator.conditions[condition], (len(ours), len(theirs))
    failed = [
        f"{name}: {text}"
        for name, side in (("simulator", simulator), ("kernel", kernel))
        if (text := side.incomplete(condition))
    ]
    if not ours or not theirs or failed:
        return ComparisonCell(place, label, None, (), runs, "; ".join(failed))
    spec = simulator.runs_of(condition)[0].run.spec
    kind = _kind(spec)
    if kind == "lossy":
        # With the same seed, the virtual kernel loses the same packets as the simulator. Other
        # seeds have other losses, which change goodput by more than the tolerance.
        ours, theirs = _of_the_same_seeds(simulator.runs_of(condition), kernel.runs_of(condition))
        runs = (len(ours), len(theirs))
        if not ours:
            return ComparisonCell(place, label, None, (), runs)
    flows = tuple(
        FlowComparison(
            name=flow["name"],
            controller=flow["controller"]["name"],
            transport=flow["transport"],
            measures=_measures(flow, kind, ours, theirs),
            application=application_of(flow),
        )
        for flow in spec["flows"]
    )
    return ComparisonCell(place, label, kind, flows, runs)


def _of_the_same_seeds(*sides: Sequence[ConditionRun]) -> list[list[dict[str, Observation]]]:
    """Return the observations of each side, for seeds that all sides have."""
    seeds = [{result.run.spec["seed"] for result in side} for side in sides]
    common = set.intersection(*seeds)
    return [
        [observe(result.run) for result in side if result.run.spec["seed"] in common]
        for side in sides
    ]


def _kind(spec: Spec) -> Kind:
    if any(application_of(flow) for flow in spec["flows"]):
        return "applications"
    if len(spec["flows"]) > 1:
        return "shared"
    loses = any(
        link["loss"] or link["outages"] or link.get("loss_steps") or link.get("faults")
        for link in spec["links"]
    )
    return "lossy" if loses else "solo"


def _measures(
    flow: FlowSpec,
    kind: Kind,
    ours: Sequence[Mapping[str, Observation]],
    theirs: Sequence[Mapping[str, Observation]],
) -> tuple[MeasureComparison, ...]:
    noticed = tolerances_of(flow)
    tolerances = {tolerance.quantity: tolerance for tolerance in noticed or TOLERANCES[kind]}
    measures = []
    for quantity in quantities_of(noticed) if noticed else quantities():
        simulator = [run[flow["name"]].of(quantity.name) for run in ours]
        kernel = [run[flow["name"]].of(quantity.name) for run in theirs]
        measures.append(
            MeasureComparison(
                quantity,
                estimate(simulator, quantity.unit),
                estimate(kernel, quantity.unit),
                difference(simulator, kernel, quantity.unit),
                tolerances.get(quantity.name),
            )
        )
    return tuple(measures)
