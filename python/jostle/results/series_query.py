"""The series of a run as the engine takes it, to compute measures over any window from it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from jostle.backends import canonical_json
from jostle.results.measures import Measure

if TYPE_CHECKING:
    import polars as pl

    from jostle._core import Series
    from jostle.backends import Run

COUNTS = (
    "rtt_samples",
    "segment_rtt_samples",
    "sent_packets",
    "retransmitted_packets",
    "received_packets",
    "responses",
)
"""Columns of flows and links that count packets."""


def series_of(run: Run) -> Series:
    """Give the engine the series of a finished run."""
    from jostle import _core

    facts = [
        {key: flow.get(key) for key in ("start_s", "completion_time_s", "pings")}
        for flow in run.summary["flows"]
    ]
    flows, links = columns(run.flows, COUNTS), columns(run.links, COUNTS)
    return _core.Series(canonical_json(run.spec), facts, flows, links)


def position_of(run: Run, measure: Measure, who: str) -> int:
    """Find where a run has the one that a measure is asked of; 0 for the run itself."""
    if measure.scope == "run":
        return 0
    return [one["name"] for one in run.summary[f"{measure.scope}s"]].index(who)


def columns(frame: pl.DataFrame, counts: Sequence[str]) -> dict[str, np.ndarray]:
    """Numbers of a frame as the engine has them: counts of packets whole, others NaN for null."""
    import polars as pl
    import polars.selectors as cs

    whole = (*counts, *(name for name in frame.columns if name.startswith(("dropped_", "marked_"))))
    numbers = frame.select(cs.numeric())
    return {
        name: (
            numbers[name].cast(pl.UInt32).fill_null(0).to_numpy()
            if name in whole
            else numbers[name].cast(pl.Float64).fill_null(float("nan")).to_numpy()
        )
        for name in numbers.columns
    }
