"""Measures of a plan's runs, read once from their summaries and cached as numbers.

Reading ten thousand summaries takes seconds, and a page requests tables often. For each run the
cache contains one number per phase, flow or link, and measure.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from jostle.errors import StoreError
from jostle.figures.data import flow_label
from jostle.results.compared_phase import OVERALL, compared_phase, in_reading_order
from jostle.results.measures import Bounds, Measure, measure, measures
from jostle.results.tables import application_measures
from jostle.stats import estimate

if TYPE_CHECKING:
    from jostle.stats.descriptive import Floats
    from jostle.store.store import Reader
    from jostle.store.stored_plans import StoredPlan

MOST_ENTRIES = 24
"""Largest number of flows of a run that are cached; tables count the others."""
READ_AT_ONCE_S = 0.4
"""Time that one response may spend on reading summaries for the first time."""

WHOLE_RUN = "run"


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
        """Read some of the summaries that are new; return how many have been read in total."""
        until = time.monotonic() + READ_AT_ONCE_S
        with self._lock:
            for _, _, run in self.plan.runs:
                if run in present and run not in self._kept:
                    self._kept[run] = _read(self.reader, run)
                    if time.monotonic() > until:
                        break
            return len(self._kept)

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
