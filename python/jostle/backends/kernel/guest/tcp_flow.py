"""TCP flows: sockets and threads of both ends, which do what the engine's applications ask for.

A process wake-up costs far more than a packet, especially in a guest kernel. Senders block in the
kernel; see `receiver.py` for the receivers.
"""

from __future__ import annotations

import errno
import select
import socket
import struct
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

from .clock import sleep_until
from .connection_totals import retransmitted_packets
from .flow import Flow, ThreadedFlow
from .namespaces import Host
from .receiver import read_messages, read_slowly
from .sample_format import DETAILS_BYTES, TCP_INFO_BYTES

PORT = 5201
# Payload of all flows, and the maximum size of a write.
ZEROS = memoryview(bytes(1 << 20))

# Constants that Python's socket module lacks: linux/tcp.h, linux/net_tstamp.h, asm/socket.h.
_TCP_NOTSENT_LOWAT = 25
_TCP_CC_INFO = 26
# Size of union tcp_cc_info of linux/inet_diag.h.
_PIECE_BYTES = 20
_MSG_ERRQUEUE = 0x2000
_SO_TIMESTAMPING = 37
_TX_ACK = 1 << 9
_ACK_REPORTS = 1 << 4 | 1 << 7 | 1 << 11  # SOFTWARE, OPT_ID, OPT_TSONLY

