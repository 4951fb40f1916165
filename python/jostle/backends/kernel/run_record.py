"""Converts the samples of a run to a RunRecord. The engine computes the measures."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle.backends import lateness
from jostle.backends.base import RunRecord, Spec, canonical_json
from jostle.backends.engine_record import run_record
from jostle.backends.kernel import (
    guest_samples,
    job,
    qlog_reader,
    quic_programs,
    tc_classes,
)
from jostle.backends.kernel.arrivals import is_many
from jostle.backends.kernel.engine_samples import flow_samples, link_samples
from jostle.backends.kernel.engine_samples_connections import connection_samples
from jostle.backends.kernel.engine_samples_datagrams import datagram_samples
from jostle.backends.kernel.engine_samples_programs import program_samples
from jostle.backends.kernel.engine_samples_quic import quic_samples
from jostle.backends.sim import Engine

if TYPE_CHECKING:
    import polars as pl


def record(
    spec: Spec,
    folder: Path,
    backend: str,
    version: str,
    wall_s: float,
    *,
    engine: Engine,
    moments_ns: Sequence[int] | None = None,
) -> RunRecord:
    """Return the record of a job's results.

    `moments_ns` contains the times at which the samples of a run in real time were due.

    Two measures are less accurate than in the simulator. The kernel reports the smoothed RTT, not
    the RTT of each ACK: means, percentiles and deviations use the smoothed RTT at samples
    after new ACKs. cwnd and queue length are known only at the samples.

    Raises
    ------
    ValueError
        If the results are incomplete.
    """
    classes = tc_classes.class_queues(spec)
    seen = guest_samples.read(folder, len(spec["flows"]), len(spec["links"]) + len(classes))
    flows = [_flow(spec, number, seen, folder) for number in range(len(spec["flows"]))]
    links = []
    for number, link in enumerate(spec["links"]):
        of_classes = [
            (queue["kind"], seen.queues[:, position])
            for position, (at, _, queue) in enumerate(classes, len(spec["links"]))
            if at == number
        ]
        links.append(link_samples(link, seen.queues[:, number], of_classes))
    made = engine.record_of_samples(canonical_json(spec), seen.time_ns, flows, links)
    recorded = run_record(made, spec, backend, version, wall_s=wall_s)
    known = _without_unknown(recorded.flows, spec)
    recorded = dataclasses.replace(recorded, tables={**recorded.tables, "flows": known})
    if moments_ns is None:
        return recorded
    late = lateness.lateness(seen.time_ns, moments_ns)
    return dataclasses.replace(recorded, summary={**recorded.summary, lateness.KEY: late})


def _without_unknown(flows: pl.DataFrame, spec: Spec) -> pl.DataFrame:
    """Replace zeros by null where a count is unknown, because count columns cannot contain NaN."""
    import polars as pl

    silent = [
        flow["name"]
        for flow in spec["flows"]
        if quic_programs.is_program(flow) and not quic_programs.shows_itself(flow)
    ]
    retransmitted = pl.when(~pl.col("flow").is_in(silent)).then(pl.col("retransmitted_packets"))
    return flows.with_columns(retransmitted) if silent else flows


def _flow(spec: Spec, number: int, seen: guest_samples.Samples, folder: Path) -> dict[str, Any]:
    flow, events = spec["flows"][number], seen.events[number]
    if job.is_own_quic(flow):
        return quic_samples(flow, number, len(seen.time_ns), events, folder)
    if flow["transport"] == "udp":
        return datagram_samples(flow, number, seen.time_ns, events, folder)
    if is_many(flow):
        return connection_samples(flow, seen.time_ns, seen.connections(number), events)
    if not quic_programs.is_program(flow):
        return flow_samples(flow, seen.time_ns, *seen.tcp(number), events=events)
    log = qlog_reader.read(folder / "qlog" / str(number))
    # Times of a log count from the connection's first packet, unless they are calendar times.
    starts_ns = float(events.get("due_ns", 0) + job.reverse_propagation_ns(spec, flow))
    if log is not None and log.since_1970:
        starts_ns = -float(seen.start_ns)
    return program_samples(
        flow, seen.time_ns, seen.programs(number), events, log=log, log_starts_ns=starts_ns
    )
