"""The measure that answers the question of each kind of traffic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jostle.results.compared_phase import OVERALL
from jostle.results.flow_groups import TrafficKind
from jostle.results.measure_samples import MeasureSample, samples
from jostle.results.tables import columns_of

if TYPE_CHECKING:
    from jostle.results.finished_runs import FinishedRuns


def main_samples(results: FinishedRuns, kind: TrafficKind, phase: str) -> list[MeasureSample]:
    """Return the samples of the first measure of a kind's table for which a run has a value."""
    for wanted in columns_of(results, kind, OVERALL):
        if wanted.scope != "flow":
            continue
        found = [
            sample
            for sample in samples(results, wanted, (phase,))
            if kind_of(results, sample) == kind
        ]
        if any(value is not None for sample in found for value in sample.values):
            return found
    return []


def kind_of(results: FinishedRuns, sample: MeasureSample) -> TrafficKind:
    """Return the kind of traffic of the flow that a sample belongs to."""
    groups = results.flow_groups(sample.condition)
    return next(group.kind for group in groups if group.name == sample.place["flow"])
