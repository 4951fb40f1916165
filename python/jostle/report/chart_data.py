"""Time series of runs, packed for the charts of a page.

A *trace* is a measure of one flow or link over time: its mean over runs with the confidence
interval, and every single run as long as the page has room. Values are written as 16-bit steps of
the trace's range, which exceeds the resolution of a screen. All traces are compressed together.
"""

from __future__ import annotations

import base64
import gzip
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jostle.figures.data import NO_CONTROLLER, flow_label
from jostle.figures.page_colours import coloured_as
from jostle.results.compared_phase import OVERALL
from jostle.results.measures import Measure, measures
from jostle.results.tables import APPLICATIONS, kinds_of
from jostle.results.value_range import has_range, value_range
from jostle.stats import series_band

if TYPE_CHECKING:
    import polars as pl

    from jostle.backends import Run
    from jostle.results.finished_runs import FinishedRuns
    from jostle.stats.descriptive import Floats

SHOWN = ("goodput", "rtt", "cwnd", "retransmission_ratio", "queue_length")
"""Measures whose panels are visible when a page is opened, from top to bottom."""
_OF_APPLICATIONS: Mapping[str, str] = {
    "datagrams": "one_way_delay", "requests": "response_time"
}  # fmt: skip
"""The first panel of a page with such flows, which has no panel of cwnd then."""

MOST_VALUES = 2_500_000
"""Largest number of values of a page's traces: about 4 MB of text."""

MOST_FLOWS = 24
"""Largest number of flows of a condition that have separate traces."""
CROWD = 6
"""Largest number of flows of one `count` with separate traces; more share mean and range."""

_STEPS = 65_534
_NONE = 65_535


class _Traced(NamedTuple):
    """The subject of a trace: a flow, a link, or a group of flows."""

    name: str
    label: str
    members: tuple[str, ...]
    controller: str = ""
    """Controller, which determines the colour; the name of a flow without one."""


class _Grid(NamedTuple):
    """Layout of a run's series: bins × flows or links with a row in each bin."""

    end_s: Floats
    who: list[str]


@dataclass
class _Packed:
    """Encoded values, one trace after the other."""

    parts: list[np.ndarray[Any, np.dtype[np.uint16]]] = field(default_factory=list)
    length: int = 0

    def add(self, rows: Floats) -> dict[str, Any]:
        """Encode the rows of one trace; return their position and the size of a step."""
        known = rows[~np.isnan(rows)]
        low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 0.0)
        step = (high - low) / _STEPS or 1.0
        steps = np.rint((rows - low) / step)
        written = np.where(np.isnan(rows), _NONE, steps).astype("<u2")
        at = self.length
        self.parts.append(written.ravel())
        self.length += written.size
        return {"at": at, "rows": rows.shape[0], "low": low, "step": step}

    def text(self) -> str:
        """Return all values, compressed, as base64."""
        whole = np.concatenate(self.parts) if self.parts else np.zeros(0, dtype="<u2")
        return base64.b64encode(gzip.compress(whole.tobytes(), 9, mtime=0)).decode()


@dataclass(frozen=True)
class Charts:
    """Data of a page's charts.

    Attributes
    ----------
    data
        Everything except the values, as plain data.
    values
        The values, see `_Packed`.
    notes
        Sentences about lines and bands, and about data that were omitted to limit the size of the
        page.
    """

    data: dict[str, Any]
    values: str
    notes: tuple[str, ...]


def charts(results: FinishedRuns, most_values: int = MOST_VALUES) -> Charts:
    """Pack the series of every condition that has runs.

    If there are more than `most_values`, single runs are omitted first, then measures that are not
    visible initially; then bins are merged.
    """
    shown = [index for index in range(len(results.conditions)) if results.runs_of(index)]
    visible = _visible(results)
    panels = [*visible, *(m for m in measures().values() if m.column and m not in visible)]
    plan = _Plan.within(results, shown, len(panels), len(visible), most_values)
    panels = panels if plan.every_measure else visible
    packed = _Packed()
    conditions = [_condition(results, index, panels, plan, packed) for index in shown]
    keys = list(dict.fromkeys(key for at in shown for key in results.conditions[at]))
    data = {
        "keys": keys,
        "panels": [_panel(m, shown=m in visible) for m in panels],
        "conditions": conditions,
    }
    return Charts(data, packed.text(), (_lines_note(results, shown), *plan.notes))


def _visible(results: FinishedRuns) -> list[Measure]:
    """Return the measures whose panels are visible at first: applications before others.

    A page with applications has no panel of cwnd at first.
    """
    kinds = kinds_of(results)
    first = [name for kind, name in _OF_APPLICATIONS.items() if kind in kinds]
    left_out = {"cwnd"} if set(kinds) & set(APPLICATIONS) else set()
    return [measures()[name] for name in (*first, *SHOWN) if name not in left_out]


