"""Web browsers: pages of objects, loaded over connections that are opened for each page.

The simulator's browser is in `crates/traffic/src/web_browser.rs`. Here the browser connects from
the receiver's host to a server on the sender's host. Only the length of a request matters; the
server gets the size of the object within this process.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import socket
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .clock import sleep_until
from .connection_totals import Ends
from .connections import BACKLOG, MultiConnectionFlow, port_of
from .flow import Flow
from .namespaces import Host
from .receiver import read_messages
from .tcp_flow import PORT, ZEROS, end_abruptly, listening, set_controller

# Minimum time between two pages, as in the simulator.
_LEAST_THINK_NS = 1_000
# Timeout for the threads of an abandoned connection.
_PATIENCE_S = 1.0


class _BrowserConnection:
    """A connection of a page.

    Attributes
    ----------
    ends
        Its sockets.
    asked_bytes
        Sizes of requested objects that the server has not read yet.
    """

    def __init__(self, client: socket.socket) -> None:
        self.ends = Ends(receiver=client)
        self.asked_bytes: deque[int] = deque()
        # Sizes of requested objects that are not complete.
        self._coming_bytes: deque[int] = deque()
        self._served = threading.Event()
        self._has_server = False

    def ask(self, size_bytes: int, request: bytes) -> None:
        """Request an object of `size_bytes`."""
        self.asked_bytes.append(size_bytes)
        self._coming_bytes.append(size_bytes)
        assert self.ends.receiver is not None
        self.ends.receiver.sendall(request)

    def next_bytes(self) -> int | None:
        """Return the size of the next object; None if no other was requested."""
        return self._coming_bytes.popleft() if self._coming_bytes else None

    def serve(self, connection: socket.socket, request_bytes: int) -> None:
        """Serve requests, until the connection is closed."""
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            # An abandoned connection has no requests for the server.
            while len(connection.recv(request_bytes, socket.MSG_WAITALL)) == request_bytes:
                left_bytes = self.asked_bytes.popleft()
                while left_bytes:
                    left_bytes -= connection.send(ZEROS[:left_bytes])
        except (ConnectionError, TimeoutError):
            return  # The browser's end knows why.
        finally:
            self._served.set()

    def accepted(self, connection: socket.socket) -> None:
        """Assign the server's socket to the connection."""
        self.ends.sender = connection
        self._has_server = True

    def end(self) -> None:
        """End the threads that wait for this connection."""
        for end in (self.ends.sender, self.ends.receiver):
            # A connection that failed or never opened cannot be shut down.
            with contextlib.suppress(OSError):
                if end is not None:
                    end.shutdown(socket.SHUT_RD)
        if self._has_server:
            self._served.wait(_PATIENCE_S)


class _Page:
    """A page that is being loaded."""

    def __init__(self, objects_bytes: Sequence[int], parse_ns: int) -> None:
        self.waiting = deque(objects_bytes)
        self.parse_ns = parse_ns
        self.lines: list[_BrowserConnection] = []
        self.threads: list[threading.Thread] = []
        # Completion time of the last complete object.
        self.whole_ns = 0
        # Whether no further objects are requested.
        self.is_over = False


