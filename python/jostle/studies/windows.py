"""A run seen through windows: parts of its time, given by time or by bytes delivered."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from jostle.results.measures import Measure
from jostle.results.operating_points import OperatingPoints, operating_points
from jostle.results.series import position_of, series_of
from jostle.scenario.text.units import parse_span
from jostle.stats.describe import Floats, present
from jostle.studies.states import States

if TYPE_CHECKING:
    from jostle._core import Series
    from jostle.backends import Run, Spec
    from jostle.studies.models import Window


AT_ACKS: Final = {"rtt": "rtt_s", "ack_rtt": "ack_rtt_s"}
"""Measures that a run can have at each ACK, and their columns there."""


@dataclass(frozen=True)
class Span:
    """A part of a run.

    Attributes
    ----------
    from_s, to_s
        In s from the run's beginning.
    phase
        Name of the run's phase that it is; empty if it is none.
    """

    from_s: float
    to_s: float
    phase: str = ""


@dataclass(frozen=True)
class Asked:
    """What a measure of the whole run may be asked with; see `crates/record/src/measures.rs`."""

    size_bytes: int | None = None
    percentile: float | None = None
    above_ms: float | None = None
    below_ms: float | None = None


class RunView:
    """A run and its measures over windows, in the units that people read.

    A phase of the run has what its summary says. Over other windows the engine computes the same
    measures from the series.

    Parameters
    ----------
    run
        A finished run.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._points: dict[tuple[str, str], OperatingPoints] = {}
        self._states: dict[str, States] = {}

    @property
    def seed(self) -> int:
        """Seed of the run."""
        return int(self.spec["seed"])

    def span(self, name: str, window: Window | None, flow: str) -> Span:
        """Where a window lies in this run."""
        phases = {one["name"]: (one["from_ns"], one["to_ns"]) for one in self.spec["phases"]}
        if window is None:
            from_ns, to_ns = phases[name]
            return Span(from_ns / 1e9, to_ns / 1e9, name)
        if window.time is not None:
            low, high = (parse_span(text) for text in window.time)
            same = next((name for name, ends in phases.items() if ends == (low, high)), "")
            return Span(low / 1e9, high / 1e9, same)
        assert window.bytes is not None
        low_share, high_share = (float(text.removesuffix("%")) / 100 for text in window.bytes)
        return Span(*self._series.span_of_shares(self._flows.index(flow), low_share, high_share))

    def value(
        self, measure: Measure, who: str, span: Span, asked: Asked | None = None
    ) -> float | None:
        """Take a measure of a flow, group, link or the run over a window; None without a value."""
        if measure.place == "asked":
            found = self._series.asked(measure.name, who, **vars(asked or Asked()))
        elif span.phase or measure.place in ("flow", "group"):
            found = measure.of_summary(self._run.summary, span.phase, who)
        else:
            position = position_of(self._run, measure, who)
            found = self._series.over(measure.name, position, span.from_s, span.to_s)
        return None if found is None else found * measure.factor

    def bins(self, measure: Measure, who: str, span: Span, bin_s: float | None) -> Floats:
        """Take a measure in each bin of `bin_s`, or of the series' own if that is absent.

        Returns
        -------
        array
            Shape (bins,); NaN where it has no value.
        """
        position = position_of(self._run, measure, who)
        found: Floats = self._series.bins(measure.name, position, span.from_s, span.to_s, bin_s)
        scaled: Floats = found * measure.factor
        return scaled

    def at_acks(self, measure: Measure, flow: str, span: Span) -> Floats:
        """Take a measure of a flow at each ACK of a span that has it; shape (ACKs,).

        Empty if the run did not record its ACKs.
        """
        import polars as pl

        acks = self._run.acks
        if acks is None:
            return np.array([])
        name = AT_ACKS[measure.name]
        time_s = pl.col("time_s")
        there = (pl.col("flow") == flow) & (time_s >= span.from_s) & (time_s < span.to_s)
        found: Floats = acks.filter(there)[name].drop_nulls().to_numpy()
        return present(found) * measure.factor

    def points(self, flow: str, phase: str) -> OperatingPoints:
        """Take the operating points of a flow in a phase, or without one in 95 % of its life."""
        if (flow, phase) not in self._points:
            self._points[flow, phase] = operating_points(self._run, flow, phase)
        return self._points[flow, phase]

    def states(self, flow: str) -> States:
        """Take the modes and internal quantities of a flow."""
        if flow not in self._states:
            self._states[flow] = States(self._run, flow)
        return self._states[flow]

    def since_start(self, measure: Measure, flow: str) -> tuple[Floats, Floats]:
        """Take a measure of a flow in each interval from its start to its last packet.

        Returns
        -------
        tuple
            The intervals' middles in s from the flow's start, and the values. Both (intervals,).
        """
        facts = self._run.summary["flows"][self._flows.index(flow)]
        whole = Span(0.0, self.spec["duration_ns"] / 1e9)
        interval_s = self.spec["interval_ns"] / 1e9
        values = self.bins(measure, flow, whole, None)
        middles = (np.arange(values.size) + 0.5) * interval_s - facts["start_s"]
        last_s = facts["completion_s"]
        end_s = np.inf if last_s is None else last_s + interval_s
        shown = (middles >= 0) & (middles <= end_s)
        return middles[shown], values[shown]

    def members(self, name: str) -> tuple[str, ...]:
        """Names of the flows that were written as one with this name; none if it is a flow's."""
        if name in self._flows:
            return ()
        return tuple(one["name"] for one in self.spec["flows"] if one.get("group") == name)

    @cached_property
    def _flows(self) -> list[str]:
        return [flow["name"] for flow in self._run.summary["flows"]]

    @property
    def spec(self) -> Spec:
        """Its specification."""
        return self._run.spec

    @cached_property
    def _series(self) -> Series:
        return series_of(self._run)
