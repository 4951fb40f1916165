"""Reads captures, as far as jostle writes them, without the code that wrote them."""

from __future__ import annotations

import shutil
import struct
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

SYN, ACK, ECE, CWR = 0x02, 0x10, 0x40, 0x80


@dataclass(frozen=True)
class Packet:
    """What the headers of a TCP packet say."""

    time_ns: int
    size: int
    ecn: int
    source: str
    sequence: int
    acknowledgment: int
    flags: int
    payload: int
    options: dict[int, bytes]

    @property
    def stamps(self) -> tuple[int, int]:
        """TSval and TSecr."""
        return struct.unpack(">II", self.options[8])

    @property
    def blocks(self) -> list[tuple[int, int]]:
        """Selective acknowledgements."""
        words = struct.iter_unpack(">II", self.options.get(5, b""))
        return [(start, end) for start, end in words]


@dataclass(frozen=True)
class Capture:
    """A file."""

    comment: str
    system: str
    interface: str
    received: int
    dropped: int
    packets: list[Packet]

    def of(self, network: int) -> list[Packet]:
        """Packets from senders (1) or receivers (2)."""
        return [packet for packet in self.packets if packet.source.startswith(f"10.{network}.")]

    @property
    def retransmitted(self) -> int:
        """Data packets that begin before the end of what was sent before."""
        end, again = 0, 0
        sent = self.of(1)
        for packet in sent:
            if packet.payload:
                # A kernel's first sequence number is random, and 2³² follows soon after some.
                sequence = (packet.sequence - sent[0].sequence) % 2**32
                again += sequence < end
                end = max(end, sequence + packet.payload)
        return again


def read(path: Path) -> Capture:
    """Read a file; whatever is not as expected is an assertion."""
    blocks = list(blocks_of(path.read_bytes()))
    (section, options), (interface, described), *packets, (statistics, counts) = blocks
    assert (section, interface, statistics) == (0x0A0D0D0A, 1, 5)
    assert {kind for kind, _ in packets} <= {6}
    link_type, _, snap_bytes = struct.unpack_from("<HHI", described)
    assert (link_type, snap_bytes) == (1, 128)
    facts = _options(options[16:])
    place = _options(described[8:])
    assert place[9] == b"\x09"
    seen = _options(counts[12:])
    return Capture(
        comment=facts[1].decode(),
        system=facts[3].decode(),
        interface=place[2].decode(),
        received=int.from_bytes(seen[4], "little"),
        dropped=int.from_bytes(seen[5], "little"),
        packets=[_packet(body) for _, body in packets],
    )


@dataclass(frozen=True)
class Datagram:
    """A packet of UDP, or what is kept of it."""

    time_ns: int
    size: int
    ecn: int
    source: str
    ports: tuple[int, int]
    payload: bytes


@dataclass(frozen=True)
class Datagrams:
    """A file of datagrams."""

    comment: str
    snap_bytes: int
    secrets: list[str]
    packets: list[Datagram]

    def of(self, network: int) -> list[Datagram]:
        """Those from senders (1) or receivers (2)."""
        return [packet for packet in self.packets if packet.source.startswith(f"10.{network}.")]


def read_datagrams(path: Path) -> Datagrams:
    """Read a file of a flow over QUIC."""
    blocks = list(blocks_of(path.read_bytes()))
    (section, options), (interface, described), *rest, (statistics, _) = blocks
    assert (section, interface, statistics) == (0x0A0D0D0A, 1, 5)
    secrets, packets = [], []
    for kind, body in rest:
        if kind == 10:
            name, length = struct.unpack_from("<II", body)
            assert name == 0x544C534B, "a TLS key log"
            secrets += body[8 : 8 + length].decode().splitlines()
        else:
            assert kind == 6
            packets.append(_datagram(body))
    (snap_bytes,) = struct.unpack_from("<I", described, 4)
    return Datagrams(_options(options[16:])[1].decode(), snap_bytes, secrets, packets)


def _datagram(body: bytes) -> Datagram:
    _, high, low, kept, size = struct.unpack_from("<5I", body)
    frame = body[20 : 20 + kept]
    assert frame[12:15] == b"\x08\x00\x45", "Ethernet, IPv4 without options"
    total, protocol, source = struct.unpack_from(">2xH5xB2x4s", frame, 14)
    assert (protocol, size) == (17, 14 + total)
    ports, length = struct.unpack_from(">HH", frame, 34), struct.unpack_from(">H", frame, 38)[0]
    assert length == total - 20
    return Datagram(
        time_ns=high << 32 | low,
        size=size,
        ecn=frame[15] & 3,
        source=".".join(map(str, source)),
        ports=(ports[0], ports[1]),
        payload=frame[42:],
    )


def blocks_of(content: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at < len(content):
        kind, size = struct.unpack_from("<II", content, at)
        assert size == struct.unpack_from("<I", content, at + size - 4)[0]
        yield kind, content[at + 8 : at + size - 4]
        at += size


def _options(content: bytes) -> dict[int, bytes]:
    found, at = {}, 0
    while (code := struct.unpack_from("<H", content, at)[0]) != 0:
        size = struct.unpack_from("<H", content, at + 2)[0]
        found[code] = content[at + 4 : at + 4 + size]
        at += 4 + (size + 3 & ~3)
    return found


def _packet(body: bytes) -> Packet:
    _, high, low, kept, size = struct.unpack_from("<5I", body)
    frame = body[20 : 20 + kept]
    assert frame[12:15] == b"\x08\x00\x45", "Ethernet, IPv4 without options"
    total, source = struct.unpack_from(">2xH8x4s", frame, 14)
    assert size == 14 + total
    sequence, acknowledgment, offset, flags = struct.unpack_from(">4xIIBB", frame, 34)
    length = offset // 16 * 4
    # Headers, whole, and nothing else.
    assert kept == 34 + length
    return Packet(
        time_ns=high << 32 | low,
        size=size,
        ecn=frame[15] & 3,
        source=".".join(map(str, source)),
        sequence=sequence,
        acknowledgment=acknowledgment,
        flags=flags,
        payload=total - 20 - length,
        options=_tcp_options(frame[54:]),
    )


def _tcp_options(content: bytes) -> dict[int, bytes]:
    found, at = {}, 0
    while at < len(content):
        if content[at] == 1:
            at += 1
            continue
        size = content[at + 1]
        found[content[at]] = content[at + 2 : at + size]
        at += size
    return found


def tshark(path: Path, *arguments: str) -> list[str]:
    """What Wireshark's reader says of a file; the test is skipped if it is not installed."""
    program = shutil.which("tshark")
    if program is None:
        pytest.skip("tshark is not installed")
    command = [program, "-r", str(path), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


MALFORMED = "_ws.malformed || _ws.expert.severity == error || ip.checksum.status == 0"
RETRANSMITTED = (
    "tcp.len > 0 && (tcp.analysis.retransmission || tcp.analysis.out_of_order"
    " || tcp.analysis.spurious_retransmission || tcp.analysis.fast_retransmission)"
)
"""Where nothing can overtake, as at the sender, what Wireshark takes for late was sent again."""
