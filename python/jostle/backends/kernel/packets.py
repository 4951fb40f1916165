"""Sizes of packets: what the MTUs of flows make of them, and which of them a link meets."""

from __future__ import annotations

from collections.abc import Sequence

from jostle.run_spec import FlowSpec

MTU_BYTES = 1500
"""MTU of Ethernet, and of every device that needs no larger one."""

LINK_HEADER_BYTES = 14
"""Header of Ethernet: `tc` counts it, and an MTU does not."""

PACKET_BYTES = MTU_BYTES + LINK_HEADER_BYTES
"""What is meant where a queue or an amount is said in packets, whatever the flows have."""

HEADER_BYTES = 66
"""Ethernet, IP and TCP headers of a data packet, timestamps included: the size of an ACK."""

_DATAGRAM_HEADER_BYTES = 20 + 8
_SMALLEST_FRAME_BYTES = 60
_IN_MTU_BYTES = HEADER_BYTES - LINK_HEADER_BYTES

PAYLOAD_BYTES = MTU_BYTES - _IN_MTU_BYTES
"""What a packet of that size carries beside its headers."""


def packet_bytes(flow: FlowSpec) -> int:
    """Bytes of a full packet on the wire, or of a datagram: what htb and the queues count."""
    source = flow["source"]
    if source["kind"] in ("cbr", "ping"):
        return datagram_bytes(source["bytes"])
    return flow["mtu_bytes"] + LINK_HEADER_BYTES


def datagram_bytes(payload_bytes: int) -> int:
    """Bytes on the wire of a datagram; Ethernet pads what is smaller."""
    return max(_SMALLEST_FRAME_BYTES, LINK_HEADER_BYTES + _DATAGRAM_HEADER_BYTES + payload_bytes)


def payload_bytes(flow: FlowSpec) -> int:
    """Bytes that a full packet carries beside its headers."""
    return flow["mtu_bytes"] - _IN_MTU_BYTES


def sizes_on(link: int, flows: Sequence[FlowSpec]) -> set[int]:
    """Sizes of full packets that cross a link; one of 1514 bytes if nothing but ACKs does."""
    return {packet_bytes(flow) for flow in flows if link in flow["path"]} or {PACKET_BYTES}
