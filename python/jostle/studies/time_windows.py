"""Time windows of a run, given by time or by bytes delivered, and measures over them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from jostle.results.completion_bounds import censoring_time_s
from jostle.results.measures import Measure
from jostle.results.operating_points import OperatingPoints, operating_points
from jostle.results.series_query import position_of, series_of
from jostle.scenario.parsing.quantities import parse_span
from jostle.stats.descriptive import Floats, drop_missing
from jostle.studies.controller_states import ControllerStates

if TYPE_CHECKING:
    from jostle._core import Series
    from jostle.backends import Run, Spec
    from jostle.studies.models import Window


AT_ACKS: Final = {"rtt": "rtt_s", "segment_rtt": "segment_rtt_s"}
"""Measures that are also available per ACK, and their columns."""

_CONVERGED_S: Final = 5.0
"""Time for which rates are equal when they have converged."""


@dataclass(frozen=True)
class TimeWindow:
    """A time window of a run.

    Attributes
    ----------
    from_s, to_s
        In s from the start of the run.
    phase
        Name of the phase that the window is; empty if it is none.
    """

    from_s: float
    to_s: float
    phase: str = ""


@dataclass(frozen=True)
class MeasureArguments:
    """Parameters of a measure of the complete run; see `crates/metrics/src/measures.rs`."""

    size_bytes: int | None = None
    percentile: float | None = None
    above_ms: float | None = None
    below_ms: float | None = None


class RunView:
    """A run and its measures over windows, in the units of tables.

    The measures of a phase are read from the summary. Over other windows the engine computes them
    from the series.

    Parameters
    ----------
    run
        A finished run.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._points: dict[tuple[str, str], OperatingPoints] = {}
        self._states: dict[str, ControllerStates] = {}

    @property
    def seed(self) -> int:
        """Seed of the run."""
        return int(self.spec["seed"])

    def span(self, name: str, window: Window | None, flow: str) -> TimeWindow:
        """Return the time of a window in this run."""
        phases = {one["name"]: (one["from_ns"], one["to_ns"]) for one in self.spec["phases"]}
        if window is None:
            from_ns, to_ns = phases[name]
            return TimeWindow(from_ns / 1e9, to_ns / 1e9, name)
        if window.time is not None:
            low, high = (parse_span(text) for text in window.time)
            same = next((name for name, ends in phases.items() if ends == (low, high)), "")
            return TimeWindow(low / 1e9, high / 1e9, same)
        assert window.bytes is not None
        low_share, high_share = (float(text.removesuffix("%")) / 100 for text in window.bytes)
        return TimeWindow(
            *self._series.span_of_shares(self._flows.index(flow), low_share, high_share)
        )

    def value(
        self, measure: Measure, who: str, span: TimeWindow, asked: MeasureArguments | None = None
    ) -> float | None:
        """Return a measure of a flow, group, link or run over a window; None without a value."""
        if measure.place == "asked":
            found = self._series.run_measure(measure.name, who, **vars(asked or MeasureArguments()))
        elif span.phase or measure.place in ("flow", "group"):
            found = measure.of_summary(self._run.summary, span.phase, who)
        else:
            position = position_of(self._run, measure, who)
            found = self._series.window_measure(measure.name, position, span.from_s, span.to_s)
        return None if found is None else found * measure.factor

    def censoring_time_s(self, name: str, who: str, span: TimeWindow) -> float:
        """Return a lower bound in s of the time of an event that did not occur in the run."""
        if name == "convergence_time":
            return max(span.to_s - _CONVERGED_S, 0.0)
        return censoring_time_s(self._run, who)

    def bins(self, measure: Measure, who: str, span: TimeWindow, bin_s: float | None) -> Floats:
        """Return a measure in each bin of `bin_s`; by default, in each sampling interval.

        Returns
        -------
        array
            Shape (bins,); NaN if a bin has no value.
        """
        position = position_of(self._run, measure, who)
        found: Floats = self._series.bins(measure.name, position, span.from_s, span.to_s, bin_s)
        scaled: Floats = found * measure.factor
        return scaled

    def at_acks(self, measure: Measure, flow: str, span: TimeWindow) -> Floats:
        """Return a measure of a flow at each ACK in a window that has it; shape (ACKs,).

        It is empty if the run did not record its ACKs.
        """
        import polars as pl

        acks = self._run.acks
        if acks is None:
            return np.array([])
        name = AT_ACKS[measure.name]
        time_s = pl.col("time_s")
        there = (pl.col("flow") == flow) & (time_s >= span.from_s) & (time_s < span.to_s)
        found: Floats = acks.filter(there)[name].drop_nulls().to_numpy()
        return drop_missing(found) * measure.factor

    def points(self, flow: str, phase: str) -> OperatingPoints:
        """Return the operating points of a flow in a phase, or in 95 % of its lifetime."""
        if (flow, phase) not in self._points:
            self._points[flow, phase] = operating_points(self._run, flow, phase)
        return self._points[flow, phase]

    def states(self, flow: str) -> ControllerStates:
        """Return the modes and internal quantities of a flow."""
        if flow not in self._states:
            self._states[flow] = ControllerStates(self._run, flow)
        return self._states[flow]

    def since_start(self, measure: Measure, flow: str) -> tuple[Floats, Floats]:
        """Return a measure of a flow in each interval from its start to its last packet.

        Returns
        -------
        tuple
            Middles of the intervals in s from the flow's start, and values; both (intervals,).
        """
        facts = self._run.summary["flows"][self._flows.index(flow)]
        whole = TimeWindow(0.0, self.spec["duration_ns"] / 1e9)
        interval_s = self.spec["interval_ns"] / 1e9
        values = self.bins(measure, flow, whole, None)
        middles = (np.arange(values.size) + 0.5) * interval_s - facts["start_s"]
        last_s = facts["completion_time_s"]
        end_s = np.inf if last_s is None else last_s + interval_s
        shown = (middles >= 0) & (middles <= end_s)
        return middles[shown], values[shown]

    def members(self, name: str) -> tuple[str, ...]:
        """Return the names of the flows of an entry with `count`; empty for a single flow."""
        if name in self._flows:
            return ()
        return tuple(one["name"] for one in self.spec["flows"] if one.get("group") == name)

    @cached_property
    def _flows(self) -> list[str]:
        return [flow["name"] for flow in self._run.summary["flows"]]

    @property
    def spec(self) -> Spec:
        """Specification of the run."""
        return self._run.spec

    @cached_property
    def _series(self) -> Series:
        return series_of(self._run)
