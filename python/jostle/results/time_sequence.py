"""Time-sequence diagrams of captures, imported or made by runs."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from jostle.errors import InputError, RunCancelledError, unknown
from jostle.figures.data import flow_label
from jostle.figures.time_sequence_data import (
    AckPackets,
    Packets,
    Sacks,
    SequenceData,
    SequencesData,
    overlay,
)

if TYPE_CHECKING:
    from jostle._core import TimeSequence
    from jostle.results.finished_runs import FinishedRuns

ROWS: Final = 200_000
"""Largest number of packets, ACKs and SACKs of a diagram, each (20 MB)."""
FLOWS: Final = 20
"""Number of a capture's largest flows, among which the drawn flow must be."""

_FOREVER_NS: Final = 2**63


def read(
    paths: Sequence[str | os.PathLike[str]],
    flow: str = "",
    from_s: float = 0.0,
    to_s: float = math.inf,
    *,
    flows: int = FLOWS,
    rows: int = ROWS,
    told: Callable[[int], bool] | None = None,
) -> list[SequenceData]:
    """Read a TCP flow of captures, packet by packet.

    Parameters
    ----------
    paths
        Captures. Of captures that belong together, the one next to the flow's sender is read.
    flow
        Name of the flow; if empty, the flow with the most payload of each measurement.
    from_s, to_s
        Time window on the clock of the measurement.
    flows
        Number of a measurement's largest flows, among which the flow must be.
    rows
        Largest number of packets, ACKs and SACKs, each.
    told
        Called with the number of bytes read; returns whether to stop.

    Returns
    -------
    list of SequenceData
        One for each measurement that contains the flow.

    Raises
    ------
    InputError
        When a file is not a capture, no measurement contains the flow, or the window is empty.
    """
    from jostle import _core

    if not 0 <= from_s < to_s:
        raise InputError(f"from {from_s:g} s to {to_s:g} s: nothing lies between")
    until_ns = _FOREVER_NS if to_s >= _FOREVER_NS / 1e9 else round(to_s * 1e9)

    try:
        found = _core.sequence_diagrams(
            list(paths), flow=flow or None, from_ns=round(from_s * 1e9), to_ns=until_ns,
            rows=rows, flows=flows, progress_callback=told,
        )  # fmt: skip
    except _core.CancelledError as error:
        raise RunCancelledError(str(error)) from error
    except (ValueError, OSError) as error:
        raise InputError(str(error)) from error
    several = len(found) > 1
    labels: Counter[str] = Counter()
    shown = []
    for one in found:
        data = _data(one, Path(paths[one.file]).name if several else "")
        labels[data.label] += 1
        # Distinguish files with the same name in different folders.
        more = f" ({labels[data.label]})" if labels[data.label] > 1 else ""
        shown.append(replace(data, label=data.label + more))
    return shown


def _data(one: TimeSequence, file: str) -> SequenceData:
    controller = "" if one.controller == "unknown" else f" ({one.controller})"
    label = f"{file}: {one.flow}{controller}" if file else f"{one.flow}{controller}"
    packets, answers, sacks = one.packets, one.answers, one.sacks

    def seconds(table: dict[str, np.ndarray]) -> np.ndarray:
        return table["time_ns"].astype(np.float64) / 1e9

    return SequenceData(
        label, one.start_ns / 1e9, one.from_ns / 1e9, one.to_ns / 1e9, one.is_cut,
        Packets(
            seconds(packets), packets["start"].astype(np.float64),
            packets["end"].astype(np.float64), packets["kind"], tuple(one.kinds),
        ),
        AckPackets(seconds(answers), answers["acknowledged"].astype(np.float64), answers["edge"]),
        Sacks(
            seconds(sacks), sacks["start"].astype(np.float64), sacks["end"].astype(np.float64),
            sacks["is_duplicate"],
        ),
    )  # fmt: skip


def sequences_data(
    results: FinishedRuns,
    condition: int,
    flows: Sequence[str] = (),
    from_s: float = 0.0,
    to_s: float = math.inf,
) -> SequencesData:
    """Return the time-sequence diagram of flows of captures, or of a condition's first run.

    Parameters
    ----------
    results
        Captures that were measured, or runs of a scenario with `capture = true`.
    condition
        Position of the condition; for captures, the flows of all conditions are overlaid.
    flows
        Names of flows. If empty: for captures, the flow with the most payload of each; for
        runs, all TCP flows.
    from_s, to_s
        Time window on the clock of the measurement or the run.

    Raises
    ------
    InputError
        When there is no capture, no such flow, or no packet in the window.
    """
    if results.sources:
        found = [one for name in flows or [""] for one in read(results.sources, name, from_s, to_s)]
        return overlay(tuple(found), one_clock=len(results.results) == 1)
    if not results.runs_of(condition):
        raise results.unfinished_error("nothing to draw: ", condition)
    run = results.runs_of(condition)[0].run
    known = {
        flow["name"]: flow_label(flow)
        for flow in run.summary["flows"]
        if flow.get("transport", "tcp") == "tcp" and f"{flow['name']}.sender" in run.captures
    }
    if not known:
        raise InputError(
            "no packets of a TCP flow were captured: a time-sequence diagram needs `capture = true`"
            " in the scenario"
        )
    for name in flows:
        if name not in known:
            raise InputError(unknown("flow", name, list(known)))
    found = [
        one
        for name in flows or known
        for one in read([run.captures[f"{name}.sender"]], name, from_s, to_s)
    ]
    return overlay(tuple(found), results.labels[condition])


def downsample(data: SequenceData, rows: int) -> SequenceData:
    """Truncate a diagram to `rows` packets, ACKs and SACKs, each."""
    parts = (data.packets, data.answers, data.sacks)
    until = min(
        (float(part.time_s[rows]) for part in parts if part.time_s.size > rows), default=math.inf
    )
    if until == math.inf:
        return data

    def cut(part: Packets | AckPackets | Sacks) -> dict[str, object]:
        kept = part.time_s < until
        return {
            name: values[kept] if isinstance(values, np.ndarray) else values
            for name, values in vars(part).items()
        }

    return SequenceData(
        data.label, data.start_s, data.from_s, until, True,
        Packets(**cut(data.packets)), AckPackets(**cut(data.answers)),  # type: ignore[arg-type]
        Sacks(**cut(data.sacks)),  # type: ignore[arg-type]
    )  # fmt: skip
