"""Writes the packets of one of our captures as other programs would have captured them."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pcapng

ETHERNET, NULL, LOOP, RAW, IPV4, IPV6, SLL, SLL2 = 1, 0, 108, 101, 228, 229, 113, 276
PPP, PPP_HDLC, PPP_ETHER, CISCO_HDLC, MPLS = 9, 50, 51, 104, 219
IPV4_IN_IP, IPV6_IN_IP, UDP, GRE, MPLS_IN_IP = 4, 41, 17, 47, 137
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


def without_option(kind: int) -> Rewrite:
    """Overwrite a TCP option of Ethernet and IPv4 by NOPs, as some middleboxes do."""

    def rewrite(frame: Frame) -> Frame:
        content = bytearray(frame.content)
        tcp = _ETHERNET_BYTES + _IPV4_BYTES
        at, end = tcp + 20, tcp + (content[tcp + 12] >> 4) * 4
        while at < end and content[at] != 0:
            length = 1 if content[at] == 1 else content[at + 1]
            if content[at] == kind:
                content[at : at + length] = b"\x01" * length
            at += length
        return replace(frame, content=bytes(content))

    return rewrite


def in_the_middle(every: Sequence[Frame], earlier_ns: int) -> list[Frame]:
    """Move a capture of IPv4 from the sender of the first packet into the path.

    There, the other end's packets pass earlier than they arrive at the sender.
    """
    source = every[0].content[26:30]
    moved = [
        frame
        if frame.content[26:30] == source
        else replace(frame, time_ns=max(frame.time_ns - earlier_ns, 0))
        for frame in every
    ]
    return sorted(moved, key=lambda frame: frame.time_ns)


def kuznetzov(every: Sequence[Frame], order: str = "<") -> bytes:
    """Write the variant of pcap by Kuznetzov: interface, protocol and kind follow the lengths."""
    parts = [struct.pack(f"{order}IHHiIII", 0xA1B2CD34, 2, 4, 0, 0, 65_535, ETHERNET)]
    for frame in every:
        seconds, rest = divmod(frame.time_ns, 10**9)
        sizes = (seconds, rest // 1000, len(frame.content), frame.wire_bytes)
        parts += [struct.pack(f"{order}4IIHBx", *sizes, 3, 0x0800, 4), frame.content]
    return b"".join(parts)


def long_headers(every: Sequence[Frame], magic: int, more_bytes: int, order: str = "<") -> bytes:
    """Write a variant of pcap with more bytes in front of each packet."""
    parts = [struct.pack(f"{order}IHHiIII", magic, 2, 4, 0, 0, 65_535, ETHERNET)]
    for frame in every:
        seconds, rest = divmod(frame.time_ns, 10**9)
        sizes = (seconds, rest // 1000, len(frame.content), frame.wire_bytes)
        parts += [struct.pack(f"{order}4I", *sizes), bytes(more_bytes), frame.content]
    return b"".join(parts)


def snoop(every: Sequence[Frame]) -> bytes:
    """Write a snoop file (RFC 1761), whose records are padded to multiples of four bytes."""
    parts = [b"snoop\0\0\0" + struct.pack(">II", 2, 4)]
    for frame in every:
        seconds, rest = divmod(frame.time_ns, 10**9)
        kept = len(frame.content)
        padding = -kept % 4
        sizes = (frame.wire_bytes, kept, 24 + kept + padding, 0, seconds, rest // 1000)
        parts += [struct.pack(">6I", *sizes), frame.content, bytes(padding)]
    return b"".join(parts)


def netmon(every: Sequence[Frame], version: int = 2, minor: int = 0, network: int = 1) -> bytes:
    """Write a capture of Microsoft Network Monitor; version 1 has milliseconds."""
    start = time.gmtime(every[0].time_ns // 10**9)
    start_ns = every[0].time_ns // 10**9 * 10**9
    records, offsets = [], []
    at = 128
    for frame in every:
        kept, after_us = len(frame.content), (frame.time_ns - start_ns) // 1000
        if version == 1:
            head = struct.pack("<IHH", after_us // 1000, frame.wire_bytes, kept)
        else:
            head = struct.pack("<QII", after_us, frame.wire_bytes, kept)
        trailer = (struct.pack("<H", network) + bytes(13))[: (0, 2, 6, 15)[minor]]
        records.append(head + frame.content + trailer)
        offsets.append(at)
        at += len(records[-1])
    magic = b"RTSS" if version == 1 else b"GMBU"
    date = (start.tm_year, start.tm_mon, 0, start.tm_mday)
    clock = (start.tm_hour, start.tm_min, start.tm_sec, 0)
    file_network = 1 if minor == 0 else 0
    header = magic + struct.pack("<BBH8H", minor, version, file_network, *date, *clock)
    header += struct.pack("<II", at, 4 * len(every))
    table = struct.pack(f"<{len(every)}I", *offsets)
    return header.ljust(128, b"\0") + b"".join(records) + table


def obsolete_pcapng(every: Sequence[Frame], order: str = "<") -> bytes:
    """Write a pcapng file of obsolete Packet Blocks, with nanoseconds."""

    def block(kind: int, body: bytes) -> bytes:
        body += b"\0" * (-len(body) % 4)
        size = struct.pack(f"{order}I", 12 + len(body))
        return struct.pack(f"{order}I", kind) + size + body + size

    parts = [block(0x0A0D0D0A, struct.pack(f"{order}IHHq", 0x1A2B3C4D, 1, 0, -1))]
    resolution = struct.pack(f"{order}HHB3xHH", 9, 1, 9, 0, 0)
    parts.append(block(1, struct.pack(f"{order}HHI", ETHERNET, 0, 0) + resolution))
    for frame in every:
        high, low = frame.time_ns >> 32, frame.time_ns & 0xFFFF_FFFF
        head = struct.pack(
            f"{order}HHIIII", 0, 0xFFFF, high, low, len(frame.content), frame.wire_bytes
        )
        parts.append(block(2, head + frame.content))
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


def pppoe(frame: Frame) -> Frame:
    """PPPoE: version and type, code 0, session, length; then PPP."""
    protocol = _ppp_protocol(frame)
    session = struct.pack(">BBHH", 0x11, 0, 7, frame.wire_bytes - _ETHERNET_BYTES + 2)
    return frame.behind(frame.content[:12] + b"\x88\x64" + session + protocol)


def ppp(before: bytes = b"", *, is_short: bool = False) -> Rewrite:
    """PPP, behind address and control or not, with a protocol of two bytes or of one."""
    return lambda frame: frame.behind(before + _ppp_protocol(frame)[is_short:])


def _ppp_protocol(frame: Frame) -> bytes:
    return b"\0\x21" if _type(frame) == _IP else b"\0\x57"


def cisco_hdlc(frame: Frame) -> Frame:
    """Address, control and EtherType."""
    return frame.behind(b"\x0f\0" + _type(frame))


def labelled(*labels: int, between: bytes | None = None, alone: bool = False) -> Rewrite:
    """Put MPLS labels before IP or, behind `between`, before the Ethernet frame."""
    words = [label << 12 | 64 for label in labels]
    words[-1] |= 1 << 8
    stack = struct.pack(f">{len(words)}I", *words)

    def rewrite(frame: Frame) -> Frame:
        before = b"" if alone else frame.content[:12] + b"\x88\x47"
        if between is None:
            return frame.behind(before + stack)
        return frame.behind(before + stack + between, cut=0)

    return rewrite


def inserted(kind: int, header: bytes) -> Rewrite:
    """Put a header that ends with the EtherType of what follows behind the addresses."""
    return lambda frame: frame.behind(frame.content[:12] + struct.pack(">H", kind) + header, cut=12)


def nsh(next_protocol: int) -> Rewrite:
    """Network Service Header (RFC 8300) of MD type 1, before IP or Ethernet."""
    header = struct.pack(">HBBI16x", 6, 1, next_protocol, 0x100 << 8)

    def rewrite(frame: Frame) -> Frame:
        before = frame.content[:12] + b"\x89\x4f" + header
        return frame.behind(before, cut=0 if next_protocol == 3 else _ETHERNET_BYTES)

    return rewrite


def in_ip(
    protocol: int | None, header: bytes = b"", *, version: int = 4, has_ethernet: bool = False
) -> Rewrite:
    """Put a frame, or what is behind its Ethernet header, into a packet of IP.

    `protocol` is that of IP in IP if it is None.
    """

    def rewrite(frame: Frame) -> Frame:
        inner = {_IP: IPV4_IN_IP, _IP6: IPV6_IN_IP}[_type(frame)]
        cut = 0 if has_ethernet else _ETHERNET_BYTES
        length = len(header) + frame.wire_bytes - cut
        number = inner if protocol is None else protocol
        before = frame.content[:12]
        if version == 4:
            fields = (0x45, 0, 20 + length, 0, 0x4000, 64, number, 0)
            before += _IP + struct.pack(">BBHHHBBH", *fields)
            before += bytes((198, 51, 100, 1, 198, 51, 100, 2))
        else:
            before += _IP6 + struct.pack(">IHBB", 6 << 28, length, number, 64)
            before += b"".join(b"\x20\x01\x0d\xb8" + bytes(11) + bytes((at,)) for at in (1, 2))
        return frame.behind(before + header, cut=cut)

    return rewrite


def gre(flags: int = 0, fields: bytes = b"", *, kind: int | None = None, **outer: Any) -> Rewrite:
    """GRE: flags, protocol, optional fields."""

    def rewrite(frame: Frame) -> Frame:
        protocol = int.from_bytes(_type(frame), "big") if kind is None else kind
        return in_ip(GRE, struct.pack(">HH", flags, protocol) + fields, **outer)(frame)

    return rewrite


def pptp(frame: Frame) -> Frame:
    """PPP in the GRE of RFC 2637, with key and sequence number."""
    protocol = b"\xff\x03" + _ppp_protocol(frame)
    return gre(0x3001, struct.pack(">HHI", 1, 2, 3) + protocol, kind=0x880B)(frame)


def in_udp(port: int, header: bytes, *, version: int = 4, has_ethernet: bool = False) -> Rewrite:
    """Put a frame, or what is behind its Ethernet header, into a datagram."""

    def rewrite(frame: Frame) -> Frame:
        cut = 0 if has_ethernet else _ETHERNET_BYTES
        length = 8 + len(header) + frame.wire_bytes - cut
        udp = struct.pack(">HHHH", 50_000, port, length, 0)
        return in_ip(UDP, udp + header, version=version, has_ethernet=has_ethernet)(frame)

    return rewrite


def fragments(frame: Frame, data_bytes: int, number: int = 1) -> list[Frame]:
    """Split a packet of IPv4 without options or of IPv6 into fragments (RFC 791, RFC 8200).

    `number` identifies the packet.
    """
    is_ipv4 = _type(frame) == _IP
    header_bytes = _ETHERNET_BYTES + (_IPV4_BYTES if is_ipv4 else _IPV6_BYTES)
    total = frame.wire_bytes - header_bytes
    if total <= data_bytes:
        return [frame]
    header = frame.content[:header_bytes]
    parts = []
    for at in range(0, total, data_bytes):
        length = min(data_bytes, total - at)
        more = at + length < total
        if is_ipv4:
            fields = struct.pack(">HHH", _IPV4_BYTES + length, number, more << 13 | at // 8)
            before = header[:16] + fields + header[22:]
        else:
            fragment = struct.pack(">BBHI", header[20], 0, at // 8 << 3 | more, number)
            size = struct.pack(">HB", 8 + length, 44)
            before = header[:18] + size + header[21:] + fragment
        kept = frame.content[header_bytes + at : header_bytes + at + length]
        parts.append(Frame(frame.time_ns, before + kept, len(before) + length))
    return parts
