"""Web browsers: sockets and threads of the connections that the engine's browser asks for.

The browser connects from the receiver's host to a server on the sender's host. Only the length of a
request matters; the server gets the size of the object within this process.
"""

from __future__ import annotations

import contextlib
import functools
import heapq
import itertools
import socket
import threading
import time
from collections.abc import Iterable, Mapping
from typing import Any

from .connection_totals import Ends
from .connections import BACKLOG, MultiConnectionFlow, port_of
from .namespaces import Host
from .receiver import read_messages
from .tcp_flow import PORT, ZEROS, end_abruptly, listening, set_controller

# Timeout for the threads of an abandoned connection.
_PATIENCE_S = 1.0


class _BrowserConnection:
    """A connection of a page.

    Attributes
    ----------
    number
        Number of the connection within the flow.
    ends
        Its sockets.
    is_open
        Whether its page needs it.
    """

    def __init__(self, number: int, client: socket.socket) -> None:
        self.number = number
        self.client = client
        self.ends = Ends(receiver=client)
        self.is_open = True
        # The reading thread, and the server's thread if it exists.
        self.threads: list[threading.Thread] = []

    def end(self) -> None:
        """End the threads that use this connection."""
        for end in (self.ends.sender, self.ends.receiver):
            # A connection that failed or never opened cannot be shut down.
            with contextlib.suppress(OSError):
                if end is not None:
                    end.shutdown(socket.SHUT_RD)
        for thread in self.threads:
            if thread is not threading.current_thread():
                thread.join(_PATIENCE_S)


