"""The measures of a plan's runs, read once from their summaries and kept as numbers.

Ten thousand summaries take seconds to read, and a page asks for a table many times: what is kept of
a run is one number per phase, flow or link, and measure.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from jostle.errors import StoreError
from jostle.figures.data import flow_label
from jostle.results.finished import OVERALL
from jostle.results.measures import Bounds, Measure, measures
from jostle.stats import estimate

if TYPE_CHECKING:
    from jostle.running.plans import StoredPlan
    from jostle.running.store import Reader
    from jostle.stats.describe import Floats

MOST_ENTRIES = 24
"""Flows of a run whose numbers are kept; tables count the others."""
READ_AT_ONCE_S = 0.4
"""How long one answer may be spent on reading summaries that were not read before."""

WHOLE_RUN = "run"


def shown_measures() -> list[Measure]:
    """Measures that a table can show."""
    return [m for m in measures().values() if not m.elsewhere]


@dataclass(frozen=True)
class _Who:
    """Whose numbers stand in a row: scope, name, and how it is called."""

    scope: str
    name: str
    label: str


@dataclass(frozen=True)
class _Kept:
    """Numbers of one run: shape (phases, who, measures); NaN where there is none."""

    phases: tuple[str, ...]
    who: tuple[_Who, ...]
    more: int
    values: Floats

    @property
    def flows(self) -> int:
        """How many flows there are."""
        return self.more + sum(who.scope == "flow" for who in self.who)

    def value(self, phase: str, position: int, at: int) -> float | None:
        """One of the numbers; none where the run has no such phase or nobody at that place."""
        if phase not in self.phases or position >= len(self.who):
            return None
        value = float(self.values[self.phases.index(phase), position, at])
        return None if np.isnan(value) else value


@dataclass
class Numbers:
    """What is known of one plan's runs.

    Attributes
    ----------
    plan
        The plan.
    reader
        Of the store.
    """

    plan: StoredPlan
    reader: Reader
    _kept: dict[str, _Kept | None] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def read(self, present: frozenset[str]) -> int:
        """Read some of the summaries that are there and were not; returns how many are read."""
        until = time.monotonic() + READ_AT_ONCE_S
        with self._lock:
            for _, _, run in self.plan.runs:
                if run in present and run not in self._kept:
                    self._kept[run] = _read(self.reader, run)
                    if time.monotonic() > until:
                        break
            return len(self._kept)

    def table(self, phase: str, shown: Measure) -> list[dict[str, Any]]:
        """One row per condition: estimates of a measure for everybody who has it, in its unit."""
        at = [m.name for m in shown_measures()].index(shown.name)
        by_condition: dict[int, list[_Kept]] = {}
        for condition, _, run in self.plan.runs:
            kept = self._kept.get(run)
            if kept is not None:
                by_condition.setdefault(condition, []).append(kept)
        return [
            {
                "condition": condition,
                "n": len(every),
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
        """Phases of the runs that were read, `overall` first."""
        found = dict.fromkeys(p for kept in self._kept.values() if kept for p in kept.phases)
        return sorted(found, key=lambda phase: phase != OVERALL)

    @property
    def unreadable(self) -> int:
        """Runs that are there and are no results."""
        return sum(kept is None for kept in self._kept.values())


def _cell(who: _Who, shown: Measure, values: list[float | None], bounds: Bounds) -> dict[str, Any]:
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


def _read(store: Reader, run: str) -> _Kept | None:
    """Numbers of a stored run; none if what is there is not that run."""
    try:
        return _kept(store.summary(run))
    except (StoreError, KeyError, TypeError, AttributeError):
        return None


def _kept(summary: Mapping[str, Any]) -> _Kept:
    flows = summary["flows"][:MOST_ENTRIES]
    entries = [
        *((_Who("flow", flow["name"], flow_label(flow)), flow) for flow in flows),
        *((_Who("link", link["name"], link["name"]), link) for link in summary["links"]),
        (_Who("run", WHOLE_RUN, "all flows"), {}),
    ]
    phases = tuple(summary["fairness"])
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
    return _Kept(phases, everybody, len(summary["flows"]) - len(flows), values)
