"""Browsers: pages of objects, loaded over connections that are opened for each page.

The simulator's stands in `crates/sim/src/browser.rs`. Here the browser is a client as any other: it
connects from the receiver's host to a server in the sender's, and asks for objects by requests of
which only the length matters; what they ask for the server is told by the side.
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
from .connections import BACKLOG, FlowOfMany, port_of
from .flow import Flow
from .namespaces import Host
from .reading import read_messages
from .tally import Ends
from .traffic import PORT, ZEROS, end_abruptly, listening, set_controller

# Between two pages some time passes, as in the simulator.
_LEAST_THINK_NS = 1_000
# Until the threads of a connection that is given up have ended.
_PATIENCE_S = 1.0


class _Line:
    """A connection of a page.

    Attributes
    ----------
    ends
        Its sockets.
    asked_bytes
        Sizes of the objects that it was asked for and that the server does not know of yet.
    """

    def __init__(self, client: socket.socket) -> None:
        self.ends = Ends(receiver=client)
        self.asked_bytes: deque[int] = deque()
        # What was asked for and is not whole.
        self._coming_bytes: deque[int] = deque()
        self._served = threading.Event()
        self._has_server = False

    def ask(self, size_bytes: int, request: bytes) -> None:
        """Ask for an object of so many bytes."""
        self.asked_bytes.append(size_bytes)
        self._coming_bytes.append(size_bytes)
        assert self.ends.receiver is not None
        self.ends.receiver.sendall(request)

    def next_bytes(self) -> int | None:
        """Size of the object that comes next; None if nothing else was asked for."""
        return self._coming_bytes.popleft() if self._coming_bytes else None

    def serve(self, connection: socket.socket, request_bytes: int) -> None:
        """Be the server's end, until the connection is needed no more."""
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            # One that was given up meanwhile has no room for a server any more.
            while len(connection.recv(request_bytes, socket.MSG_WAITALL)) == request_bytes:
                left_bytes = self.asked_bytes.popleft()
                while left_bytes:
                    left_bytes -= connection.send(ZEROS[:left_bytes])
        except (ConnectionError, TimeoutError):
            return  # The browser's end knows why.
        finally:
            self._served.set()

    def accepted(self, connection: socket.socket) -> None:
        """Let the server have the connection."""
        self.ends.sender = connection
        self._has_server = True

    def end(self) -> None:
        """End both threads that wait for something here."""
        for end in (self.ends.sender, self.ends.receiver):
            # One that never opened, or is broken, has nothing to end.
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
        self.lines: list[_Line] = []
        self.threads: list[threading.Thread] = []
        # When the last object was whole, of those that are.
        self.whole_ns = 0
        # Nothing more is asked for.
        self.is_over = False


class BrowserFlow(FlowOfMany):
    """A browser and its server; see `FlowOfJob`."""

    def __init__(self, number: int, job: Mapping[str, Any], hosts: Mapping[str, Host]) -> None:
        super().__init__(number, job, hosts)
        self._source: Mapping[str, Any] = job["source"]
        self._request = bytes(self._source["request_bytes"])
        self._pages: Iterator[Any] = itertools.islice(
            itertools.cycle(job["pages"]), self._source["pages"]
        )
        self._awaited: dict[int, _Line] = {}
        self._opened = itertools.count()
        # One thread at a time decides what is asked for.
        self._deciding = threading.Lock()
        self._page: _Page | None = None
        self._stops = False
        self._broken: str | None = None
        # When each page was asked for, and how long it took, if it is whole.
        self._loads_ns: list[tuple[int, int | None]] = []

    def start(self, start_ns: int, flows: Sequence[Flow]) -> None:
        """Start the browser, with the run's time 0 at `start_ns`."""
        super().start(start_ns, flows)
        if self._job["stop_ns"] is not None:
            self._thread(self._stop)

    def events(self, start_ns: int) -> dict[str, Any]:
        """Those of every flow, and of each page when it was asked for and how long it took."""
        found = super().events(start_ns)
        found["pages_ns"] = [(at_ns - start_ns, took_ns) for at_ns, took_ns in self._loads_ns]
        if self._broken is not None:
            found["broken"] = self._broken
        return found

    def _receive(self) -> None:
        """Accept what the browser opens: the server waits in the host of the flow's sender."""
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

    def _open(self, page: _Page) -> _Line:
        """Add a connection to a page."""
        client = socket.socket()
        if self._job["receiver_controller"] is not None:
            set_controller(client, self._job["receiver_controller"])
        end_abruptly(client)
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        port = port_of(next(self._opened))
        client.bind((self._job["receiver_address"], port))
        line = _Line(client)
        page.lines.append(line)
        self._awaited[port] = line
        self._tally.add(line.ends)
        return line

    def _load(self, page: _Page, line: _Line, first_bytes: int) -> None:
        """Connect, ask for an object, and then for as many others as there are.

        Without one of its connections a page is never whole.
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

    def _take(self, page: _Page, line: _Line) -> int | None:
        """Take an object, which is whole; return the size of the next one that comes."""
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

    def _ask_for_objects(self, page: _Page, first: _Line) -> None:
        """Ask for what the main object refers to."""
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
        """Ask for nothing more, and give up what is on its way."""
        sleep_until(self._start_ns + self._job["stop_ns"])
        with self._deciding:
            self._stops = True
            page = self._page
            if page is None or page.is_over:
                return
            page.is_over = True
        self._close(page)
