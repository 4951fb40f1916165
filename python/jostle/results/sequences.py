"""Time–sequence diagrams of captures: those that were measured, and those of runs."""

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
from jostle.figures.sequence_data import (
    Answers,
    Packets,
    Sacks,
    SequenceData,
    SequencesData,
    laid_over,
)

if TYPE_CHECKING:
    from jostle._core import Diagram
    from jostle.results.finished import FinishedRuns

ROWS: Final = 200_000
"""Packets, ACKs and SACKs of a diagram, each: what a figure shows, and 20 MB."""
FLOWS: Final = 20
"""Largest flows of a capture, among which the one is that is drawn."""

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
        Captures; of those that belong together the one near the flow's sender is read.
    flow
        Its name; of each measurement the flow with the most payload if there is none.
    from_s, to_s
        A window on the clock of the measurement.
    flows
        Largest flows of a measurement, among which the flow is.
    rows
        Packets, ACKs and SACKs at most, each.
    told
        Is told how many bytes were read, and says whether to stop.

    Returns
    -------
    list of SequenceData
        Of each measurement that has the flow.

    Raises
    ------
    InputError
        When a file is no capture, no measurement has the flow, or nothing lies in the window.
    """
    from jostle import _core

    if not 0 <= from_s < to_s:
        raise InputError(f"from {from_s:g} s to {to_s:g} s: nothing lies between")
    until_ns = _FOREVER_NS if to_s >= _FOREVER_NS / 1e9 else round(to_s * 1e9)

    try:
        found = _core.sequence_diagrams(
            list(paths), flow=flow or None, from_ns=round(from_s * 1e9), to_ns=until_ns,
            rows=rows, flows=flows, told=told,
        )  # fmt: skip
    except _core.Cancelled as error:
        raise RunCancelledError(str(error)) from error
    except (ValueError, OSError) as error:
        raise InputError(str(error)) from error
    several = len(found) > 1
    labels: Counter[str] = Counter()
    shown = []
    for one in found:
        data = _data(one, Path(paths[one.file]).name if several else "")
        labels[data.label] += 1
        # Files of the same name, in other folders.
        more = f" ({labels[data.label]})" if labels[data.label] > 1 else ""
        shown.append(replace(data, label=data.label + more))
    return shown


def _data(one: Diagram, file: str) -> SequenceData:
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
        Answers(seconds(answers), answers["acknowledged"].astype(np.float64), answers["edge"]),
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
    """Take the time–sequence diagram of flows: of captures, or of the first run of a condition.

    Parameters
    ----------
    results
        Captures that were measured, or runs of a scenario with `capture = true`.
    condition
        Position of the condition; of captures those of all conditions are drawn over each other.
    flows
        Names; of captures the one with the most payload of each if there are none, of runs all
        over TCP.
    from_s, to_s
        A window on the clock of the measurement or the run.

    Raises
    ------
    InputError
        When there is no capture, no such flow, or nothing lies in the window.
    """
    if results.sources:
        found = [one for name in flows or [""] for one in read(results.sources, name, from_s, to_s)]
        return laid_over(tuple(found))
    if not results.of(condition):
        raise InputError(f"nothing to draw: no run of `{results.labels[condition]}` finished")
    run = results.of(condition)[0].run
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
    return laid_over(tuple(found), results.labels[condition])


def thinned(data: SequenceData, rows: int) -> SequenceData:
    """Leave out what is beyond so many packets, ACKs and SACKs, each."""
    parts = (data.packets, data.answers, data.sacks)
    until = min(
        (float(part.time_s[rows]) for part in parts if part.time_s.size > rows), default=math.inf
    )
    if until == math.inf:
        return data

    def cut(part: Packets | Answers | Sacks) -> dict[str, object]:
        kept = part.time_s < until
        return {
            name: values[kept] if isinstance(values, np.ndarray) else values
            for name, values in vars(part).items()
        }

    return SequenceData(
        data.label, data.start_s, data.from_s, until, True,
        Packets(**cut(data.packets)), Answers(**cut(data.answers)),  # type: ignore[arg-type]
        Sacks(**cut(data.sacks)),  # type: ignore[arg-type]
    )  # fmt: skip
