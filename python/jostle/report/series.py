"""Series of runs, packed for the charts of a page.

What a chart shows of a condition are *traces*: a measure of one flow or link over time, as its mean
over runs with the interval of the mean, and every run by itself as long as there is room. Values
are written as 16-bit steps of the range that a trace has, which is finer than any screen shows; the
whole is compressed once.
"""

from __future__ import annotations

import base64
import gzip
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jostle.figures.data import NO_CONTROLLER, flow_label
from jostle.results.finished import OVERALL
from jostle.results.measures import Measure, measures
from jostle.stats import series_band

if TYPE_CHECKING:
    import polars as pl

    from jostle.backends import Run
    from jostle.results.finished import FinishedRuns
    from jostle.stats.describe import Floats

SHOWN = ("throughput", "rtt", "cwnd", "retransmission_ratio", "queue")
"""Measures whose panels are there when a page is opened."""

MOST_VALUES = 2_500_000
"""Of all traces of a page: some 4 MB of text."""

MOST_FLOWS = 24
"""Flows of a condition that have traces of their own."""
CROWD = 6
"""Flows of one `count` beyond which they share a trace: their mean, and their range as its band."""

_STEPS = 65_534
_NONE = 65_535


class _Traced(NamedTuple):
    """What has a trace: a flow or a link, or the flows of a crowd."""

    name: str
    label: str
    members: tuple[str, ...]


class _Grid(NamedTuple):
    """How times and rows of a run's series lie: bins × those who have a row in each."""

    end_s: Floats
    who: list[str]


@dataclass
class _Packed:
    """Values as they are written, one trace after the other."""

    parts: list[np.ndarray[Any, np.dtype[np.uint16]]] = field(default_factory=list)
    length: int = 0

    def add(self, rows: Floats) -> dict[str, Any]:
        """Write rows of one trace; returns where they are and what a step is."""
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
        """All of it, compressed, as base64."""
        whole = np.concatenate(self.parts) if self.parts else np.zeros(0, dtype="<u2")
        return base64.b64encode(gzip.compress(whole.tobytes(), 9, mtime=0)).decode()


@dataclass(frozen=True)
class Charts:
    """What the charts of a page are drawn from.

    Attributes
    ----------
    data
        Everything but the values, as plain data.
    values
        The values, see `_Packed`.
    notes
        What was left out to keep the page small, in sentences.
    """

    data: dict[str, Any]
    values: str
    notes: tuple[str, ...]


def charts(results: FinishedRuns, most_values: int = MOST_VALUES) -> Charts:
    """Pack the series of every condition that has runs.

    Where there are more than `most_values`, runs by themselves are left out first, then measures
    that are not shown at once, then bins are put together.
    """
    shown = [index for index in range(len(results.conditions)) if results.of(index)]
    panels = [m for m in measures().values() if m.column is not None]
    plan = _Plan.within(results, shown, len(panels), most_values)
    panels = panels if plan.every_measure else [m for m in panels if m.name in SHOWN]
    packed = _Packed()
    conditions = [_condition(results, index, panels, plan, packed) for index in shown]
    keys = list(dict.fromkeys(key for at in shown for key in results.conditions[at]))
    data = {
        "keys": keys,
        "panels": [_panel(m) for m in panels],
        "conditions": conditions,
    }
    return Charts(data, packed.text(), tuple(plan.notes))


