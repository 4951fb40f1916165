"""Servers that answer as a hostile one does, until a test is over."""

from __future__ import annotations

import itertools
import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress

PATIENCE_S = 4.0
"""How long a server goes on: a test that waits for its end has waited too long."""
_OK = b"HTTP/1.1 200 OK\r\n"
_CHUNKED = _OK + b"Transfer-Encoding: chunked\r\n\r\n"


class Peer:
    """One connection, as the hostile end uses it."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self._until_s = time.monotonic() + PATIENCE_S

    def read(self, size: int) -> bytes:
        content = b""
        while len(content) < size:
            piece = self.connection.recv(size - len(content))
            if not piece:
                raise ConnectionResetError
            content += piece
        return content

    def drip(self, pieces: Iterable[bytes]) -> None:
        """Send a piece every 50 ms."""
        for piece in pieces:
            if time.monotonic() > self._until_s:
                return
            self.connection.sendall(piece)
            time.sleep(0.05)

    def flood(self, piece: bytes) -> None:
        """Send as fast as it is taken."""
        while time.monotonic() < self._until_s:
            self.connection.sendall(piece * 1000)

    def wait(self) -> None:
        """Say nothing."""
        with suppress(TimeoutError):
            self.connection.settimeout(PATIENCE_S)
            while self.connection.recv(1):
                pass

    def swallow(self) -> None:
        """Take what comes, in a thread."""

        def take() -> None:
            with suppress(OSError):
                while self.connection.recv(1 << 20):
                    pass

        threading.Thread(target=take, daemon=True).start()


def _bytes(text: bytes) -> Iterator[bytes]:
    return (bytes([byte]) for byte in text)


def _header(answer: Callable[[Peer], object]) -> Callable[[Peer], object]:
    """Read a request first."""

    def serve(peer: Peer) -> None:
        peer.connection.recv(1 << 16)
        answer(peer)

    return serve


def _begun(answer: bytes, then: Callable[[Peer], object]) -> Callable[[Peer], object]:
    def serve(peer: Peer) -> None:
        peer.connection.recv(1 << 16)
        peer.connection.sendall(answer)
        then(peer)

    return serve


def _dripped_answer_to_an_upload(peer: Peer) -> None:
    peer.swallow()
    peer.drip(itertools.chain(_bytes(_OK), itertools.repeat(b"x")))


HTTP: dict[str, Callable[[Peer], object]] = {
    "silent": Peer.wait,
    "status a byte at a time": _header(lambda peer: peer.drip(itertools.repeat(b"H"))),
    "header a byte at a time": _begun(_OK + b"X: ", lambda peer: peer.drip(itertools.repeat(b"x"))),
    "endless 100 Continue": _header(lambda peer: peer.flood(b"HTTP/1.1 100 Continue\r\n\r\n")),
    "100 Continue now and then": _header(
        lambda peer: peer.drip(itertools.repeat(b"HTTP/1.1 100 Continue\r\n\r\n"))
    ),
    "endless headers": _begun(_OK, lambda peer: peer.flood(b"X: y\r\n")),
    "endless header": _begun(_OK + b"X: ", lambda peer: peer.flood(b"x")),
    "endless trailers": _begun(_CHUNKED + b"1\r\nx\r\n0\r\n", lambda peer: peer.flood(b"X: y\r\n")),
    "endless chunk extension": _begun(_CHUNKED + b"1;", lambda peer: peer.flood(b"x")),
    "chunk extension a byte at a time": _begun(
        _CHUNKED + b"1;", lambda peer: peer.drip(itertools.repeat(b"x"))
    ),
    "chunks of a byte": _begun(_CHUNKED, lambda peer: peer.drip(itertools.repeat(b"1\r\nx\r\n"))),
    "body a byte at a time": _begun(
        _OK + b"Content-Length: 1000000\r\n\r\n", lambda peer: peer.drip(itertools.repeat(b"x"))
    ),
    "no body": _begun(_OK + b"Content-Length: 1000000\r\n\r\n", Peer.wait),
    "less than Content-Length": _begun(
        _OK + b"Content-Length: 1000000\r\n\r\n" + bytes(300_000), lambda _: None
    ),
    "nothing read": lambda peer: time.sleep(PATIENCE_S),
    "an upload's answer a byte at a time": _dripped_answer_to_an_upload,
    "TLS record a byte at a time": lambda peer: peer.drip(
        itertools.chain(_bytes(b"\x16\x03\x03\x40\x00"), itertools.repeat(b"x"))
    ),
}

# States of iperf3's control connection (iperf_api.h).
_TEST_START, _TEST_RUNNING, _TEST_END = 1, 2, 4
_PARAM_EXCHANGE, _CREATE_STREAMS, _EXCHANGE_RESULTS, _DISPLAY_RESULTS = 9, 10, 13, 14
_COOKIE_BYTES = 37


def _results(answer: Callable[[Peer], object]) -> Callable[[Peer, socket.socket], object]:
    """Run a test as iperf3 does until the client has sent its results."""

    def serve(peer: Peer, server: socket.socket) -> None:
        def say(*states: int) -> None:
            peer.connection.sendall(bytes(states))

        def take_document() -> None:
            peer.read(*struct.unpack("!I", peer.read(4)))

        peer.read(_COOKIE_BYTES)
        say(_PARAM_EXCHANGE)
        take_document()
        say(_CREATE_STREAMS)
        stream = Peer(server.accept()[0])
        stream.read(_COOKIE_BYTES)
        stream.swallow()
        say(_TEST_START, _TEST_RUNNING)
        assert peer.read(1) == bytes([_TEST_END])
        say(_EXCHANGE_RESULTS)
        take_document()
        answer(peer)

    return serve


def _huge_results(peer: Peer) -> None:
    peer.connection.sendall(struct.pack("!I", 0xFFFF_FFF0))
    peer.flood(b" ")


def _verbose_results(peer: Peer) -> None:
    stream = {"id": 1, "bytes": 1, "retransmits": -1, "jitter": 0, "errors": 0, "packets": 0}
    loads = {f"cpu_util_{kind}": 0 for kind in ("total", "user", "system")}
    congestion = {"sender_has_retransmits": 1, "congestion_used": "x" * 5_000_000}
    text = json.dumps({**loads, **congestion, "streams": [stream]}).encode()
    peer.connection.sendall(struct.pack("!I", len(text)) + text + bytes([_DISPLAY_RESULTS]))
    peer.wait()


IPERF3: dict[str, Callable[[Peer, socket.socket], object]] = {
    "silent": lambda peer, _: peer.wait(),
    "silent after the cookie": lambda peer, _: (peer.read(_COOKIE_BYTES), peer.wait()),
    "no results": _results(Peer.wait),
    "huge results": _results(_huge_results),
    "verbose results": _results(_verbose_results),
}


@contextmanager
def serving(answer: Callable[[Peer], object]) -> Iterator[int]:
    """Serve on a port of this machine, each connection in a thread."""

    def serve(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            answer(Peer(connection))

    def accept(server: socket.socket) -> None:
        threading.Thread(target=serve, args=server.accept()[:1], daemon=True).start()

    with _listening(accept) as port:
        yield port


@contextmanager
def serving_iperf3(answer: Callable[[Peer, socket.socket], object]) -> Iterator[int]:
    """Serve on a port of this machine, one client at a time."""

    def accept(server: socket.socket) -> None:
        connection, _ = server.accept()
        with connection, suppress(OSError):
            answer(Peer(connection), server)

    with _listening(accept) as port:
        yield port


@contextmanager
def _listening(accept: Callable[[socket.socket], object]) -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def repeat() -> None:
            with suppress(OSError):
                while True:
                    accept(server)

        threading.Thread(target=repeat, daemon=True).start()
        yield int(server.getsockname()[1])
        # `accept` in another thread would keep a closed socket listening.
        server.shutdown(socket.SHUT_RDWR)