class BrowserFlow(MultiConnectionFlow):
    """A browser and its server; see `FlowOfJob`.

    Parameters
    ----------
    browser
        The engine's browser.
    """

    def __init__(
        self, number: int, job: Mapping[str, Any], hosts: Mapping[str, Host], browser: Any
    ) -> None:
        super().__init__(number, job, hosts)
        self._browser = browser
        self._request = bytes(browser.request_bytes)
        self._connections: dict[int, _BrowserConnection] = {}
        self._awaited: dict[int, _BrowserConnection] = {}
        self._numbers = itertools.count()
        # Guards the browser; notified when it has decided something.
        self._decided = threading.Condition()
        # Times at which the browser wants to be called.
        self._wakes_ns: list[int] = []
        self._broken: str | None = None

    def events(self, start_ns: int) -> dict[str, Any]:
        """Return the events of every flow, and the log of the pages."""
        found = super().events(start_ns)
        found["pages"] = self._browser.pages()
        if self._broken is not None:
            found["broken"] = self._broken
        return found

    def _receive(self) -> None:
        """Accept the browser's connections, in the host of the flow's sender."""
        self._hosts[self._job["sender"]].enter()
        listener = listening(self._job["sender_address"], self._job["controller"], BACKLOG)
        self._listens.set()
        while True:
            connection, (_, port) = listener.accept()
            end_abruptly(connection)
            accepted = self._awaited.pop(port)
            accepted.ends.sender = connection
            serve = functools.partial(self._serve, accepted.number, connection)
            accepted.threads.append(self._thread(serve))

    def _serve(self, number: int, connection: socket.socket) -> None:
        """Serve requests, until the connection is closed."""
        length = len(self._request)
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while True:
                if len(connection.recv(length, socket.MSG_WAITALL)) < length:
                    return
                with self._decided:
                    left_bytes = self._browser.on_request(number)
                while left_bytes:
                    left_bytes -= connection.send(ZEROS[:left_bytes])
        except (ConnectionError, TimeoutError):
            return  # The browser's end knows why.

    def _send(self) -> None:
        """Call the browser whenever it is due, until the flow stops."""
        self._hosts[self._job["receiver"]].enter()
        due_ns = self._begin_ns() + self._job["start_ns"]
        stop_ns = self._job["stop_ns"]
        if stop_ns is not None and due_ns >= self._start_ns + stop_ns:
            return
        self._due_ns = due_ns
        self._wakes_ns = [due_ns - self._start_ns]
        while True:
            with self._decided:
                next_ns = self._wakes_ns[0] if self._wakes_ns else None
                if stop_ns is not None and (next_ns is None or stop_ns <= next_ns):
                    next_ns = stop_ns
                now_ns = self._now_ns()
                if next_ns is None or now_ns < next_ns:
                    self._decided.wait(None if next_ns is None else (next_ns - now_ns) / 1e9)
                    continue
                if next_ns != stop_ns:
                    heapq.heappop(self._wakes_ns)
                steps = (
                    self._browser.stop() if next_ns == stop_ns else self._browser.on_time(next_ns)
                )
                closed = self._perform(steps)
                self._decided.notify_all()
            self._close(closed)
            if next_ns == stop_ns:
                return

    def _now_ns(self) -> int:
        return time.monotonic_ns() - self._start_ns

    def _perform(self, steps: Iterable[tuple[str, int]]) -> list[_BrowserConnection]:
        """Perform steps of the browser; return the connections that it closes."""
        closed = []
        for name, number in steps:
            match name:
                case "open":
                    self._open(number)
                case "send":
                    self._ask(self._connections[number])
                case "close":
                    closed.append(self._connections.pop(number))
                    closed[-1].is_open = False
                case "finish":
                    self.completed_ns = time.monotonic_ns()
                    self.complete.set()
                case "wake":
                    heapq.heappush(self._wakes_ns, number)
        return closed

    def _ask(self, connection: _BrowserConnection) -> None:
        """Send a request.

        If a connection fails, the page cannot be completed, and the browser stops.
        """
        try:
            connection.client.sendall(self._request)
        except (ConnectionError, TimeoutError) as error:
            self._fail(error)

    def _fail(self, error: OSError) -> None:
        self._broken = error.strerror or str(error)
        # Data of other connections may still be in flight, so they are not closed.
        self._browser.stop()

    def _open(self, line: int) -> None:
        """Open a connection of the page, with its first request."""
        client = socket.socket()
        if self._job["receiver_controller"] is not None:
            set_controller(client, self._job["receiver_controller"])
        end_abruptly(client)
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection = _BrowserConnection(next(self._numbers), client)
        port = port_of(connection.number)
        client.bind((self._job["receiver_address"], port))
        self._browser.opened(line, connection.number)
        self._connections[connection.number] = connection
        self._awaited[port] = connection
        self._tally.add(connection.ends)
        load = functools.partial(self._load, connection)
        connection.threads.append(self._thread(load))

    def _load(self, connection: _BrowserConnection) -> None:
        """Connect, send the first request, and read objects until the connection is closed."""
        try:
            connection.client.connect((self._job["sender_address"], PORT))
            connection.client.sendall(self._request)
            take = functools.partial(self._take, connection)
            read_messages(connection.client, self._job, self._awaited_bytes(connection), take)
        except (ConnectionError, TimeoutError) as error:
            with self._decided:
                if connection.is_open:
                    self._fail(error)

    def _take(self, connection: _BrowserConnection) -> int | None:
        """Handle a complete object; return the size of the next, or None if there is none."""
        now_ns = self._now_ns()
        with self._decided:
            steps = self._browser.on_object(connection.number, now_ns)
            closed = self._perform(steps)
            # Requests are sent on this connection only, for whose objects no other thread waits.
            if any(name != "send" for name, _ in steps):
                self._decided.notify_all()
        self._close(closed)
        return self._awaited_bytes(connection)

    def _awaited_bytes(self, connection: _BrowserConnection) -> int | None:
        """Wait until an object is requested; return its size, or None if the connection closes."""
        with self._decided:
            while connection.is_open:
                size_bytes: int | None = self._browser.awaited_bytes(connection.number)
                if size_bytes is not None:
                    return size_bytes
                self._decided.wait()
        return None

    def _close(self, connections: Iterable[_BrowserConnection]) -> None:
        for connection in connections:
            connection.end()
            self._tally.close(connection.ends)
