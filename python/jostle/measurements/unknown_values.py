"""Removes the values that a log or capture does not contain: they are absent, not 0."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Collection, Mapping
from typing import Final, Literal

from jostle.backends.base import RunRecord

Unknown = Literal["cwnd", "retransmissions"]
"""Values that may be unknown of a flow."""

_OF_PHASES: Final[Mapping[Unknown, tuple[str, ...]]] = {
    "cwnd": ("cwnd_mean_bytes",),
    "retransmissions": ("retransmitted_packets", "retransmission_ratio"),
}
_OF_SERIES: Final[Mapping[Unknown, tuple[str, ...]]] = {
    "cwnd": ("cwnd_bytes", "cwnd_mean_bytes", "in_flight_bytes"),
    "retransmissions": ("retransmitted_packets", "retransmission_ratio"),
}
_TOTAL: Final = "total_retransmitted_packets"


def without_unknown(record: RunRecord, unknown: Mapping[str, Collection[Unknown]]) -> RunRecord:
    """Return a record without values that are unknown.

    Parameters
    ----------
    record
        The record. The engine counts what it does not know as 0.
    unknown
        Flow → what is unknown of it.
    """
    import polars as pl

    unknown = {name: kinds for name, kinds in unknown.items() if kinds}
    if not unknown:
        return record
    summary = copy.deepcopy({**record.summary})
    for flow in summary["flows"]:
        for phase in flow["phases"].values():
            for kind in unknown.get(flow["name"], ()):
                phase.update(dict.fromkeys(_OF_PHASES[kind]))
    if any("retransmissions" in kinds for kinds in unknown.values()):
        for totals in summary["totals"].values():
            totals[_TOTAL] = None
    flows = record.flows
    for name, kinds in unknown.items():
        known = pl.when(pl.col("flow") != name)
        columns = [column for kind in kinds for column in _OF_SERIES[kind]]
        flows = flows.with_columns(known.then(pl.col(column)) for column in columns)
    return dataclasses.replace(record, summary=summary, tables={**record.tables, "flows": flows})