def _lines_note(results: FinishedRuns, shown: Sequence[int]) -> str:
    """Say what lines and bands are, and of how many runs."""
    runs = {len(results.runs_of(index)) for index in shown}
    band = (
        "Band of a queue: smallest to largest value. Goodput counts data in order, so it can "
        "exceed the rate of the link for an instant after a loss is repaired."
    )
    if runs == {1}:
        return f"One run of each condition. {band}"
    low, high = min(runs), max(runs)
    of = f"{low} runs" if low == high else f"{low} to {high} runs"
    return f"Lines: mean over {of} of each condition, with its 95 % interval. {band}"


@dataclass
class _Plan:
    """Selection of the series for a page."""

    each_run: bool = True
    every_measure: bool = True
    together: int = 1
    notes: list[str] = field(default_factory=list)

    @classmethod
    def within(
        cls,
        results: FinishedRuns,
        shown: Sequence[int],
        panels: int,
        visible: int,
        most_values: int,
    ) -> _Plan:
        plan = cls()
        sizes = [_size(results, index) for index in shown]
        singly = sum(bins * who * (runs + 3) for bins, who, runs in sizes) * panels
        means = sum(bins * who * 3 for bins, who, _ in sizes)
        if singly > most_values:
            plan.each_run = False
            plan.notes.append("Single runs are left out to keep this page small.")
        if not plan.each_run and means * panels > most_values:
            plan.every_measure = False
            panels = visible
            plan.notes.append("Only the measures that are shown first have charts.")
        if not plan.each_run and means * panels > most_values:
            plan.together = -(-means * panels // most_values)
            plan.notes.append(f"A point summarizes {plan.together} intervals of the series.")
        return plan


def _size(results: FinishedRuns, condition: int) -> tuple[int, int, int]:
    runs = results.runs_of(condition)
    spec = runs[0].run.spec
    bins = -(-spec["duration_ns"] // spec["interval_ns"])
    return bins, min(len(spec["flows"]), MOST_FLOWS) + len(spec["links"]), len(runs)


def _panel(measure: Measure, *, shown: bool) -> dict[str, Any]:
    return {
        "name": measure.name,
        "title": measure.heading,
        "unit": measure.display_unit,
        "scope": measure.scope,
        "shown": shown,
        "definition": measure.definition,
    }


def _condition(
    results: FinishedRuns,
    index: int,
    panels: Sequence[Measure],
    plan: _Plan,
    packed: _Packed,
) -> dict[str, Any]:
    runs = [result.run for result in results.runs_of(index)]
    flows = runs[0].summary["flows"]
    kept, more = _traced_flows(flows)
    frames = {"flow": _Frames.of(runs, "flows"), "link": _Frames.of(runs, "links")}
    links = [link["name"] for link in runs[0].summary["links"]]
    chosen = {"flow": kept, "link": [_Traced(name, name, (name,)) for name in links]}
    traces = {
        shown.name: [
            _trace(frames[shown.scope], who, shown, plan, packed) for who in chosen[shown.scope]
        ]
        for shown in panels
    }
    times = _together(frames["flow"].middle_s()[np.newaxis, :], plan.together)[0]
    return {
        "label": results.labels[index],
        "values": list(results.conditions[index].values()),
        "seeds": [result.seed for result in results.runs_of(index)],
        "bins": len(times),
        "first_s": float(times[0]),
        "step_s": float(times[1] - times[0]) if len(times) > 1 else 0.0,
        "end_s": float(frames["flow"].grid.end_s[-1]),
        **{
            scope: [
                {"name": one.name, "label": one.label, "controller": one.controller}
                for one in traced
            ]
            for scope, traced in chosen.items()
        },
        "more": more,
        "phases": [
            {"name": phase.name, "from": phase.from_s, "to": phase.to_s}
            for phase in results.phases_of(index)
            if phase.name != OVERALL
        ],
        "traces": traces,
    }


def _traced_flows(flows: Sequence[Mapping[str, Any]]) -> tuple[list[_Traced], int]:
    """Choose the flows with traces; return them and the number of flows without.

    A large group has one trace, and so have its members with the lowest and the highest throughput
    of the complete run. Of many single flows, those with the lowest and highest throughput have
    traces.
    """
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for flow in flows:
        groups.setdefault(flow.get("group") or flow["name"], []).append(flow)
    kept: list[_Traced] = []
    single: list[Mapping[str, Any]] = []
    for name, members in groups.items():
        if len(members) <= CROWD:
            single += members
            continue
        names = tuple(flow["name"] for flow in members)
        kept.append(
            _Traced(
                f"{name} ×", f"{name} ×{len(names)}: mean and range", names, coloured_as(members[0])
            )
        )
        ranked = sorted(members, key=_got)
        single += [ranked[0], ranked[-1]]
    shown = _extremes(single, MOST_FLOWS - len(kept))
    ours = [
        _Traced(flow["name"], flow_label(flow), (flow["name"],), coloured_as(flow))
        for flow in shown
    ]
    return [*ours, *kept], len(single) - len(shown)


def _extremes(flows: Sequence[Mapping[str, Any]], most: int) -> list[Mapping[str, Any]]:
    """Return at most that many flows: all, or those with the highest and lowest throughput."""
    if len(flows) <= most:
        return list(flows)
    governed = [flow for flow in flows if flow["controller"] != NO_CONTROLLER]
    ranked = sorted(governed or flows, key=_got)
    half = max(1, most // 2)
    extremes = {flow["name"] for flow in (*ranked[:half], *ranked[-half:])}
    return [flow for flow in flows if flow["name"] in extremes]


def _got(flow: Mapping[str, Any]) -> float:
    return measures()["throughput"].of_entry(flow, OVERALL) or 0.0


class _Frames:
    """Frames of one kind of several similar runs."""

    def __init__(self, frames: Sequence[pl.DataFrame], grid: _Grid) -> None:
        self._frames = frames
        self.grid = grid
        # Runs of a condition may come from several versions.
        self.columns = [
            name for name in frames[0].columns if all(name in other.columns for other in frames)
        ]

    @classmethod
    def of(cls, runs: Iterable[Run], part: str) -> _Frames:
        frames: list[pl.DataFrame] = [getattr(run, part) for run in runs]
        names = frames[0][part.removesuffix("s")].unique(maintain_order=True).to_list()
        end_s = frames[0]["time_s"].unique(maintain_order=True).to_numpy()
        return cls(frames, _Grid(end_s, names))

    def middle_s(self) -> Floats:
        """Return the middles of the bins, at which their points are drawn."""
        end_s = self.grid.end_s
        start_s = np.concatenate(([0.0], end_s[:-1]))
        middle: Floats = (start_s + end_s) / 2
        return middle

    def column(self, name: str, who: str) -> Floats:
        """Return values of shape (runs, bins); NaN if a run has none."""
        at, shape = self.grid.who.index(who), (len(self.grid.end_s), len(self.grid.who))
        rows = [
            frame[name].cast(float).fill_null(np.nan).to_numpy().reshape(shape)[:, at]
            for frame in self._frames
        ]
        return np.array(rows)


def _trace(
    frames: _Frames, who: _Traced, shown: Measure, plan: _Plan, packed: _Packed
) -> dict[str, Any]:
    values = np.concatenate([_values(frames, name, shown, plan) for name in who.members])
    assert shown.column is not None
    if has_range(shown.column, frames.columns):
        ends = value_range(shown.column, lambda name: frames.column(name, who.name))
        low, high = (
            _together(extreme.reduce(end)[np.newaxis, :] * shown.factor, plan.together, extreme)
            for extreme, end in zip((np.fmin, np.fmax), ends, strict=True)
        )
        rows = np.concatenate([series_band(values).mean[np.newaxis, :], low, high])
        if len(values) > 1 and plan.each_run:
            rows = np.concatenate([rows, values])
        return {**packed.add(rows), "range": True}
    if len(who.members) > 1:
        # The range of the group in all runs, which a confidence interval of the mean would hide.
        known = ~np.isnan(values).all(axis=0)
        low, mean, high = (np.full(values.shape[1], np.nan) for _ in range(3))
        low[known] = np.nanmin(values[:, known], axis=0)
        mean[known] = np.nanmean(values[:, known], axis=0)
        high[known] = np.nanmax(values[:, known], axis=0)
        return {**packed.add(np.stack([mean, low, high])), "range": True}
    band = series_band(values, bounds=shown.display_bounds)
    several = len(values) > 1
    rows = np.stack([band.mean, band.low, band.high]) if several else band.mean[np.newaxis, :]
    if several and plan.each_run:
        rows = np.concatenate([rows, values])
    return packed.add(rows)


def _values(frames: _Frames, who: str, shown: Measure, plan: _Plan) -> Floats:
    """Return a measure of one flow or link in the unit of tables; shape (runs, bins)."""
    assert shown.column is not None
    values = frames.column(shown.column, who) * shown.factor
    if shown.column == "cwnd_bytes":
        values = np.where(_open(frames.column("sent_packets", who)) & (values > 0), values, np.nan)
    return _together(values, plan.together)


def _open(sent: Floats) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return the bins between the first and the last in which a flow sends, by run."""
    sends = sent > 0
    begun = np.logical_or.accumulate(sends, axis=1)
    lasts = np.logical_or.accumulate(sends[:, ::-1], axis=1)[:, ::-1]
    whole: np.ndarray[Any, np.dtype[np.bool_]] = begun & lasts
    return whole


def _together(values: Floats, bins: int, extreme: np.ufunc | None = None) -> Floats:
    """Return the means of `bins` bins each, or their extremes, without missing values."""
    if bins == 1:
        return values
    missing = -values.shape[1] % bins
    padded = np.pad(values, ((0, 0), (0, missing)), constant_values=np.nan)
    parts = padded.reshape(len(values), -1, bins)
    if extreme is not None:
        found: Floats = extreme.reduce(parts, axis=2)
        return found
    known = ~np.isnan(parts)
    total = np.where(known, parts, 0.0).sum(axis=2)
    n = known.sum(axis=2)
    mean: Floats = np.divide(total, n, out=np.full(n.shape, np.nan), where=n > 0)
    return mean
