"""Flows that are many connections: each opens, transfers what it has to, and goes.

When they open and what they transfer stands in the job, as the engine has drawn it. A connection is
a pair of threads as long as it lives. Ports tell those of a flow apart.
"""

from __future__ import annotations

import functools
import socket
import threading
from collections.abc import Iterator, Mapping
from typing import Any

from .clock import sleep_until
from .flow import ThreadedFlow
from .namespaces import Host
from .tally import Ends, Tally, retransmitted_packets
from .traffic import TcpFlow, end_abruptly, listening

BACKLOG = 4096
"""Connections that may wait to be accepted."""

# What a thread of a connection calls is a few functions deep.
_STACK_BYTES = 256 << 10
# Ports of those who connect: the first, and how many are used before they are used again.
_FIRST_PORT, _PORTS = 10_000, 50_000


def port_of(connection: int) -> int:
    """Port from which the flow's connection of a number is opened."""
    return _FIRST_PORT + connection % _PORTS


class _Connection(TcpFlow):
    """One of them."""

    def __init__(
        self, number: int, job: Mapping[str, Any], hosts: Mapping[str, Host], ends: Ends
    ) -> None:
        super().__init__(number, job, hosts)
        self._ends = ends
        # Each message once, and no other after the last.
        self._sizes_bytes: Iterator[int] = iter(job["sizes_bytes"])
        self._has_read = threading.Event()
        # How many packets had been sent again when each message was acknowledged.
        self._repeated: list[int] = []

    def write(self, start_ns: int) -> bool:
        """Be its sender, in a run that began at `start_ns`; return whether all of it has arrived.

        It is there no longer than that.
        """
        self._start_ns = start_ns
        self._send()
        if self.completed_ns is not None:
            self._has_read.wait()
        return self.completed_ns is not None

    def read(self, connection: socket.socket) -> None:
        """Be its receiver."""
        self._receiver = self._ends.receiver = connection
        try:
            self._read(connection)
        except (ConnectionError, TimeoutError):
            return  # The sender's end knows why.
        finally:
            self._has_read.set()

    def wait_acknowledged(self, total_bytes: int) -> None:
        """Wait until the first `total_bytes` are acknowledged."""
        super().wait_acknowledged(total_bytes)
        self._repeated.append(retransmitted_packets(self._sender))

    def transfers(self, start_ns: int) -> list[tuple[int, int, int | None, int]]:
        """List its transfers: when each began, its bytes, how long it took, packets sent again."""
        found = []
        # One that was still opening when the run ended was asked for all the same.
        asked_ns = self._asked_ns or [start_ns + self._job["start_ns"]]
        answers = self._job["source"]["kind"] == "request_response"
        before = 0
        for number, at_ns in enumerate(asked_ns):
            over_ns = self.completed_ns
            if answers:
                over_ns = self._whole_ns[number] if number < len(self._whole_ns) else None
            is_over = number < len(self._repeated)
            repeated = self._repeated[number] if is_over else retransmitted_packets(self._sender)
            took_ns = None if over_ns is None else over_ns - at_ns
            size_bytes = self._job["sizes_bytes"][number]
            found.append((at_ns - start_ns, size_bytes, took_ns, repeated - before))
            before = repeated
        return found

    def _connecting(self, sender: socket.socket) -> None:
        self._ends.sender = sender


class FlowOfMany(ThreadedFlow):
    """A flow of many connections, which are sampled together; see `FlowOfJob`."""

    def __init__(self, number: int, job: Mapping[str, Any], hosts: Mapping[str, Host]) -> None:
        super().__init__(number, job, hosts)
        self._tally = Tally()
        threading.stack_size(_STACK_BYTES)

    def sample(self) -> bytes:
        """One record."""
        return self._tally.sample()


class ConnectionsFlow(FlowOfMany):
    """A flow of connections that come and go; see `FlowOfJob`."""

    def __init__(self, number: int, job: Mapping[str, Any], hosts: Mapping[str, Host]) -> None:
        super().__init__(number, job, hosts)
        # Those that have come, in their order; and those of them that are waited for, by port.
        self._came: list[_Connection] = []
        self._awaited: dict[int, _Connection] = {}

    def events(self, start_ns: int) -> dict[str, Any]:
        """Those of every flow, and its transfers.

        `transfers_ns` is of each the number of its connection, when it was asked for, its bytes,
        how long it took, if it was over, and how many packets were sent again.
        """
        transfers = [
            (number, *one)
            for number, connection in enumerate(self._came)
            for one in connection.transfers(start_ns)
        ]
        return {**super().events(start_ns), "transfers_ns": transfers}

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
        for number, opens in enumerate(self._job["connections"]):
            port = port_of(number)
            ends = Ends()
            job = {**self._job, **opens, "stop_ns": None, "sender_port": port}
            connection = _Connection(self.number, job, self._hosts, ends)
            sleep_until(self._start_ns + job["start_ns"])
            self._came.append(connection)
            self._awaited[port] = connection
            self._tally.add(ends)
            self._thread(functools.partial(self._carry, connection, ends))

    def _carry(self, connection: _Connection, ends: Ends) -> None:
        # One that is broken stays as it is: what it has sent may still be on its way.
        if connection.write(self._start_ns):
            self._tally.close(ends)