@dataclass
class _Plan:
    """How much of the series a page has."""

    each_run: bool = True
    every_measure: bool = True
    together: int = 1
    notes: list[str] = field(default_factory=list)

    @classmethod
    def within(
        cls, results: FinishedRuns, shown: Sequence[int], panels: int, most_values: int
    ) -> _Plan:
        plan = cls()
        sizes = [_size(results, index) for index in shown]
        singly = sum(bins * who * (runs + 3) for bins, who, runs in sizes) * panels
        means = sum(bins * who * 3 for bins, who, _ in sizes)
        if singly > most_values:
            plan.each_run = False
            plan.notes.append("Runs by themselves are left out here to keep this page small.")
        if not plan.each_run and means * panels > most_values:
            plan.every_measure = False
            panels = len(SHOWN)
            plan.notes.append("Only the most asked-for measures have charts here.")
        if not plan.each_run and means * panels > most_values:
            plan.together = -(-means * panels // most_values)
            plan.notes.append(f"A point stands for {plan.together} intervals of the series.")
        return plan


def _size(results: FinishedRuns, condition: int) -> tuple[int, int, int]:
    runs = results.of(condition)
    spec = runs[0].run.spec
    bins = -(-spec["duration_ns"] // spec["interval_ns"])
    return bins, min(len(spec["flows"]), MOST_FLOWS) + len(spec["links"]), len(runs)


def _panel(shown: Measure) -> dict[str, Any]:
    return {
        "name": shown.name,
        "title": shown.heading,
        "unit": shown.reads,
        "scope": shown.scope,
        "shown": shown.name in SHOWN,
        "definition": shown.definition,
    }


def _condition(
    results: FinishedRuns,
    index: int,
    panels: Sequence[Measure],
    plan: _Plan,
    packed: _Packed,
) -> dict[str, Any]:
    runs = [result.run for result in results.of(index)]
    flows = runs[0].summary["flows"]
    kept, more = _kept_flows(flows)
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
        "seeds": [result.seed for result in results.of(index)],
        "bins": len(times),
        "first_s": float(times[0]),
        "step_s": float(times[1] - times[0]) if len(times) > 1 else 0.0,
        "end_s": float(frames["flow"].grid.end_s[-1]),
        **{
            scope: [{"name": one.name, "label": one.label} for one in traced]
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


def _kept_flows(flows: Sequence[Mapping[str, Any]]) -> tuple[list[_Traced], int]:
    """Choose what has traces, and count the flows that have none.

    A crowd has one, beside those of its members that got least and most of the whole run; of
    other flows, if they are many, those have one that got least and most.
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
        kept.append(_Traced(f"{name} ×", f"{name} ×{len(names)}: mean and range", names))
        ranked = sorted(members, key=_got)
        single += [ranked[0], ranked[-1]]
    shown = _extremes(single, MOST_FLOWS - len(kept))
    ours = [_Traced(flow["name"], flow_label(flow), (flow["name"],)) for flow in shown]
    return [*ours, *kept], len(single) - len(shown)


def _extremes(flows: Sequence[Mapping[str, Any]], most: int) -> list[Mapping[str, Any]]:
    """Keep so many flows: all, or those that got most and least of the whole run."""
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
    """One kind of frame of several runs alike."""

    def __init__(self, frames: Sequence[pl.DataFrame], grid: _Grid) -> None:
        self._frames = frames
        self.grid = grid

    @classmethod
    def of(cls, runs: Iterable[Run], part: str) -> _Frames:
        frames: list[pl.DataFrame] = [getattr(run, part) for run in runs]
        names = frames[0][part.removesuffix("s")].unique(maintain_order=True).to_list()
        end_s = frames[0]["time_s"].unique(maintain_order=True).to_numpy()
        return cls(frames, _Grid(end_s, names))

    def middle_s(self) -> Floats:
        """Middles of the bins: a point stands for the whole of one."""
        end_s = self.grid.end_s
        start_s = np.concatenate(([0.0], end_s[:-1]))
        middle: Floats = (start_s + end_s) / 2
        return middle

    def column(self, name: str, who: str) -> Floats:
        """Shape (runs, bins); NaN where a run has no value."""
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
    if len(who.members) > 1:
        # The range of the crowd in any run: what an interval of its mean would hide.
        known = ~np.isnan(values).all(axis=0)
        low, mean, high = (np.full(values.shape[1], np.nan) for _ in range(3))
        low[known] = np.nanmin(values[:, known], axis=0)
        mean[known] = np.nanmean(values[:, known], axis=0)
        high[known] = np.nanmax(values[:, known], axis=0)
        return packed.add(np.stack([mean, low, high]))
    band = series_band(values)
    several = len(values) > 1
    rows = np.stack([band.mean, band.low, band.high]) if several else band.mean[np.newaxis, :]
    if several and plan.each_run:
        rows = np.concatenate([rows, values])
    return packed.add(rows)


def _values(frames: _Frames, who: str, shown: Measure, plan: _Plan) -> Floats:
    """Shape (runs, bins): a measure of one flow or link in the unit that is read."""
    assert shown.column is not None
    values = frames.column(shown.column, who) * shown.factor
    if shown.column == "cwnd_bytes":
        values = np.where(_open(frames.column("sent_packets", who)) & (values > 0), values, np.nan)
    return _together(values, plan.together)


def _open(sent: Floats) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Bins between the first and the last in which a flow sends, by run."""
    sends = sent > 0
    begun = np.logical_or.accumulate(sends, axis=1)
    lasts = np.logical_or.accumulate(sends[:, ::-1], axis=1)[:, ::-1]
    whole: np.ndarray[Any, np.dtype[np.bool_]] = begun & lasts
    return whole


def _together(values: Floats, bins: int) -> Floats:
    """Means of so many bins each, of those that have a value."""
    if bins == 1:
        return values
    missing = -values.shape[1] % bins
    padded = np.pad(values, ((0, 0), (0, missing)), constant_values=np.nan)
    parts = padded.reshape(len(values), -1, bins)
    known = ~np.isnan(parts)
    total = np.where(known, parts, 0.0).sum(axis=2)
    n = known.sum(axis=2)
    mean: Floats = np.divide(total, n, out=np.full(n.shape, np.nan), where=n > 0)
    return mean
