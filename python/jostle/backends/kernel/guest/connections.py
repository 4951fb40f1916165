"""Flows with arrivals: connections that open, transfer data and close.

The engine has drawn the start times in the job. Each open connection has two threads.
The connections of a flow are distinguished by their ports.
"""

from __future__ import annotations

import functools
import socket
import threading
from collections.abc import Mapping
from typing import Any

from .clock import sleep_until
from .connection_totals import ConnectionTotals, Ends
from .flow import ThreadedFlow
from .namespaces import Host
from .tcp_flow import TcpFlow, end_abruptly, listening

BACKLOG = 4096
"""Maximum number of connections that wait for `accept`."""

# Stack size of a connection's thread, whose call depth is small.
_STACK_BYTES = 256 << 10
# Ports of clients: the first port, and the number of ports until they are reused.
_FIRST_PORT, _PORTS = 10_000, 50_000


def port_of(connection: int) -> int:
    """Return the client port of the flow's connection with a number."""
    return _FIRST_PORT + connection % _PORTS


class _Connection(TcpFlow):
    """A connection of the flow."""

    def __init__(
        self,
        number: int,
        job: Mapping[str, Any],
        hosts: Mapping[str, Host],
        application: Any,
        ends: Ends,
    ) -> None:
        super().__init__(number, job, hosts, application)
        self._ends = ends
        self._has_read = threading.Event()

    def write(self, start_ns: int) -> bool:
        """Run the sender, in a run that began at `start_ns`; return whether all data has arrived.

        Returns when the connection has ended.
        """
        self._start_ns = start_ns
        self._send()
        if self.completed_ns is not None:
            self._has_read.wait()
        return self.completed_ns is not None

    def read(self, connection: socket.socket) -> None:
        """Run the receiver."""
        self._receiver = self._ends.receiver = connection
        try:
            self._read(connection)
        except (ConnectionError, TimeoutError):
            return  # The sender's end knows why.
        finally:
            self._has_read.set()

    def messages(self) -> str:
        """Return the log of the connection's application."""
        (log,) = self._messages()
        return log

    def _connecting(self, sender: socket.socket) -> None:
        self._ends.sender = sender


class MultiConnectionFlow(ThreadedFlow):
    """A flow of several connections with common samples; see `FlowOfJob`."""

    def __init__(self, number: int, job: Mapping[str, Any], hosts: Mapping[str, Host]) -> None:
        super().__init__(number, job, hosts)
        self._tally = ConnectionTotals()
        threading.stack_size(_STACK_BYTES)

    def sample(self) -> bytes:
        """Return the record of the flow."""
        return self._tally.sample()


class ConnectionsFlow(MultiConnectionFlow):
    """A flow with arrivals; see `FlowOfJob`.

    Parameters
    ----------
    traffic
        Applications of the engine.
    """

    def __init__(
        self, number: int, job: Mapping[str, Any], hosts: Mapping[str, Host], traffic: Any
    ) -> None:
        super().__init__(number, job, hosts)
        self._traffic = traffic
        # All connections in order, and the connections that wait for `accept`, by port.
        self._came: list[_Connection] = []
        self._awaited: dict[int, _Connection] = {}

    def events(self, start_ns: int) -> dict[str, Any]:
        """Return the events of every flow, and the logs of the connections' applications."""
        logs = [connection.messages() for connection in self._came]
        return {**super().events(start_ns), "messages": logs}

    def _receive(self) -> None:
        self._hosts[self._job["receiver"]].enter()
        job = self._job
        listener = listening(job["receiver_address"], job["receiver_controller"], BACKLOG)
        self._listens.set()
        while True:
            connection, (_, port) = listener.accept()
            end_abruptly(connection)
            self._thread(functools.partial(self._awaited.pop(port).read, connection))

    def _send(self) -> None:
        self._due_ns = self._start_ns + self._job["start_ns"]
        for number, opens_ns in enumerate(self._job["arrivals_ns"]):
            port = port_of(number)
            ends = Ends()
            own = {"start_ns": opens_ns, "stop_ns": None, "sender_port": port}
            application = self._traffic.application(self.number, number)
            connection = _Connection(
                self.number, {**self._job, **own}, self._hosts, application, ends
            )
            sleep_until(self._start_ns + opens_ns)
            self._came.append(connection)
            self._awaited[port] = connection
            self._tally.add(ends)
            self._thread(functools.partial(self._carry, connection, ends))

    def _carry(self, connection: _Connection, ends: Ends) -> None:
        # A failed connection is not closed: its data may still be in flight.
        if connection.write(self._start_ns):
            self._tally.close(ends)
