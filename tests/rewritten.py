"""Writes the packets of one of our captures as other programs would have captured them."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pcapng

ETHERNET, NULL, LOOP, RAW, IPV4, IPV6, SLL, SLL2 = 1, 0, 108, 101, 228, 229, 113, 276
_ETHERNET_BYTES, _IPV4_BYTES, _IPV6_BYTES = 14, 20, 40
_IP, _IP6 = b"\x08\x00", b"\x86\xdd"


@dataclass(frozen=True)
class Frame:
    """A packet: what was kept of it, and how many bytes it had on the wire."""

    time_ns: int
    content: bytes
    wire_bytes: int

    def behind(self, header: bytes, cut: int = _ETHERNET_BYTES) -> Frame:
        """Put another header in the place of the first `cut` bytes."""
        grown = len(header) - cut
        return replace(
            self, content=header + self.content[cut:], wire_bytes=self.wire_bytes + grown
        )


Rewrite = Callable[[Frame], Frame]


def frames(path: Path) -> list[Frame]:
    """Read the packets of one of our captures of TCP: Ethernet and IPv4, headers alone."""
    found = []
    for kind, body in pcapng.blocks_of(path.read_bytes()):
        if kind == 6:
            _, high, low, kept, size = struct.unpack_from("<5I", body)
            found.append(Frame(high << 32 | low, body[20 : 20 + kept], size))
    return found


def pcap(
    every: Sequence[Frame],
    *,
    link: int = ETHERNET,
    per_second: int = 10**9,
    order: str = "<",
    snap: int = 65_535,
) -> bytes:
    """Write a pcap file, with nano- or microseconds, in either byte order."""
    magic = {10**9: 0xA1B23C4D, 10**6: 0xA1B2C3D4}[per_second]
    parts = [struct.pack(f"{order}IHHiIII", magic, 2, 4, 0, 0, snap, link)]
    for frame in every:
        seconds, rest = divmod(frame.time_ns, 10**9)
        kept = frame.content[:snap]
        sizes = (rest * per_second // 10**9, len(kept), frame.wire_bytes)
        parts += [struct.pack(f"{order}4I", seconds, *sizes), kept]
    return b"".join(parts)


def bigendian_pcapng(every: Sequence[Frame], link: int = ETHERNET) -> bytes:
    """Write a pcapng file of the other byte order, with times in 2⁻³⁰ s."""

    def block(kind: int, body: bytes) -> bytes:
        body += b"\0" * (-len(body) % 4)
        size = struct.pack(">I", 12 + len(body))
        return struct.pack(">I", kind) + size + body + size

    parts = [block(0x0A0D0D0A, struct.pack(">IHHq", 0x1A2B3C4D, 1, 0, -1))]
    resolution = struct.pack(">HHB3x", 9, 1, 0x80 | 30) + struct.pack(">HH", 0, 0)
    parts.append(block(1, struct.pack(">HHI", link, 0, 0) + resolution))
    for frame in every:
        # The unit at or after: what is read of it is rounded down.
        units = -(-(frame.time_ns << 30) // 10**9)
        sizes = (0, units >> 32, units & 0xFFFF_FFFF, len(frame.content), frame.wire_bytes)
        parts.append(block(6, struct.pack(">5I", *sizes) + frame.content))
    return b"".join(parts)


def tagged(*tags: int) -> Rewrite:
    """Put tags of VLANs behind the addresses: 0x8100 is 802.1Q, 0x88a8 the outer one of QinQ."""
    inserted = b"".join(struct.pack(">HH", tag, 0x2005) for tag in tags)
    return lambda frame: frame.behind(frame.content[:12] + inserted, cut=12)


def cooked(frame: Frame) -> Frame:
    """LINUX_SLL: kind of packet, ARPHRD_ETHER, address with its length, protocol."""
    return frame.behind(struct.pack(">HHH8s", 0, 1, 6, frame.content[6:12]) + _type(frame))


def cooked_2(frame: Frame) -> Frame:
    """LINUX_SLL2: protocol, interface 7, ARPHRD_ETHER, kind of packet, address."""
    rest = struct.pack(">HIHBB8s", 0, 7, 1, 0, 6, frame.content[6:12])
    return frame.behind(_type(frame) + rest)


def raw(frame: Frame) -> Frame:
    """An IP packet by itself."""
    return frame.behind(b"")


def loopback(order: str) -> Rewrite:
    """Put the number that the family has before IP: of IPv4 2, of IPv6 24, 28, 30 or 10."""
    return lambda frame: frame.behind(struct.pack(f"{order}I", 2 if _type(frame) == _IP else 30))


def over_ipv6(frame: Frame) -> Frame:
    """Give a packet of IPv4 without options the header of IPv6, which is 20 bytes longer."""
    ip = frame.content[_ETHERNET_BYTES:]
    traffic_class, total = ip[1], int.from_bytes(ip[2:4], "big")
    header = struct.pack(">IHBB", 6 << 28 | traffic_class << 20, total - _IPV4_BYTES, ip[9], ip[8])
    addresses = b"".join(b"\x20\x01\x0d\xb8" + bytes(8) + ip[at : at + 4] for at in (12, 16))
    before = frame.content[:12] + _IP6 + header + addresses
    assert len(before) == _ETHERNET_BYTES + _IPV6_BYTES
    return frame.behind(before, cut=_ETHERNET_BYTES + _IPV4_BYTES)


def _type(frame: Frame) -> bytes:
    return frame.content[12:14]
