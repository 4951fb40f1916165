"""Compares the runs of the simulator with those of the kernel, cell by cell.

A cell is one condition of a scenario: the mean over its runs on one side beside the mean on the
other. It is within the tolerances if everything that is judged in it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from jostle.fidelity.applications import APPLICATIONS, Application, application_of
from jostle.fidelity.observe import Observation, Quantity, observe, quantities, quantities_of
from jostle.fidelity.tolerances import TOLERANCES, Kind, Tolerance
from jostle.stats import Estimate, difference, estimate

if TYPE_CHECKING:
    from jostle.backends import Spec
    from jostle.results import Failure, Result, ResultSet
    from jostle.results.conditions import Condition
    from jostle.run_spec import FlowSpec


@dataclass(frozen=True)
class MeasureComparison:
    """One quantity of one flow, on both sides.

    Attributes
    ----------
    quantity
        What it is.
    simulator, kernel
        Mean over the runs, with its 95 % interval.
    difference
        Simulator less kernel, with Welch's interval.
    tolerance
        What is allowed; None if the quantity is shown and not judged.
    """

    quantity: Quantity
    simulator: Estimate
    kernel: Estimate
    difference: Estimate
    tolerance: Tolerance | None

    @cached_property
    def excess(self) -> float | None:
        """Difference in allowances (within up to 1); None if not judged or one side has none."""
        if self.tolerance is None:
            return None
        return self.tolerance.excess(self.simulator, self.kernel)

    @property
    def within(self) -> bool | None:
        """Whether the difference is within the tolerance; None if it is not judged."""
        if self.tolerance is None:
            return None
        return self.excess is not None and self.excess <= 1.0

    @property
    def resolved(self) -> bool | None:
        """Whether the difference is more than chance: its interval does not reach 0.

        None where there are too few runs to say.
        """
        low, high = self.difference.low, self.difference.high
        return None if low is None or high is None else not low <= 0.0 <= high

    @property
    def relative(self) -> float | None:
        """Difference as a part of the kernel's mean."""
        if self.difference.value is None or not self.kernel.value:
            return None
        return self.difference.value / abs(self.kernel.value)


@dataclass(frozen=True)
class FlowComparison:
    """One flow of a cell, and which application it carries, if it does."""

    name: str
    controller: str
    transport: str
    measures: tuple[MeasureComparison, ...]
    application: Application | None = None

    @property
    def sender(self) -> str:
        """The controller, and the transport where it is not TCP: what tells senders apart."""
        carrier = {"quic": "QUIC", "udp": "UDP"}.get(self.transport)
        return f"{self.controller} over {carrier}" if carrier else self.controller

    def of(self, quantity: str) -> MeasureComparison:
        """Find the comparison of one quantity."""
        return next(m for m in self.measures if m.quantity.name == quantity)


@dataclass(frozen=True)
class Cell:
    """One condition of a scenario, on both sides.

    Attributes
    ----------
    condition, label
        Its values of the grid, and its name.
    kind
        What is judged in it; None if a side has no run.
    flows
        In the order of the scenario; none if a side has no run.
    runs
        Runs of the simulator and of the kernel.
    """

    condition: Condition
    label: str
    kind: Kind | None
    flows: tuple[FlowComparison, ...]
    runs: tuple[int, int]

    @property
    def compared(self) -> bool:
        """Whether both sides have a run."""
        return bool(self.flows)

    @property
    def judged(self) -> tuple[tuple[FlowComparison, MeasureComparison], ...]:
        """All that decides."""
        return tuple((f, m) for f in self.flows for m in f.measures if m.tolerance is not None)

    @property
    def within(self) -> bool:
        """Whether all that is judged is within its tolerance."""
        return self.compared and all(measure.within for _, measure in self.judged)

    @property
    def excess(self) -> float:
        """Largest difference in allowances; infinite if one side lacks a value."""
        excesses = [measure.excess for _, measure in self.judged]
        return max((float("inf") if e is None else e for e in excesses), default=float("inf"))

    @property
    def controllers(self) -> tuple[str, ...]:
        """Controllers of the flows, each once, with their transport where it is not TCP."""
        return tuple(dict.fromkeys(flow.sender for flow in self.flows))


@dataclass(frozen=True)
class Comparison:
    """One scenario on both sides.

    Attributes
    ----------
    scenario
        Name of its file, without folder and ending.
    title
        Its title.
    simulator_version, kernel_version
        Versions of the backends.
    cells
        One per condition.
    failures
        Runs that failed: the side, and the failure.
    """

    scenario: str
    title: str
    simulator_version: str
    kernel_version: str
    cells: tuple[Cell, ...]
    failures: tuple[tuple[str, Failure], ...]

    @property
    def within(self) -> int:
        """How many cells are within the tolerances."""
        return sum(cell.within for cell in self.cells)


def compare(scenario: str, simulator: ResultSet, kernel: ResultSet) -> Comparison:
    """Compare two result sets of the same plan.

    Parameters
    ----------
    scenario
        Name of the scenario's file, without folder and ending.
    simulator, kernel
        Results of the same plan by the two backends.

    Raises
    ------
    ValueError
        When the plans differ in their conditions.
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
    )


def _cell(simulator: ResultSet, kernel: ResultSet, condition: int, label: str) -> Cell:
    ours = [observe(result.run) for result in simulator.of(condition)]
    theirs = [observe(result.run) for result in kernel.of(condition)]
    place, runs = simulator.conditions[condition], (len(ours), len(theirs))
    if not ours or not theirs:
        return Cell(place, label, None, (), runs)
    spec = simulator.of(condition)[0].run.spec
    kind = _kind(spec)
    if kind == "lossy":
        # The virtual kernel loses the packets that the simulator loses with the same seed. Runs of
        # other seeds meet other losses, from which goodput differs by more than any tolerance.
        ours, theirs = _of_the_same_seeds(simulator.of(condition), kernel.of(condition))
        runs = (len(ours), len(theirs))
        if not ours:
            return Cell(place, label, None, (), runs)
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
    return Cell(place, label, kind, flows, runs)


def _of_the_same_seeds(*sides: Sequence[Result]) -> list[list[dict[str, Observation]]]:
    """Give what the runs of each side measured, without those whose seed another side lacks."""
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
    loses = any(link["loss"] or link["outages"] or link.get("loss_steps") for link in spec["links"])
    return "lossy" if loses else "solo"


def _measures(
    flow: FlowSpec,
    kind: Kind,
    ours: Sequence[Mapping[str, Observation]],
    theirs: Sequence[Mapping[str, Observation]],
) -> tuple[MeasureComparison, ...]:
    application = application_of(flow)
    judged = TOLERANCES[kind] if application is None else APPLICATIONS[application]
    tolerances = {tolerance.quantity: tolerance for tolerance in judged}
    measures = []
    for quantity in quantities() if application is None else quantities_of(application):
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
