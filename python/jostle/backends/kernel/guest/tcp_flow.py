"""Applications of TCP flows: what they send over sockets, and when.

A process wake-up costs far more than a packet, especially in a guest kernel. Senders block in the
kernel; see `receiver.py` for the receivers.
"""

from __future__ import annotations

import errno
import itertools
import select
import socket
import struct
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .clock import sleep_until
from .flow import Flow, ThreadedFlow
from .namespaces import Host
from .receiver import read_messages
from .sample_format import DETAILS_BYTES, TCP_INFO_BYTES
from .video_player import VideoPlayer

PORT = 5201
# Payload of all flows, and the maximum size of a write.
ZEROS = memoryview(bytes(1 << 20))

# Constants that Python's socket module lacks: linux/tcp.h, linux/net_tstamp.h, asm/socket.h.
_TCP_NOTSENT_LOWAT = 25
_TCP_CC_INFO = 26
_MSG_ERRQUEUE = 0x2000
_SO_TIMESTAMPING = 37
_TX_ACK = 1 << 9
_ACK_REPORTS = 1 << 4 | 1 << 7 | 1 << 11  # SOFTWARE, OPT_ID, OPT_TSONLY

# An endless sender keeps enough unsent data that no ACK finds an empty buffer.
_ENDLESS_UNSENT_BYTES = 2 << 20
# A sender that may be stopped keeps little, because the kernel sends all of it.
_STOPPABLE_UNSENT_BYTES = 128 << 10


# A request for a message of a number of bytes.
_REQUEST = struct.Struct("=Q")

_NO_INFO = bytes(TCP_INFO_BYTES)
_NO_DETAILS = bytes(DETAILS_BYTES)


