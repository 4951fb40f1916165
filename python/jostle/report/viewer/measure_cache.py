"""Measures of a plan's runs, read once and cached as numbers.

Reading ten thousand runs takes a second, and a page requests tables often. For each run the cache
contains one number per phase, flow or link, and measure. They come from the tables of segments, and
for runs without such a table from summaries.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jostle.errors import StoreError
from jostle.figures.data import flow_label
from jostle.results.compared_phase import OVERALL, compared_phase, in_reading_order
from jostle.results.measures import Bounds, Measure, measure, measures
from jostle.results.tables import application_measures
from jostle.stats import estimate

if TYPE_CHECKING:
    import polars as pl

    from jostle.stats.descriptive import Floats
    from jostle.store.segments.reader import SegmentRun
    from jostle.store.store import Reader
    from jostle.store.stored_plans import StoredPlan

MOST_ENTRIES = 24
"""Largest number of flows of a run that are cached; tables count the others."""
READ_AT_ONCE_S = 0.4
"""Time that one response may spend on reading runs for the first time."""
_LOOKED_UP_AT_ONCE = 500
"""Number of runs that are looked up together: half a segment."""
_HEADS = ("run", "scope", "name", "controller", "phase")

WHOLE_RUN = "run"


@cache
def shown_measures() -> list[Measure]:
    """Return the measures that a table can show."""
    return [m for m in measures().values() if not m.elsewhere]


@dataclass(frozen=True)
class _Owner:
    """The subject of a table row: scope, name and label."""

    scope: str
    name: str
    label: str


@dataclass(frozen=True)
class _CachedRun:
    """Numbers of one run: shape (phases, owners, measures); NaN if there is none."""

    phases: tuple[str, ...]
    """Names of phases, the one that compares flows first."""
    who: tuple[_Owner, ...]
    more: int
    values: Floats

    @property
    def flows(self) -> int:
        """Number of flows."""
        return self.more + sum(who.scope == "flow" for who in self.who)

    def value(self, phase: str, position: int, at: int) -> float | None:
        """Return one of the numbers; None if the run has no such phase or owner."""
        if phase not in self.phases or position >= len(self.who):
            return None
        value = float(self.values[self.phases.index(phase), position, at])
        return None if np.isnan(value) else value


@dataclass
class MeasureCache:
    """Cached measures of one plan's runs.

    Attributes
    ----------
    plan
        The plan.
    reader
        Reader of the store.
    """

    plan: StoredPlan
    reader: Reader
    _kept: dict[str, _CachedRun | None] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def read(self, present: frozenset[str]) -> int:
        """Read some of the runs that are new; return how many have been read in total."""
        until = time.monotonic() + READ_AT_ONCE_S
        with self._lock:
            new = [r for _, _, r in self.plan.runs if r in present and r not in self._kept]
            for begin in range(0, len(new), _LOOKED_UP_AT_ONCE):
                some = [r for r in new[begin : begin + _LOOKED_UP_AT_ONCE] if r not in self._kept]
                in_segments = self.reader.find_in_segments(some)
                for run in some:
                    if run not in self._kept:
                        self._take(run, in_segments.get(run), present)
                    if time.monotonic() > until:
                        return len(self._kept)
            return len(self._kept)

    def _take(self, run: str, stored: SegmentRun | None, present: frozenset[str]) -> None:
        """Read a run; with the table of its segment, other runs of the plan, too."""
        try:
            if stored is not None and stored.has_measures:
                wanted = self._runs & present
                self._kept.update(_cached_runs(stored.measure_table(_keys(), _HEADS), wanted))
        except StoreError:
            pass
        if run not in self._kept:
            self._kept[run] = _read(self.reader, run)

    @cached_property
    def _runs(self) -> frozenset[str]:
        return frozenset(run for _, _, run in self.plan.runs)

    def table(self, phase: str, shown: Measure) -> list[dict[str, Any]]:
        """Return one row per condition: estimates of a measure for all owners, in its unit."""
        at = [m.name for m in shown_measures()].index(shown.name)
        by_condition: dict[int, list[_CachedRun]] = {}
        planned = Counter(condition for condition, _, _ in self.plan.runs)
        for condition, _, run in self.plan.runs:
            kept = self._kept.get(run)
            if kept is not None:
                by_condition.setdefault(condition, []).append(kept)
        return [
            {
                "condition": condition,
                "n": len(every),
                "planned": planned[condition],
                "more": every[0].more,
                "cells": [
                    _cell(
                        who,
                        shown,
                        [kept.value(phase, position, at) for kept in every],
                        shown.bounds_among(every[0].flows),
                    )
                    for position, who in enumerate(every[0].who)
                    if who.scope == shown.scope
                ],
            }
            for condition, every in sorted(by_condition.items())
        ]

    @property
    def phases(self) -> list[str]:
        """Return the phases of the runs that were read: the one that compares flows is first."""
        found = list(dict.fromkeys(p for kept in self._kept.values() if kept for p in kept.phases))
        return in_reading_order(found, found[0]) if found else [OVERALL]

    @property
    def first_measure(self) -> Measure:
        """Return the measure that a table shows first: of applications, or else goodput."""
        names = [one.name for one in shown_measures()]
        for shown in application_measures():
            at = names.index(shown.name)
            if any(
                kept and not np.isnan(kept.values[:, :, at]).all() for kept in self._kept.values()
            ):
                return shown
        return measure("goodput")

    @property
    def unreadable(self) -> int:
        """Number of stored runs that are not readable."""
        return sum(kept is None for kept in self._kept.values())


def _cell(
    who: _Owner, shown: Measure, values: list[float | None], bounds: Bounds
) -> dict[str, Any]:
    found = estimate(values, shown.unit, bounds=bounds)

    def read(value: float | None) -> float | None:
        return None if value is None else value * shown.factor

    return {
        "name": who.name,
        "label": who.label,
        "mean": read(found.value),
        "low": read(found.low),
        "high": read(found.high),
        "n": found.n,
    }


def _read(store: Reader, run: str) -> _CachedRun | None:
    """Read the numbers of a stored run; None if the stored files are damaged."""
    try:
        return _cached_run(store.summary(run))
    except (StoreError, KeyError, TypeError, AttributeError):
        return None


def _keys() -> list[str]:
    return list(dict.fromkeys(one.key for one in shown_measures()))


def _cached_runs(table: pl.DataFrame, wanted: frozenset[str]) -> Iterator[tuple[str, _CachedRun]]:
    """Yield the numbers of some runs of a table."""
    place = {key: at for at, key in enumerate(_keys())}
    columns: dict[str, tuple[list[int], list[int]]] = {}
    for at, one in enumerate(shown_measures()):
        into, of = columns.setdefault(one.scope, ([], []))
        into.append(at)
        of.append(place[one.key])
    numbers = table.select(list(place)).to_numpy()
    rows: dict[str, list[_Row]] = {}
    for at, (run, *head) in enumerate(table.select(_HEADS).iter_rows()):
        if run in wanted:
            rows.setdefault(run, []).append(_Row(at, *head))
    rate = numbers[:, place[measure("throughput").key]]
    return ((run, _of_rows(those, numbers, columns, rate)) for run, those in rows.items())


class _Row(NamedTuple):
    """A row of a segment's table of measures."""

    at: int
    scope: str
    name: str | None
    controller: str | None
    phase: str


