"""Tests of protocol stacks that are Python objects, on networks in virtual time.

An endpoint has the methods of aioquic's ``QuicConnection``: it needs no sockets and no event loop.
A minute of network time takes as long as the endpoints compute, and a seed determines all random
events of the network.

>>> from jostle.testkit import Link, Simulation
>>> class Counter:
...     "Sends a datagram of 1,000 bytes every 10 ms for a second, or counts them."
...     def __init__(self, to=None):
...         self.to, self.sent, self.received = to, 0, 0
...     def receive_datagram(self, data, addr, now):
...         self.received += 1
...     def datagrams_to_send(self, now):
...         if self.get_timer() is None or now < self.get_timer():
...             return []
...         self.sent += 1
...         return [(bytes(1000), self.to)]
...     def get_timer(self):
...         return self.sent * 0.01 if self.to and self.sent < 100 else None
...     def handle_timer(self, now):
...         pass
>>> simulation = Simulation(Link(rate_bps=10e6, delay_s=0.02, loss=0.1), seed=1)
>>> client = simulation.add("left", "10.0.0.1:1000", Counter(("10.0.1.1", 443)))
>>> server = simulation.add("right", "10.0.1.1:443", Counter())
>>> simulation.run_to(2)
>>> server.endpoint.received == 100 - simulation.measures()["forward"]["dropped_packets"]
True
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeVar

from jostle.errors import InputError, unknown

if TYPE_CHECKING:
    from jostle.scenario import Scenario

__all__ = ["Endpoint", "Host", "Link", "Simulation"]

_NS = 1_000_000_000
_MTU_BYTES = 1500


class Endpoint(Protocol):
    """A protocol stack above UDP. Times are in s from the start of the simulation.

    An endpoint may also have a method ``sender_state()`` for :meth:`Simulation.qlog`, which returns
    a dictionary with some of the keys ``srtt_s``, ``rtt_min_s``, ``cwnd_bytes``,
    ``ssthresh_bytes``, ``in_flight_bytes`` and ``pacing_rate_bps``.
    """

    def receive_datagram(self, data: bytes, addr: Any, now: float) -> None:
        """Handle a datagram from an address: IP address and port."""

    def datagrams_to_send(self, now: float) -> Iterable[tuple[bytes, Any]]:
        """Return the datagrams to send now, with the addresses of their receivers.

        It is called again until it returns none.
        """

    def get_timer(self) -> float | None:
        """Return the time of the next timer."""

    def handle_timer(self, now: float) -> None:
        """Handle the timers that expire now."""


_T = TypeVar("_T")
_E = TypeVar("_E", bound=Endpoint)


@dataclass(frozen=True)
class Link:
    """One direction of a link: a drop-tail queue, then a rate, then a delay, then losses.

    Attributes
    ----------
    rate_bps, delay_s
        Rate in bit/s, and one-way delay in s.
    queue_packets
        Packets that wait at most. By default, one BDP, at least 10.
    loss
        Probability with which a packet is lost.
    jitter_s
        Largest additional delay of a packet in s, uniformly distributed; packets keep their order.
    lost_packets
        Numbers of packets that are lost, counted from 1.
    """

    rate_bps: float
    delay_s: float
    queue_packets: int | None = None
    loss: float = 0.0
    jitter_s: float = 0.0
    lost_packets: Sequence[int] = ()

    def _spec(self, name: str) -> dict[str, Any]:
        from jostle import _core

        try:
            spec = _core.testkit_link(
                round(self.rate_bps), round(self.delay_s * _NS), self.queue_packets, self.loss,
                round(self.jitter_s * _NS), list(self.lost_packets),
            )  # fmt: skip
        except (TypeError, ValueError, OverflowError) as error:
            raise InputError(f"{self}: {error}") from error
        return {**json.loads(spec), "name": name}


@dataclass(frozen=True)
class Host(Generic[_E]):
    """An endpoint in a simulation, and the number of its host."""

    endpoint: _E
    number: int


class Simulation:
    """Endpoints, the network between them, and virtual time.

    Parameters
    ----------
    network
        A link that is in both directions, or a pair of lists: the links from the left to the right
        side, in the order in which packets cross them, and those from the right to the left side.
    seed
        Seed of all random events of the network.
    mtu_bytes
        Largest IP packet. Larger packets are dropped.

    Raises
    ------
    InputError
        If the network is invalid.
    """

    def __init__(
        self,
        network: Link | tuple[Sequence[Link], Sequence[Link]],
        *,
        seed: int,
        mtu_bytes: int = _MTU_BYTES,
    ) -> None:
        from jostle import _core

        links = ([network], [network]) if isinstance(network, Link) else network
        document = {
            direction: [link._spec(f"{direction}{i}") for i, link in enumerate(each)]
            for direction, each in zip(("forward", "reverse"), links, strict=True)
        }
        text = json.dumps(document | {"mtu_bytes": mtu_bytes})
        self._kit = _of_core(lambda: _core.TestKit(text, seed))
        self._hosts: list[Host[Any]] = []

    @classmethod
    def of_flow(cls, scenario: Scenario, flow: str, *, seed: int | None = None) -> Simulation:
        """Create a simulation with the network of a flow of a scenario, from :func:`jostle.load`.

        Senders of the flow's data are on the left side. The scenario's first condition is used, and
        its seed unless there is another one.

        Raises
        ------
        InputError
            If there is no such flow, or its network cannot be used.
        """
        from jostle import _core

        run = scenario.plan().runs[0].spec
        names = [each["name"] for each in run["flows"]]
        if flow not in names:
            raise InputError(unknown("flow", flow, names))
        made = cls.__new__(cls)
        chosen = run["seed"] if seed is None else seed
        made._kit = _of_core(lambda: _core.TestKit.of_flow(json.dumps(run), flow, chosen))
        made._hosts = []
        return made

    def add(self, side: Literal["left", "right"], address: str, endpoint: _E) -> Host[_E]:
        """Add an endpoint with an IP address and a port, such as ``10.0.0.1:443``."""
        if side not in {"left", "right"}:
            raise InputError(unknown("side", side, ["left", "right"]))
        number = _of_core(lambda: self._kit.add(side == "left", address, endpoint))
        host = Host(endpoint, number)
        self._hosts.append(host)
        return host

    @property
    def now(self) -> float:
        """Time in s."""
        return self._kit.now

    def run_until(self, is_met: Callable[[], bool], limit_s: float) -> float:
        """Run until a condition is met, and return that time.

        The condition is checked at the start and after all events of each time. It must not use
        this object.

        Raises
        ------
        TimeoutError
            If the condition is not met by `limit_s`, or can no longer be met.
        """
        self._wake()
        return self._kit.run_until(limit_s, is_met)

    def run_to(self, time_s: float) -> None:
        """Run to a time.

        Raises
        ------
        TimeoutError
            If an endpoint is in an endless loop.
        """
        self._wake()
        self._kit.run_until(time_s)

    def _wake(self) -> None:
        # The test may have changed each of them.
        for host in self._hosts:
            self._kit.wake(host.number)

    def measures(self) -> dict[str, Any]:
        """Return throughput, delays, drops and marks of both directions and their links."""
        measures: dict[str, Any] = json.loads(self._kit.measures())
        return measures

    def sent_packets(self, host: Host[Any]) -> int:
        """Return how many packets a host has sent."""
        return self._kit.counts(host.number)[0]

    def received_packets(self, host: Host[Any]) -> int:
        """Return how many packets a host has received."""
        return self._kit.counts(host.number)[1]

    def capture(self, host: Host[Any], path: str | os.PathLike[str]) -> None:
        """Write the packets of a host to a pcapng file from now on."""
        self._kit.capture(host.number, os.fspath(path))

    def add_secrets(self, host: Host[Any], lines: str) -> None:
        """Add TLS secrets, lines in the format of ``SSLKEYLOGFILE``, to the capture of a host."""
        self._kit.add_secrets(host.number, lines)

    def qlog(self, host: Host[Any], path: str | os.PathLike[str], title: str = "") -> None:
        """Write a qlog of the QUIC packets of a host and of its `sender_state` from now on."""
        self._kit.qlog(host.number, os.fspath(path), title)

    def finish_files(self) -> None:
        """End all captures and logs, and write their files."""
        self._kit.finish_files()


def _of_core(call: Callable[[], _T]) -> _T:
    """Call the engine, which refuses wrong input."""
    try:
        return call()
    except (ValueError, OverflowError) as error:
        raise InputError(str(error)) from error