class TcpFlow(ThreadedFlow):
    """Both ends of a flow, with one thread each.

    Parameters
    ----------
    number
        Index of the flow in the job.
    job
        The flow's part of the job.
    """

    def __init__(self, number: int, job: Mapping[str, Any], hosts: Mapping[str, Host]) -> None:
        super().__init__(number, job, hosts)
        self._has_details = bool(job["details"])
        self._sender: socket.socket | None = None
        self._receiver: socket.socket | None = None
        self._payload = ZEROS[: job["write_bytes"]]
        self._stop_ns: int | None = None
        self._opened_ns: int | None = None
        self._broken: str | None = None
        self._written_bytes = 0
        # Request time of each message, and its completion time at the receiver.
        self._asked_ns: list[int] = []
        self._whole_ns: list[int] = []
        # The connection by which a proxy continues this one.
        self._next: TcpFlow | None = None
        self._is_accepted = threading.Event()
        # On, off or think times of the application.
        self._spans_ns: Iterator[int] = itertools.cycle(job["spans_ns"])
        # Message sizes, for the receiver.
        self._sizes_bytes: Iterator[int] = itertools.cycle(job["sizes_bytes"])
        source = job["source"]
        self._player = VideoPlayer(source, job["factors"]) if source["kind"] == "video" else None

    def start(self, start_ns: int, flows: Sequence[Flow]) -> None:
        """Start the sender, with the run's time 0 at `start_ns`; it may wait for one of `flows`."""
        continues = self._job["continues"]
        if continues is not None:
            following = flows[continues]
            assert isinstance(following, TcpFlow), "what is passed on goes on over TCP"
            self._next = following
        stop_ns = self._job["stop_ns"]
        self._stop_ns = None if stop_ns is None else start_ns + stop_ns
        super().start(start_ns, flows)

    def events(self, start_ns: int) -> dict[str, Any]:
        """Return the events of every flow, its opening time, and its responses.

        `responses_ns` contains for each response its completion time at the receiver, and the time
        since its request.
        """
        found = super().events(start_ns)
        if self._opened_ns is not None:
            found["opened_ns"] = self._opened_ns - start_ns
        if self._job["source"]["kind"] == "request_response" or self._job["writes"]:
            # The last requests may have no complete response yet.
            pairs = zip(self._asked_ns, self._last()._whole_ns, strict=False)
            found["responses_ns"] = [(whole - start_ns, whole - asked) for asked, whole in pairs]
        if self._player is not None:
            segments = self._player.segments
            found["segments_ns"] = [(whole - start_ns, bitrate) for whole, bitrate in segments]
        if self._broken is not None:
            found["broken"] = self._broken
        return found

    def sample(self) -> bytes:
        """Return the record of the flow."""
        details = _details(self._sender) if self._has_details else _NO_DETAILS
        return _tcp_info(self._sender) + details + _tcp_info(self._receiver)

    def receiving_host(self) -> Host:
        """Return the host of the receiver."""
        return self._hosts[self._job["receiver"]]

    def accepted(self) -> socket.socket:
        """Wait for the receiver's socket, from which a proxy reads."""
        self._is_accepted.wait()
        assert self._receiver is not None
        return self._receiver

    def wait_acknowledged(self, total_bytes: int) -> None:
        """Wait until this connection's receiver has acknowledged the first `total_bytes`."""
        assert self._sender is not None
        _wait_acknowledged(self._sender, total_bytes)

    def _last(self) -> TcpFlow:
        """Return the connection that ends at the flow's receiver."""
        return self if self._next is None else self._next._last()

    def _receive(self) -> None:
        self._hosts[self._job["receiver"]].enter()
        listener = listening(self._job["receiver_address"], self._job["receiver_controller"], 1)
        self._listens.set()
        connection, _ = listener.accept()
        end_abruptly(connection)
        self._receiver = connection
        self._is_accepted.set()
        if self._job["continues"] is not None:
            return
        try:
            self._read(connection)
        except (ConnectionError, TimeoutError):
            return  # The sender's end knows why.

    def _read(self, connection: socket.socket) -> None:
        """Read until the connection ends, or the last message is complete."""
        read_messages(connection, self._job, self._first_bytes(), lambda: self._take(connection))

    def _first_bytes(self) -> int | None:
        """Return the size of the first message; None if there are no messages."""
        if self._player is None:
            return next(self._sizes_bytes, None)
        self._player.opened.wait()
        return self._player.bytes

    def _take(self, connection: socket.socket) -> int | None:
        """Handle a complete message; return the size of the next, or None after the last."""
        now_ns = time.monotonic_ns()
        if self._player is None:
            self._whole_ns.append(now_ns)
            return self._first_bytes()
        pause_ns = self._player.loaded(now_ns)
        if pause_ns is None:
            connection.sendall(_REQUEST.pack(0))
            return None
        if pause_ns:
            sleep_until(now_ns + pause_ns)
        connection.sendall(_REQUEST.pack(self._player.bytes))
        return self._player.bytes

    def _send(self) -> None:
        self._hosts[self._job["sender"]].enter()
        sender = socket.socket()
        set_controller(sender, self._job["controller"])
        unsent_bytes = _ENDLESS_UNSENT_BYTES
        if self._stop_ns is not None or self._job["source"]["kind"] == "on_off":
            unsent_bytes = _STOPPABLE_UNSENT_BYTES
        sender.setsockopt(socket.IPPROTO_TCP, _TCP_NOTSENT_LOWAT, unsent_bytes)
        end_abruptly(sender)
        sender.bind((self._job["sender_address"], self._job["sender_port"]))
        due_ns = self._begin_ns() + self._job["start_ns"]
        if self._stop_ns is not None and due_ns >= self._stop_ns:
            return
        self._due_ns = due_ns
        sleep_until(due_ns)
        self._sender = sender
        self._connecting(sender)
        self._opened_ns = time.monotonic_ns()
        if self._player is not None:
            # Wait for the client's first packet.
            self._player.open(due_ns)
            sleep_until(due_ns + self._job["trip_ns"])
        try:
            sender.connect((self._job["receiver_address"], PORT))
            self._feed(sender)
        except (ConnectionError, TimeoutError) as error:
            # A connection that fails, for example on a link that loses all packets, is a valid
            # result.
            self._broken = error.strerror or str(error)

    def _connecting(self, sender: socket.socket) -> None:
        """Prepare for the opening of the connection; overridden in subclasses."""

    def _begin_ns(self) -> int:
        """Return the time from which the start delay counts.

        It is time 0, or the completion of the previous flow.
        Blocks until that flow is complete; forever, if it does not complete.
        """
        if self._before is None:
            return self._start_ns
        self._before.complete.wait()
        assert self._before.completed_ns is not None
        return self._before.completed_ns

    def _feed(self, sender: socket.socket) -> None:
        source = self._job["source"]
        match source["kind"]:
            case "bulk":
                self._write(sender, None, self._stop_ns)
            case "fixed":
                self._send_messages(sender, 1)
            case "on_off":
                self._take_turns(sender)
            case "media" | "trace":
                self._follow_clock(sender)
            case "request_response":
                self._send_messages(sender, source["count"])
            case "video":
                self._stream(sender)

    def _take_turns(self, sender: socket.socket) -> None:
        """Send without limit during on times, and nothing during off times."""
        turn_ns = time.monotonic_ns()
        while self._stop_ns is None or turn_ns < self._stop_ns:
            turn_ns += next(self._spans_ns)
            until_ns = turn_ns if self._stop_ns is None else min(turn_ns, self._stop_ns)
            self._write(sender, None, until_ns)
            turn_ns += next(self._spans_ns)
            sleep_until(turn_ns)

    def _follow_clock(self, sender: socket.socket) -> None:
        """Write each message at its time, or as soon after it as the socket buffer has room."""
        sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sender.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPING, _ACK_REPORTS)
        opened_ns = self._due_ns or 0
        ends = self._job["source"]["kind"] == "trace"
        last = len(self._job["writes"]) - 1
        for number, (at_ns, size_bytes) in enumerate(self._job["writes"]):
            moment_ns = opened_ns + at_ns
            if self._stop_ns is not None and moment_ns >= self._stop_ns:
                return
            sleep_until(moment_ns)
            self._asked_ns.append(moment_ns)
            tells = ends and number == last
            if self._write(sender, size_bytes, self._stop_ns, tells=tells) < size_bytes:
                return
        if ends:
            self._last().wait_acknowledged(self._written_bytes)
            self.completed_ns = time.monotonic_ns()
            self.complete.set()

    def _send_messages(self, sender: socket.socket, count: int | None) -> None:
        """Send `count` messages; after each, wait for its acknowledgement and a think time."""
        sizes_bytes = itertools.islice(itertools.cycle(self._job["sizes_bytes"]), count)
        # The last segment of a message must not wait for the ACK of the previous one.
        sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # Reports count bytes from this point on, so the option is set after the connection is open.
        sender.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPING, _ACK_REPORTS)
        for number, size_bytes in enumerate(sizes_bytes):
            # The first message is requested when the connection opens.
            moment_ns = self._due_ns or 0
            if number > 0:
                moment_ns = time.monotonic_ns() + next(self._spans_ns)
                if self._stop_ns is not None and moment_ns >= self._stop_ns:
                    return
                sleep_until(moment_ns)
            self._asked_ns.append(moment_ns)
            if self._write(sender, size_bytes, self._stop_ns) < size_bytes:
                return
            self._last().wait_acknowledged(self._written_bytes)
        self.completed_ns = time.monotonic_ns()
        self.complete.set()

    def _stream(self, sender: socket.socket) -> None:
        """Send segments of a video, each after its request."""
        assert self._player is not None
        sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        size_bytes = self._player.bytes
        while size_bytes:
            if self._write(sender, size_bytes, self._stop_ns, tells=False) < size_bytes:
                return
            requested_bytes = self._receive_request(sender)
            if requested_bytes is None:
                return
            size_bytes = requested_bytes
        self.completed_ns = time.monotonic_ns()
        self.complete.set()

    def _receive_request(self, sender: socket.socket) -> int | None:
        """Wait for a request; return its size, or None if the flow has stopped."""
        request = b""
        while len(request) < _REQUEST.size:
            if self._stop_ns is not None:
                left_s = max(0, self._stop_ns - time.monotonic_ns()) / 1e9
                if not select.select([sender], [], [], left_s)[0]:
                    return None
            part = sender.recv(_REQUEST.size - len(request))
            if not part:
                return None
            request += part
        size_bytes: int = _REQUEST.unpack(request)[0]
        return size_bytes

    def _write(
        self,
        sender: socket.socket,
        size_bytes: int | None,
        until_ns: int | None,
        *,
        tells: bool = True,
    ) -> int:
        """Write `size_bytes` (None: unlimited) until `until_ns`; return the bytes written.

        If `tells`, the kernel is requested to report the acknowledgement of the last byte.
        """
        written_bytes = 0
        # A blocking write is cheaper, but cannot be interrupted in time.
        sender.setblocking(until_ns is None)
        while size_bytes is None or written_bytes < size_bytes:
            left_bytes = len(self._payload) if size_bytes is None else size_bytes - written_bytes
            if until_ns is not None and time.monotonic_ns() >= until_ns:
                break
            try:
                if left_bytes <= len(self._payload) and size_bytes is not None and tells:
                    ask = [(socket.SOL_SOCKET, _SO_TIMESTAMPING, struct.pack("=I", _TX_ACK))]
                    taken = sender.sendmsg([self._payload[:left_bytes]], ask)
                else:
                    taken = sender.send(self._payload[:left_bytes])
            except BlockingIOError:
                assert until_ns is not None
                room_within_s = max(0, until_ns - time.monotonic_ns()) / 1e9
                select.select([], [sender], [], room_within_s)
            else:
                written_bytes += taken
                self._written_bytes += taken
        sender.setblocking(True)
        return written_bytes