# An endless sender keeps enough unsent data that no ACK finds an empty buffer. The simulator has
# both values in `build/tcp.rs`.
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
    application
        The engine's application of the flow.
    reader
        The engine's slow application at the receiver; None if it reads at once.
    """

    def __init__(
        self,
        number: int,
        job: Mapping[str, Any],
        hosts: Mapping[str, Host],
        application: Any,
        reader: Any = None,
    ) -> None:
        super().__init__(number, job, hosts)
        self.application = application
        self._reader = reader
        self._has_details = bool(job["details"])
        # State of jostle's controller at each sample, in hexadecimal digits; None for Linux's.
        self._states: list[str] | None = [] if job["states"] else None
        self._sender: socket.socket | None = None
        self._receiver: socket.socket | None = None
        self._payload = ZEROS[: job["write_bytes"]]
        self._stop_ns: int | None = None
        self._opened_ns: int | None = None
        self._broken: str | None = None
        self._written_bytes = 0
        # Maximum number of unsent bytes, once it is set.
        self._unsent_bytes = 0
        # The connection by which a proxy continues this one.
        self._next: TcpFlow | None = None
        self._is_accepted = threading.Event()
        self._is_connected = threading.Event()

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
        """Return the events of every flow, its opening time, and the log of its application."""
        found = super().events(start_ns)
        if self._opened_ns is not None:
            found["opened_ns"] = self._opened_ns - start_ns
        found["messages"] = self._messages()
        if self._states is not None:
            found["states"] = self._states
        if self._broken is not None:
            found["broken"] = self._broken
        return found

    def sample(self) -> bytes:
        """Return the record of the flow."""
        details = _details(self._sender) if self._has_details else _NO_DETAILS
        if self._states is not None:
            self._states.append(_controller_state(self._sender).hex())
        return _tcp_info(self._sender) + details + _tcp_info(self._receiver)

    def receiving_host(self) -> Host:
        """Return the host of the receiver."""
        return self._hosts[self._job["receiver"]]

    def accepted(self) -> socket.socket:
        """Wait for the receiver's socket, for a proxy or the flow in the opposite direction."""
        self._is_accepted.wait()
        assert self._receiver is not None
        return self._receiver

    def connected(self) -> socket.socket:
        """Wait for the sender's socket, from which the flow in the opposite direction is read."""
        self._is_connected.wait()
        assert self._sender is not None
        return self._sender

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
        first_bytes = self.application.next_message_bytes()

        def take() -> int | None:
            return self._take(connection)

        if self._reader is None:
            read_messages(connection, self._job, first_bytes, take)
        else:
            read_slowly(connection, self._reader, self._start_ns, first_bytes, take)

    def _take(self, connection: socket.socket) -> int | None:
        """Handle a complete message; return the size of the next, or None after the last."""
        next_ns: int | None = self.application.on_received(self._now_ns())
        size_bytes: int | None = self.application.next_message_bytes()
        if self.application.is_requested_by_receiver:
            if next_ns is not None:
                sleep_until(self._start_ns + next_ns)
            connection.sendall(_REQUEST.pack(size_bytes or 0))
        return size_bytes

    def _now_ns(self) -> int:
        return time.monotonic_ns() - self._start_ns

    def _messages(self) -> list[str]:
        """Return the log of the application, one per connection."""
        retransmitted = 0 if self.completed_ns else retransmitted_packets(self._sender)
        return [self.application.messages(retransmitted)]

    def _send(self) -> None:
        self._hosts[self._job["sender"]].enter()
        sender = self._sender_socket()
        due_ns = self._begin_ns() + self._job["start_ns"]
        if self._stop_ns is not None and due_ns >= self._stop_ns:
            return
        self._due_ns = due_ns
        sleep_until(due_ns)
        self._sender = sender
        self._connecting(sender)
        self._opened_ns = time.monotonic_ns()
        step = self._act(due_ns)
        if step.waits:
            sleep_until(self._start_ns + step.next_ns)
            step = self._act(self._start_ns + step.next_ns)
        try:
            self._connect(sender)
            self._feed(sender, step)
        except (ConnectionError, TimeoutError) as error:
            # A connection that fails, for example on a link that loses all packets, is a valid
            # result.
            self._broken = error.strerror or str(error)

    def _sender_socket(self) -> socket.socket:
        sender = socket.socket()
        set_controller(sender, self._job["controller"])
        end_abruptly(sender)
        sender.bind((self._job["sender_address"], self._job["sender_port"]))
        return sender

    def _connect(self, sender: socket.socket) -> None:
        sender.connect((self._job["receiver_address"], PORT))
        self._is_connected.set()

    def _connecting(self, sender: socket.socket) -> None:
        """Prepare for the opening of the connection; overridden in subclasses."""

    def _feed(self, sender: socket.socket, step: Any) -> None:
        """Perform `step` of the application and those that follow, until its end or the stop."""
        sends_messages = False
        while True:
            next_ns = None if step.next_ns is None else self._start_ns + step.next_ns
            if step.write_bytes is not None:
                if not sends_messages:
                    sends_messages = True
                    _prepare_messages(sender)
                is_awaited = step.is_last and not self.application.is_requested_by_receiver
                written = self._write(sender, step.write_bytes, self._stop_ns, tells=is_awaited)
                if written < step.write_bytes:
                    return
            elif step.writes_forever:
                ends_ns = [at_ns for at_ns in (next_ns, self._stop_ns) if at_ns is not None]
                self._write(sender, None, min(ends_ns, default=None))
            if next_ns is None:
                if step.write_bytes is None:
                    return
                next_ns = self._wait(sender)
            if next_ns is None or (self._stop_ns is not None and next_ns >= self._stop_ns):
                return
            sleep_until(next_ns)
            step = self._act(next_ns)

    def _act(self, at_ns: int) -> Any:
        return self.application.act(at_ns - self._start_ns)

    def _wait(self, sender: socket.socket) -> int | None:
        """Wait for a request, or until everything is acknowledged.

        Returns
        -------
        int or None
            Time of the application's next step; None if it has no other.
        """
        if self.application.is_requested_by_receiver:
            requested_bytes = self._receive_request(sender)
            now_ns = time.monotonic_ns()
            if requested_bytes is None:
                return None
            next_ns = now_ns if requested_bytes else None
        else:
            self._last().wait_acknowledged(self._written_bytes)
            now_ns = time.monotonic_ns()
            retransmitted = retransmitted_packets(sender)
            next_ns = self.application.on_acknowledged(now_ns - self._start_ns, retransmitted)
            if next_ns is not None:
                next_ns += self._start_ns
        if next_ns is None:
            self.completed_ns = now_ns
            if self._job["closes"]:
                sender.shutdown(socket.SHUT_WR)
            self.complete.set()
        return next_ns

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
        unsent_bytes = _ENDLESS_UNSENT_BYTES if until_ns is None else _STOPPABLE_UNSENT_BYTES
        if unsent_bytes != self._unsent_bytes:
            sender.setsockopt(socket.IPPROTO_TCP, _TCP_NOTSENT_LOWAT, unsent_bytes)
            self._unsent_bytes = unsent_bytes
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


def _prepare_messages(sender: socket.socket) -> None:
    """Prepare a connected socket for messages."""
    # The last segment of a message must not wait for the ACK of the previous one.
    sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    # Reports count bytes from this point on, so the option is set after the connection is open.
    sender.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPING, _ACK_REPORTS)


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


def _controller_state(connection: socket.socket | None) -> bytes:
    """Return the state of jostle's controller, which the kernel gives in pieces."""
    state = b""
    while connection is not None:
        piece = connection.getsockopt(socket.IPPROTO_TCP, _TCP_CC_INFO, _PIECE_BYTES)
        state += piece
        if len(piece) < _PIECE_BYTES:
            break
    return state


def _details(connection: socket.socket | None) -> bytes:
    if connection is None:
        return _NO_DETAILS
    details = connection.getsockopt(socket.IPPROTO_TCP, _TCP_CC_INFO, DETAILS_BYTES)
    return details.ljust(DETAILS_BYTES, b"\0")