def _of_rows(
    rows: Sequence[_Row],
    numbers: Floats,
    columns: Mapping[str, tuple[list[int], list[int]]],
    rate: Floats,
) -> _CachedRun:
    flows: dict[str | None, dict[str, Any]] = {}
    for row in (row for row in rows if row.scope == "flow"):
        flow: dict[str, Any] = {"name": row.name, "controller": row.controller, "phases": {}}
        phases = flows.setdefault(row.name, flow)["phases"]
        phases[row.phase] = {measure("throughput").key: np.nan_to_num(rate[row.at])}
    fairness: dict[str, Any] = {row.phase: {} for row in rows if row.scope == "run"}
    first = compared_phase({"fairness": fairness, "flows": list(flows.values())})
    order = in_reading_order(list(fairness), first)
    links = dict.fromkeys(row.name or "" for row in rows if row.scope == "link")
    who = [
        *(_Owner("flow", f["name"], flow_label(f)) for f in list(flows.values())[:MOST_ENTRIES]),
        *(_Owner("link", link, link) for link in links),
        _Owner("run", WHOLE_RUN, "all flows"),
    ]
    places = {(one.scope, None if one.scope == "run" else one.name): n for n, one in enumerate(who)}
    values = np.full((len(order), len(who), len(shown_measures())), np.nan)
    for row in rows:
        position = places.get((row.scope, row.name))
        if position is not None:
            into, of = columns[row.scope]
            values[order.index(row.phase), position, into] = numbers[row.at, of]
    return _CachedRun(tuple(order), tuple(who), max(0, len(flows) - MOST_ENTRIES), values)


def _cached_run(summary: Mapping[str, Any]) -> _CachedRun:
    flows = summary["flows"][:MOST_ENTRIES]
    entries = [
        *((_Owner("flow", flow["name"], flow_label(flow)), flow) for flow in flows),
        *((_Owner("link", link["name"], link["name"]), link) for link in summary["links"]),
        (_Owner("run", WHOLE_RUN, "all flows"), {}),
    ]
    phases = tuple(in_reading_order(list(summary["fairness"]), compared_phase(summary)))
    every = shown_measures()
    values = np.full((len(phases), len(entries), len(every)), np.nan)
    for row, phase in enumerate(phases):
        for position, (who, entry) in enumerate(entries):
            for at, one in enumerate(every):
                if one.scope != who.scope:
                    continue
                run = one.scope == "run"
                found = one.of_summary(summary, phase) if run else one.of_entry(entry, phase)
                if isinstance(found, int | float):
                    values[row, position, at] = found
    everybody = tuple(who for who, _ in entries)
    return _CachedRun(phases, everybody, len(summary["flows"]) - len(flows), values)