def set_controller(connection: socket.socket, name: str) -> None:
    """Set the congestion control of a connection."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())


def listening(address: str, controller: str | None, backlog: int) -> socket.socket:
    """Open a listening socket with a backlog.

    Its connections use `controller`, or the host's default if it is None.
    """
    listener = socket.socket()
    if controller is not None:
        set_controller(listener, controller)
    listener.bind((address, PORT))
    listener.listen(backlog)
    return listener


def end_abruptly(connection: socket.socket) -> None:
    """Send a reset on close, so that no connection, and no namespace, outlives the run."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("=ii", 1, 0))


def _wait_acknowledged(sender: socket.socket, total_bytes: int) -> None:
    """Wait until the first `total_bytes` are acknowledged, by a report of the kernel."""
    waiting = select.poll()
    waiting.register(sender, 0)
    while True:
        for _, happened in waiting.poll():
            if happened & select.POLLHUP:
                raise ConnectionResetError(errno.ECONNRESET, "connection reset")
        try:
            _, ancillary, _, _ = sender.recvmsg(1, 512, _MSG_ERRQUEUE | socket.MSG_DONTWAIT)
        except BlockingIOError:
            number = sender.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if number:
                raise ConnectionError(number, errno.errorcode.get(number, "broken")) from None
            continue
        for level, _, content in ancillary:
            # struct sock_extended_err: the last word is the offset of the reported byte.
            if level == socket.SOL_IP and len(content) >= 16:
                (last_byte,) = struct.unpack_from("=I", content, 12)
                if last_byte == (total_bytes - 1) & 0xFFFFFFFF:
                    return


def _tcp_info(connection: socket.socket | None) -> bytes:
    if connection is None:
        return _NO_INFO
    info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, TCP_INFO_BYTES)
    return info.ljust(TCP_INFO_BYTES, b"\0")


def _details(connection: socket.socket | None) -> bytes:
    if connection is None:
        return _NO_DETAILS
    details = connection.getsockopt(socket.IPPROTO_TCP, _TCP_CC_INFO, DETAILS_BYTES)
    return details.ljust(DETAILS_BYTES, b"\0")
