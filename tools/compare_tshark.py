"""Compares `jostle analyze` with tshark over captures, flow by flow.

    python tools/compare_tshark.py FILE…

Prints how many TCP flows with at least 20 packets have equal packets, retransmissions and RTT, how
many are within 2 %, and what explains the other flows. Only captures near the sender have
an RTT of segments; for the others, jostle gives the RTT of the complete path and tshark the one
between capture point and receiver.
"""

from __future__ import annotations

import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import jostle
import numpy as np
from jostle.errors import JostleError

FEWEST_PACKETS = 20
TOLERANCE = 0.02
# Timestamps of captures are in microseconds.
EQUAL = 1e-6
LARGEST_FRAME = 1_514
FIELDS = (
    "frame.number", "frame.len", "tcp.stream", "ip.src", "ipv6.src", "tcp.srcport", "ip.dst",
    "ipv6.dst", "tcp.dstport", "tcp.len", "tcp.flags.syn", "tcp.analysis.retransmission",
    "tcp.analysis.out_of_order", "tcp.analysis.lost_segment", "tcp.analysis.keep_alive",
    "tcp.analysis.acks_frame", "tcp.analysis.ack_rtt", "tcp.analysis.ack_lost_segment", "tcp.ack",
)  # fmt: skip


@dataclass
class Direction:
    """Data packets of one direction of a connection, as tshark counts them."""

    packets: int = 0
    retransmitted: int = 0
    out_of_order: int = 0
    lost: int = 0
    keep_alives: int = 0
    large: int = 0
    acked: int = 0
    acked_early: int = 0
    acked_in_part: int = 0
    rtts_s: list[float] = field(default_factory=list)


def of_tshark(file: str) -> dict[str, Direction] | None:
    """Read a capture by tshark; None if a pair of addresses and ports has several connections."""
    words = [word for name in FIELDS for word in ("-e", name)]
    command = ["tshark", "-r", file, "-Y", "tcp && !icmp && !icmpv6", "-T", "fields"]
    command += ["-E", "separator=|", "-E", "occurrence=l", "-o", "ip.defragment:TRUE", *words]
    lines = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    flows: dict[str, Direction] = defaultdict(Direction)
    streams: dict[str, str] = {}
    data: dict[str, str] = {}
    for line in lines.splitlines():
        row = dict(zip(FIELDS, line.split("|"), strict=True))
        ends = [
            f"[{row[f'ipv6.{end}']}]" if row[f"ipv6.{end}"] else row[f"ip.{end}"]
            for end in ("src", "dst")
        ]
        source, target = f"{ends[0]}:{row['tcp.srcport']}", f"{ends[1]}:{row['tcp.dstport']}"
        name = f"{source} > {target}"
        if streams.setdefault(name, row["tcp.stream"]) != row["tcp.stream"]:
            return None
        flow = flows[name]
        if row["tcp.analysis.keep_alive"]:
            flow.keep_alives += 1
        elif int(row["tcp.len"] or 0) and row["tcp.flags.syn"] not in ("1", "True"):
            data[row["frame.number"]] = name
            flow.packets += 1
            flow.retransmitted += bool(row["tcp.analysis.retransmission"])
            flow.out_of_order += bool(row["tcp.analysis.out_of_order"])
            flow.lost += bool(row["tcp.analysis.lost_segment"])
            flow.large += int(row["frame.len"]) > LARGEST_FRAME
        reverse = f"{target} > {source}"
        acked = data.get(row["tcp.analysis.acks_frame"])
        flow = flows[reverse]
        if acked == reverse:
            # tshark does not show an RTT of 0.
            flow.rtts_s.append(float(row["tcp.analysis.ack_rtt"] or 0))
        is_advance = int(row["tcp.ack"] or 0) > flow.acked > 0
        flow.acked = max(flow.acked, int(row["tcp.ack"] or 0))
        flow.acked_early += bool(row["tcp.analysis.ack_lost_segment"])
        # Within a segment, or up to a FIN.
        flow.acked_in_part += is_advance and acked is None
    return {name: flow for name, flow in flows.items() if flow.packets >= FEWEST_PACKETS}


def causes(what: str, flow: Direction, notes: str) -> Iterator[str]:
    """Name the conventions that can make a measure of a flow differ."""
    if "copies of others" in notes:
        yield "copies count once"
    if flow.large:
        yield "a segment above the MSS counts as several packets"
    if flow.out_of_order:
        yield "out of order by timestamps, not by time"
    if flow.lost or flow.acked_early:
        yield "the capture misses packets, or has them after their ACK"
    if flow.keep_alives:
        yield "keep-alives"
    if what == "RTT" and flow.acked_in_part:
        yield "an ACK within a segment has no RTT in tshark, an ACK of a FIN has that of the FIN"
    if "time order" in notes:
        yield "packets were sorted"
    if "shorter than their IP header" in notes or "malformed" in notes:
        yield "damaged packets"


def main() -> None:
    """Compare and print."""
    same: Counter[str] = Counter()
    near: Counter[str] = Counter()
    total: Counter[str] = Counter()
    reasons: dict[str, Counter[str]] = defaultdict(Counter)
    for file in sys.argv[1:]:
        flows = of_tshark(file)
        if not flows:
            continue
        total["captures"] += 1
        try:
            results = jostle.analyze(file, flows=2000)
        except JostleError as error:
            print(error)
            continue
        notes = "\n".join(results.notes)
        rows: Any = [row for one in results.results for row in one.run.summary["flows"]]
        ours = {row["name"]: {**row["phases"]["overall"], **row} for row in rows}
        for name, flow in flows.items():
            if name not in ours:
                total["small directions that jostle leaves out"] += 1
                continue
            row = ours[name]
            # For each measure, the difference, and the value of which it is a part.
            compared: dict[str, tuple[float, float]] = {
                "packets": (row["sent_packets"] - flow.packets, flow.packets),
                "retransmissions": (
                    row["retransmitted_packets"] - flow.retransmitted,
                    flow.retransmitted,
                ),
            }
            if flow.rtts_s and row["segment_rtt_mean_s"] is not None:
                mean_s = float(np.mean(flow.rtts_s))
                compared["RTT"] = (row["segment_rtt_mean_s"] - mean_s, mean_s)
            for what, (apart, of) in compared.items():
                total[what] += 1
                same[what] += abs(apart) <= EQUAL
                near[what] += abs(apart) <= TOLERANCE * of + EQUAL
                if abs(apart) > (TOLERANCE * of if what == "RTT" else 0) + EQUAL:
                    why = next(causes(what, flow, notes), "unexplained")
                    reasons[what][why] += 1
                    if why == "unexplained":
                        found = {key: row[key] for key in ("sent_packets", "retransmitted_packets",
                                                           "segment_rtt_mean_s")}  # fmt: skip
                        rtt_s = np.mean(flow.rtts_s or [0])
                        print(file, name, what, found, flow.packets, flow.retransmitted, rtt_s)
    for what, count in total.items():
        is_compared = what in near
        equal = f"{same[what]} of {count} equal, {near[what]} within 2 %"
        print(f"{what}: {equal}" if is_compared else f"{what}: {count}")
        for why, many in reasons[what].most_common():
            print(f"    {many} differ: {why}")


if __name__ == "__main__":
    main()
