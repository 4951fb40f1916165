"""Samples of a run as a RunRecord: the engine measures them as it measures its own runs."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle.backends.base import RunRecord, Spec, canonical_json
from jostle.backends.engine_record import run_record
from jostle.backends.kernel import job, pages, programs, qlogs, samples, transfers
from jostle.backends.kernel.arrivals import is_many
from jostle.backends.kernel.measured import seen_of_flow, seen_of_link
from jostle.backends.kernel.measured_connections import seen_of_connections
from jostle.backends.kernel.measured_datagrams import seen_of_datagram_flow
from jostle.backends.kernel.measured_programs import seen_of_program_flow
from jostle.backends.kernel.measured_quic import seen_of_quic_flow
from jostle.backends.sim import Engine
from jostle.backends.tables import Table

if TYPE_CHECKING:
    import polars as pl


def record(
    spec: Spec, folder: Path, backend: str, version: str, wall_s: float, *, engine: Engine
) -> RunRecord:
    """Read what a job left, as a record of its run.

    Two things are known less well than in the simulator. The kernel tells its smoothed RTT and not
    that of each ACK: means, percentiles and deviations are of the smoothed RTT at the samples since
    which ACKs came. And a window or a queue is what it was at the last sample.

    Raises
    ------
    ValueError
        When it is not whole.
    """
    seen = samples.read(folder, len(spec["flows"]), len(spec["links"]))
    flows = [_flow(spec, number, seen, folder) for number in range(len(spec["flows"]))]
    links = [
        seen_of_link(link, seen.queues[:, number]) for number, link in enumerate(spec["links"])
    ]
    made = engine.record_of_samples(canonical_json(spec), seen.time_ns, flows, links)
    recorded = run_record(made, spec, backend, version, wall_s=wall_s)
    known = _without_unknown(recorded.flows, spec)
    recorded = dataclasses.replace(recorded, tables={**recorded.tables, "flows": known})
    return _with_connections(recorded, spec, seen)


def _with_connections(recorded: RunRecord, spec: Spec, seen: samples.Samples) -> RunRecord:
    """Tell what the engine is not told: pages, and transfers of flows that are many connections."""
    summary, tables = dict(recorded.summary), dict(recorded.tables)
    summary["flows"] = pages.told_to_flows(summary["flows"], spec, seen.events)
    columns = transfers.table(spec, seen.events)
    if columns is not None:
        summary["groups"] = transfers.told_to_groups(summary["groups"], spec, columns)
        names = [flow["name"] for flow in spec["flows"]]
        tables["transfers"] = Table(columns, {"flow": names})
    return dataclasses.replace(recorded, summary=summary, tables=tables)


def _without_unknown(flows: pl.DataFrame, spec: Spec) -> pl.DataFrame:
    """Take zeros away where a count is not known: columns of counts have no NaN."""
    import polars as pl

    silent = [
        flow["name"]
        for flow in spec["flows"]
        if programs.is_program(flow) and not programs.shows_itself(flow)
    ]
    again = pl.when(~pl.col("flow").is_in(silent)).then(pl.col("retransmitted_packets"))
    return flows.with_columns(again) if silent else flows


def _flow(spec: Spec, number: int, seen: samples.Samples, folder: Path) -> dict[str, Any]:
    flow, events = spec["flows"][number], seen.events[number]
    if job.is_own_quic(flow):
        return seen_of_quic_flow(flow, number, len(seen.time_ns), events, folder)
    if flow["transport"] == "udp":
        return seen_of_datagram_flow(flow, number, seen.time_ns, events, folder)
    if is_many(flow):
        return seen_of_connections(flow, seen.time_ns, seen.connections(number), events)
    if not programs.is_program(flow):
        return seen_of_flow(flow, *seen.tcp(number), events)
    log = qlogs.read(folder / "qlog" / str(number))
    # A log counts from its connection's first packet, unless it tells the time of day.
    starts_ns = float(events.get("due_ns", 0) + job.way_back_ns(spec, flow))
    if log is not None and log.since_1970:
        starts_ns = -float(seen.start_ns)
    return seen_of_program_flow(
        flow, seen.time_ns, seen.programs(number), events, log=log, log_starts_ns=starts_ns
    )
