"""Programs for both ends of an emulated link: `python traffic.py NAME [ARGUMENT]`."""

from __future__ import annotations

import json
import os
import socket
import struct
import sys
import time

PORT = 5000
ECT0 = 0b10
CE = 0b11
DATAGRAMS = 400
DATAGRAM_BYTES = 1000


def ping(count: str) -> None:
    """Print the round-trip times, in ms, of ICMP echoes to the peer's kernel."""
    rtts_ms = []
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as raw:
        raw.connect((os.environ["JOSTLE_PEER"], 0))
        raw.settimeout(2)
        for number in range(int(count)):
            # Type 8, code 0; the checksum of a header whose only other content is the number.
            echo = struct.pack("!BBHHH", 8, 0, 0xFFFF - 0x0800 - number, 0, number)
            # The answer, of type 0, comes behind 20 bytes of IP header.
            rtts_ms.append(_rtt_ms(raw, echo, 20, (0, 0, 0, number)))
            time.sleep(0.005)
    print(json.dumps(rtts_ms))


def ping6() -> None:
    """Print the round-trip time, in ms, of an ICMPv6 echo; the kernel adds its checksum."""
    with socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6) as raw:
        raw.connect((os.environ["JOSTLE_PEER6"], 0))
        raw.settimeout(2)
        print(_rtt_ms(raw, struct.pack("!BBHHH", 128, 0, 0, 0, 1), 0, (129, 0, 0, 1)))


def _rtt_ms(raw: socket.socket, echo: bytes, ahead: int, answer: tuple[int, ...]) -> float:
    sent = time.perf_counter()
    raw.send(echo)
    while _without_checksum(raw.recv(100)[ahead : ahead + 8]) != answer:
        pass
    return (time.perf_counter() - sent) * 1e3


def _without_checksum(header: bytes) -> tuple[int, ...]:
    kind, code, _checksum, identifier, number = struct.unpack("!BBHHH", header)
    return kind, code, identifier, number


def serve() -> None:
    """Send to whoever connects, until it has enough."""
    with socket.create_server(("", PORT)) as server:
        connection, _ = server.accept()
        with connection:
            try:
                while True:
                    connection.sendall(bytes(1 << 16))
            except ConnectionError:
                pass


def download(seconds: str) -> None:
    """Print the goodput of a connection, in bit/s, after a second of warming up."""
    with socket.create_connection((os.environ["JOSTLE_PEER"], PORT)) as connection:
        begin = time.perf_counter() + 1
        end = begin + float(seconds)
        received, first, last = 0, 0.0, 0.0
        while last < end:
            size = len(connection.recv(1 << 16))
            last = time.perf_counter()
            if last >= begin:
                received += size if first else 0
                first = first or last
        print(received * 8 / (last - first))


def spray() -> None:
    """Send ECN-capable datagrams to whoever asks for them."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("", PORT))
        server.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, ECT0)
        _, client = server.recvfrom(100)
        for _ in range(DATAGRAMS):
            server.sendto(bytes(DATAGRAM_BYTES), client)
        time.sleep(60)


def count_marks() -> None:
    """Ask for datagrams and print how many came, and how many of them marked."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.setsockopt(socket.IPPROTO_IP, socket.IP_RECVTOS, 1)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        client.settimeout(1)
        client.sendto(b"go", (os.environ["JOSTLE_PEER"], PORT))
        received = marked = 0
        try:
            while received < DATAGRAMS:
                _, ancillary, _, _ = client.recvmsg(2000, 100)
                received += 1
                marked += any(data[0] & CE == CE for _, kind, data in ancillary)
        except TimeoutError:
            pass
        print(json.dumps([received, marked]))


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