class BrowserFlow(MultiConnectionFlow):
    """A browser and its server; see `FlowOfJob`."""

    def __init__(self, number: int, job: Mapping[str, Any], hosts: Mapping[str, Host]) -> None:
        super().__init__(number, job, hosts)
        self._source: Mapping[str, Any] = job["source"]
        self._request = bytes(self._source["request_bytes"])
        self._pages: Iterator[Any] = itertools.islice(
            itertools.cycle(job["pages"]), self._source["pages"]
        )
        self._awaited: dict[int, _BrowserConnection] = {}
        self._opened = itertools.count()
        # Serialises the decisions about requests.
        self._deciding = threading.Lock()
        self._page: _Page | None = None
        self._stops = False
        self._broken: str | None = None
        # Request time of each page, and its load time if it was loaded.
        self._loads_ns: list[tuple[int, int | None]] = []

    def start(self, start_ns: int, flows: Sequence[Flow]) -> None:
        """Start the browser, with the run's time 0 at `start_ns`."""
        super().start(start_ns, flows)
        if self._job["stop_ns"] is not None:
            self._thread(self._stop)

    def events(self, start_ns: int) -> dict[str, Any]:
        """Return the events of every flow, and request time and load time of each page."""
        found = super().events(start_ns)
        found["pages_ns"] = [(at_ns - start_ns, took_ns) for at_ns, took_ns in self._loads_ns]
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
            line = self._awaited.pop(port)
            line.accepted(connection)
            self._thread(functools.partial(line.serve, connection, len(self._request)))

    def _send(self) -> None:
        self._hosts[self._job["receiver"]].enter()
        self._due_ns = at_ns = self._start_ns + self._job["start_ns"]
        for main_bytes, objects_bytes, parse_ns, think_ns in self._pages:
            sleep_until(at_ns)
            page = _Page(objects_bytes, parse_ns)
            with self._deciding:
                if self._stops:
                    return
                self._page = page
                self._loads_ns.append((at_ns, None))
            self._load(page, self._open(page), main_bytes)
            for thread in page.threads:
                thread.join()
            if page.is_over:
                return
            self._loads_ns[-1] = (at_ns, page.whole_ns - at_ns)
            self._close(page)
            at_ns = page.whole_ns + max(think_ns, _LEAST_THINK_NS)

    def _open(self, page: _Page) -> _BrowserConnection:
        """Add a connection to a page."""
        client = socket.socket()
        if self._job["receiver_controller"] is not None:
            set_controller(client, self._job["receiver_controller"])
        end_abruptly(client)
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        port = port_of(next(self._opened))
        client.bind((self._job["receiver_address"], port))
        line = _BrowserConnection(client)
        page.lines.append(line)
        self._awaited[port] = line
        self._tally.add(line.ends)
        return line

    def _load(self, page: _Page, line: _BrowserConnection, first_bytes: int) -> None:
        """Connect, request an object, and then further objects as long as there are any.

        If a connection fails, the page cannot be completed.
        """
        client = line.ends.receiver
        assert client is not None
        take = functools.partial(self._take, page, line)
        try:
            client.connect((self._job["sender_address"], PORT))
            line.ask(first_bytes, self._request)
            read_messages(client, self._job, line.next_bytes(), take)
        except (ConnectionError, TimeoutError) as error:
            page.is_over = True
            self._broken = error.strerror or str(error)

    def _take(self, page: _Page, line: _BrowserConnection) -> int | None:
        """Handle a complete object; return the size of the next expected one."""
        now_ns = time.monotonic_ns()
        is_main = page.whole_ns == 0
        page.whole_ns = now_ns
        if is_main:
            sleep_until(now_ns + page.parse_ns)
        with self._deciding:
            if page.is_over:
                return None
            if is_main:
                page.whole_ns = time.monotonic_ns()
                self._ask_for_objects(page, line)
            elif page.waiting and not self._source["multiplexed"]:
                line.ask(page.waiting.popleft(), self._request)
        return line.next_bytes()

    def _ask_for_objects(self, page: _Page, first: _BrowserConnection) -> None:
        """Request the objects to which the main object refers."""
        if self._source["multiplexed"]:
            while page.waiting:
                first.ask(page.waiting.popleft(), self._request)
            return
        for number in range(self._source["connections"]):
            if not page.waiting:
                return
            size_bytes = page.waiting.popleft()
            if number == 0:
                first.ask(size_bytes, self._request)
                continue
            load = functools.partial(self._load, page, self._open(page), size_bytes)
            page.threads.append(self._thread(load))

    def _close(self, page: _Page) -> None:
        for line in page.lines:
            line.end()
            self._tally.close(line.ends)

    def _stop(self) -> None:
        """Stop requesting objects, and abandon the current page."""
        sleep_until(self._start_ns + self._job["stop_ns"])
        with self._deciding:
            self._stops = True
            page = self._page
            if page is None or page.is_over:
                return
            page.is_over = True
        self._close(page)
