"""Binary format of samples, in native byte order."""

from __future__ import annotations

import struct

TCP_INFO_BYTES = 232
DETAILS_BYTES = 24
FLOW_BYTES = 2 * TCP_INFO_BYTES + DETAILS_BYTES
"""Size of a flow's part. For TCP: the sender's `tcp_info`, the controller's details and the
receiver's `tcp_info`. For external programs: `PROGRAMS`. For multi-connection flows: `CONNECTIONS`.
Padded with zeros."""

PROGRAMS = struct.Struct("=QQQQQ")
"""Packets and bytes sent by the sender, packets and bytes received by the receiver, including link
headers; bytes that the client has written, or `UNKNOWN`."""

UNKNOWN = 2**64 - 1

CONNECTIONS = struct.Struct("=9Q")
"""Of a multi-connection flow: data packets and payload sent, retransmitted packets, packets and
payload received, payload in flight; ACKs since the previous sample, the sum of the smoothed RTTs
after each, and the minimum RTT so far or `UNKNOWN`, both in µs."""

DEPARTURE = struct.Struct("=q")
"""Departure of a datagram: time in ns of the run."""

ARRIVAL = struct.Struct("=qqI")
"""Arrival of a datagram: times of arrival and departure in ns of the run, and its number."""

XSTATS_BYTES = 104
QUEUE = struct.Struct(f"=QQIIII{XSTATS_BYTES}s9Q")
"""A link's part: bytes and packets sent, bytes and packets in the queue, drops, overlimits, the
qdisc's own statistics, random losses, losses in outages, ACKs removed by thinning, and bytes of
ACKs held for it; packets corrupted, duplicated, dropped by the limit of netem's delay, alone or
with the queue, and marked by number."""
