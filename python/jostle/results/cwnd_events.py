"""Congestion window of flows over time, with losses, recoveries and modes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from jostle.errors import InputError, unknown
from jostle.figures.data import Bools, EventsData, FlowEvents, ModeSpan, flow_label
from jostle.results.measures import measure

if TYPE_CHECKING:
    import polars as pl

    from jostle.results.finished_runs import FinishedRuns
    from jostle.stats.descriptive import Floats

MOST_FLOWS = 8
"""Largest number of flows of a figure, unless the user names the flows."""

_BBR_MODES: Final = frozenset(("startup", "probe_bw", "probe_rtt", "probe_bw_cruise"))
"""Modes of controllers that do not use ssthresh, but set it for tools such as `ss`, as Linux."""


def events_data(results: FinishedRuns, condition: int, flows: Sequence[str] = ()) -> EventsData:
    """Return cwnd, ssthresh, losses, recoveries and modes of each flow in the first run.

    Losses are placed at ACKs if the run recorded its ACKs, else at the ends of sampling intervals.

    Raises
    ------
    InputError
        When no run finished, or there is no such flow.
    """
    runs = results.runs_of(condition)
    if not runs:
        raise results.unfinished_error("nothing to draw: ", condition)
    run = runs[0].run
    labels = {
        flow["name"]: flow_label(flow)
        for flow in run.summary["flows"]
        if flow.get("transport", "tcp") == "tcp"
    }
    members = {group.name: group.members for group in results.flow_groups(condition)}
    for name in flows:
        if name not in labels and name not in members:
            raise InputError(unknown("flow", name, [*members, *labels]))
    wanted = [one for name in flows for one in members.get(name, (name,))] or list(labels)
    shown = wanted if flows else wanted[:MOST_FLOWS]
    frame = run.flows
    acks = run.acks
    caption = f"One run (seed {runs[0].seed})."
    if len(shown) < len(wanted):
        caption += f" The first {len(shown)} of {len(wanted)} flows: --flow names others."
    if acks is None:
        caption += " Losses by interval, at the retransmissions."
    return EventsData(
        results.labels[condition],
        tuple(_of_flow(frame, acks, name, labels[name]) for name in shown),
        caption,
    )


def _of_flow(frame: pl.DataFrame, acks: pl.DataFrame | None, name: str, label: str) -> FlowEvents:
    import polars as pl

    rows = frame.filter(pl.col("flow") == name).sort("time_s")
    factor = measure("cwnd").factor
    time_s = rows["time_s"].to_numpy().astype(np.float64)
    window = _column(rows, "cwnd_bytes") * factor
    alive = window > 0
    if "lived_s" in rows.columns:
        alive &= _column(rows, "lived_s") > 0
    window = np.where(alive, window, np.nan)
    again = np.nan_to_num(_column(rows, "retransmitted_packets")) > 0
    lost_s = time_s[again]
    if acks is not None:
        own = acks.filter((pl.col("flow") == name) & (pl.col("lost_packets") > 0))
        lost_s = own["time_s"].to_numpy().astype(np.float64)
    modes = rows["mode"].to_list() if "mode" in rows.columns else []
    uses_threshold = alive & _BBR_MODES.isdisjoint(modes)
    threshold = np.where(uses_threshold, _column(rows, "ssthresh_bytes") * factor, np.nan)
    return FlowEvents(
        label, time_s, window, threshold, lost_s, np.interp(lost_s, time_s, np.nan_to_num(window)),
        tuple(_spans(time_s, modes, alive)),
    )  # fmt: skip


def _column(rows: pl.DataFrame, name: str) -> Floats:
    import polars as pl

    if name not in rows.columns:
        return np.full(rows.height, np.nan)
    values: Floats = rows[name].cast(pl.Float64).fill_null(np.nan).to_numpy().copy()
    return values


def _spans(time_s: Floats, modes: Sequence[str | None], alive: Bools) -> list[ModeSpan]:
    """Return the periods of equal mode; a sampling interval has the mode of its end."""
    found: list[ModeSpan] = []
    begun = 0.0
    for end_s, mode, lives in zip(time_s, modes, alive, strict=False):
        if mode is not None and lives:
            if found and found[-1].mode == mode and found[-1].to_s == begun:
                found[-1] = ModeSpan(mode, found[-1].from_s, float(end_s))
            else:
                found.append(ModeSpan(mode, begun, float(end_s)))
        begun = float(end_s)
    return found
