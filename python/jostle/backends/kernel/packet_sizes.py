"""Packet sizes: sizes of full packets by MTU, and the sizes on a link."""

from __future__ import annotations

from collections.abc import Sequence

from jostle.run_spec import FlowSpec
from jostle.scenario.flow_links import forward_links
from jostle.scenario.resolve.sources import DATAGRAM_HEADER_BYTES

MTU_BYTES = 1500
"""Default MTU of Ethernet devices."""

LINK_HEADER_BYTES = 14
"""Ethernet header. `tc` includes it in packet sizes; the MTU does not."""

PACKET_BYTES = MTU_BYTES + LINK_HEADER_BYTES
"""Packet size for limits given in packets, for any MTU of the flows."""

HEADER_BYTES = 66
"""Ethernet, IP and TCP headers of a data packet, timestamps included: the size of an ACK."""

_SMALLEST_FRAME_BYTES = 60
_IN_MTU_BYTES = HEADER_BYTES - LINK_HEADER_BYTES

PAYLOAD_BYTES = MTU_BYTES - _IN_MTU_BYTES
"""TCP payload of a full-sized packet with the default MTU."""


def packet_bytes(flow: FlowSpec) -> int:
    """Return the size of a full packet or datagram on the wire, as htb and queues count it."""
    source = flow["source"]
    if source["kind"] in ("cbr", "ping"):
        return datagram_bytes(source["bytes"])
    return flow["mtu_bytes"] + LINK_HEADER_BYTES


def datagram_bytes(payload_bytes: int) -> int:
    """Return the size of a datagram on the wire. Ethernet pads short frames."""
    return max(_SMALLEST_FRAME_BYTES, LINK_HEADER_BYTES + DATAGRAM_HEADER_BYTES + payload_bytes)


def payload_bytes(flow: FlowSpec) -> int:
    """Return the TCP payload of a full-sized packet of a flow."""
    return flow["mtu_bytes"] - _IN_MTU_BYTES


def sizes_on(link: int, flows: Sequence[FlowSpec]) -> set[int]:
    """Return the sizes of full packets on a link; 1514 bytes if only ACKs cross it."""
    return {packet_bytes(flow) for flow in flows if link in forward_links(flow)} or {PACKET_BYTES}
