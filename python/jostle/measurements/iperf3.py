"""Samples from the output of `iperf3 --json`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from jostle.measurements.log_samples import (
    FULL_BYTES,
    HEADER_BYTES,
    NS,
    Log,
    check,
    check_size,
    empty_samples,
    flow_samples,
    flow_spec,
    spec,
)
from jostle.measurements.unknown_values import Unknown


def of_iperf3(document: Mapping[str, Any]) -> Log:
    """Convert the TCP intervals of `iperf3 --json` to samples.

    `bytes` is the payload that the sending application wrote (or the receiving one read).
    `snd_cwnd`, `rtt` (smoothed, in microseconds) and `retransmits` are from the sender's TCP_INFO
    at an interval's end. Intervals at the beginning that `-O` omits are left out, as iperf3 leaves
    them out of its totals; its clock starts anew after them.
    """
    start = document["start"]
    if start["test_start"]["protocol"] != "TCP":
        raise ValueError("a test of TCP alone can be measured")
    mss = int(start.get("tcp_mss_default") or start.get("tcp_mss") or FULL_BYTES)
    sockets = [connected["socket"] for connected in start["connected"]]
    omitted, intervals = _split(document["intervals"])
    check_size(len(intervals), len(sockets))
    # A report within an omitted interval starts late.
    from_s = min(float(s["start"]) for s in intervals[0]["streams"]) if omitted else 0.0
    ends_s = [max(float(s["end"]) for s in one["streams"]) for one in intervals]
    times = [0, *(round((end_s - from_s) * NS) for end_s in ends_s)]
    check(times)
    by_socket = [{stream["socket"]: stream for stream in one["streams"]} for one in intervals]
    flows, specs = [], []
    for number, socket in enumerate(sockets):
        own = [streams[socket] for streams in by_socket]
        flows.append(_iperf3_flow(own, mss))
        name = "iperf3" if len(sockets) == 1 else f"iperf3-{number + 1}"
        specs.append(flow_spec(name, "tcp", {"kind": "bulk"}, mss))
        # With --bidir, streams in opposite directions do not compete.
        specs[-1]["sender_host" if own[0].get("sender", True) else "receiver_host"] = "host"
    controller = document.get("end", {}).get("sender_tcp_congestion")
    for one in specs:
        one["controller"]["name"] = str(controller or "unknown")
    notes = [f"{len(omitted)} omitted intervals (-O) at the start are left out"] if omitted else []
    unknown = {
        one["name"]: _unknown([streams[socket] for streams in by_socket])
        for one, socket in zip(specs, sockets, strict=True)
    }
    return Log(spec(times, specs), times, flows, tuple(notes), unknown)


def _unknown(streams: Sequence[Mapping[str, Any]]) -> list[Unknown]:
    """Return what a receiver, or a system other than Linux, does not report."""
    reported: dict[str, Unknown] = {"snd_cwnd": "cwnd", "retransmits": "retransmissions"}
    return [
        unknown for key, unknown in reported.items() if not any(key in stream for stream in streams)
    ]


def _split(
    intervals: Sequence[Mapping[str, Any]],
) -> tuple[Sequence[Mapping[str, Any]], Sequence[Mapping[str, Any]]]:
    """Split intervals into those that `-O` omits and the measured ones after them."""
    if not intervals:
        raise ValueError("it has no intervals")
    marks = [any(stream.get("omitted") for stream in one["streams"]) for one in intervals]
    if all(marks):
        raise ValueError("all its intervals are omitted (-O)")
    first = marks.index(False)
    if any(marks[first:]):
        raise ValueError("an omitted interval (-O) follows a measured one")
    return intervals[:first], intervals[first:]


def _iperf3_flow(streams: Sequence[Mapping[str, Any]], mss: int) -> dict[str, Any]:
    sent, again = [0.0], [0.0]
    for stream in streams:
        sent.append(sent[-1] + float(stream["bytes"]))
        again.append(again[-1] + float(stream.get("retransmits") or 0))
    knows_itself = any("snd_cwnd" in stream for stream in streams)
    packets = [math.ceil(payload / mss) + more for payload, more in zip(sent, again, strict=True)]
    wire = [
        payload + count * HEADER_BYTES + more * mss
        for payload, count, more in zip(sent, packets, again, strict=True)
    ]
    state = empty_samples(len(sent))
    for at, stream in enumerate(streams, start=1):
        if knows_itself:
            rtt_s = float(stream["rtt"]) / 1e6 if stream.get("rtt") else math.nan
            state["rtt_s"][at] = state["srtt_s"][at] = rtt_s
            state["cwnd_bytes"][at] = float(stream["snd_cwnd"])
    counters = {
        "sent_bytes": wire,
        "received_bytes": [payload + math.ceil(payload / mss) * HEADER_BYTES for payload in sent],
        "delivered_bytes": sent,
        "sent_packets": packets,
        "retransmitted_packets": again,
    }
    return flow_samples(counters, state, len(sent))
