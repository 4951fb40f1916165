"""What samples consist of. Numbers are in the machine's order."""

from __future__ import annotations

import struct

TCP_INFO_BYTES = 232
DETAILS_BYTES = 24
FLOW_BYTES = 2 * TCP_INFO_BYTES + DETAILS_BYTES
"""A flow's part: of TCP the kernel's own structures as they are (the sender's `tcp_info`, the
controller's details, the receiver's `tcp_info`); of programs `PROGRAMS`, of many connections
`CONNECTIONS`, and zeros."""

PROGRAMS = struct.Struct("=QQQQQ")
"""Packets and bytes that left the sender, packets and bytes that reached the receiver, link headers
included; bytes that the client has written, or `UNKNOWN`."""

UNKNOWN = 2**64 - 1

CONNECTIONS = struct.Struct("=9Q")
"""Of a flow that is many connections: data packets and their payload that left the sender, packets
sent again, packets and payload that reached the receiver; payload in flight; ACKs since the sample
before, the sum of the smoothed RTTs that they left, and the smallest RTT so far, or `UNKNOWN`, both
in µs."""

DEPARTURE = struct.Struct("=q")
"""A datagram that nobody answers: when it was sent, in ns of the run."""

ARRIVAL = struct.Struct("=qqI")
"""One that has come: when it came and when it was sent, in ns of the run, and its number."""

XSTATS_BYTES = 64
QUEUE = struct.Struct(f"=QQIIII{XSTATS_BYTES}sQQQQ")
"""A link's part: bytes and packets sent, bytes and packets waiting, drops, overlimits, the queue's
own statistics, losses by chance and in outages, ACKs thinned out, bytes of ACKs held for that."""
