"""Flows that send data over the connection of another flow, in the opposite direction."""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from typing import Any

from .flow import Flow
from .namespaces import Host
from .tcp_flow import TcpFlow


class OppositeFlow(TcpFlow):
    """A flow whose sender is the socket that another flow's receiver accepted; see `TcpFlow`."""

    def __init__(
        self,
        number: int,
        job: Mapping[str, Any],
        hosts: Mapping[str, Host],
        application: Any,
        reader: Any,
    ) -> None:
        super().__init__(number, job, hosts, application, reader)
        self._opened_by: TcpFlow | None = None

    def listen(self) -> None:
        """Do nothing, because the other flow opens the connection."""

    def start(self, start_ns: int, flows: Sequence[Flow]) -> None:
        """Start both ends, which wait for the connection."""
        opened_by = flows[self._job["connection_of"]]
        assert isinstance(opened_by, TcpFlow), "only TCP connections are shared"
        self._opened_by = opened_by
        super().start(start_ns, flows)
        self._thread(self._receive)

    def _receive(self) -> None:
        assert self._opened_by is not None
        self._hosts[self._job["receiver"]].enter()
        self._receiver = self._opened_by.connected()
        try:
            self._read(self._receiver)
        except (ConnectionError, TimeoutError):
            return  # The sender's end knows why.

    def _sender_socket(self) -> socket.socket:
        assert self._opened_by is not None
        return self._opened_by.accepted()

    def _connect(self, sender: socket.socket) -> None:
        """Do nothing, because the connection is open."""
