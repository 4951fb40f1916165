"""Hosts of the guest's network: devices, addresses, routes and queues of a network namespace."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from jostle.backends.kernel import packet_sizes


@dataclass(frozen=True)
class Route:
    """An IPv4 route through a device.

    Attributes
    ----------
    destination
        An address, or None for the default route.
    source
        Address of packets that have none.
    initial_window_packets
        Initial window of connections, if the route sets it.
    """

    destination: str | None
    device: str
    source: str | None = None
    initial_window_packets: int | None = None


@dataclass
class Host:
    """A network namespace.

    Attributes
    ----------
    mtu_bytes
        MTU of each of its devices.
    sysctls
        Settings.
    addresses
        IPv4 addresses, of the loopback device.
    routes
        Routes in order; the first to a destination is used.
    single_segment
        Devices that pass a packet of a segmentation offload as several.
    merging
        Devices with GRO.
    disciplines
        jostle's qdiscs, created before the `tc` commands: device, kind, handle, parent, and the
        file with the options.
    delays_us
        Delays of devices, by netem.
    tc
        Commands of `tc`.
    """

    name: str
    mtu_bytes: int = packet_sizes.MTU_BYTES
    sysctls: dict[str, str] = field(default_factory=dict)
    addresses: list[str] = field(default_factory=list)
    routes: list[Route] = field(default_factory=list)
    single_segment: list[str] = field(default_factory=list)
    merging: list[str] = field(default_factory=list)
    disciplines: list[dict[str, Any]] = field(default_factory=list)
    delays_us: dict[str, int] = field(default_factory=dict)
    tc: list[str] = field(default_factory=list)

    def route(self, destination: str | None, device: str) -> None:
        """Add a route, unless it was added already."""
        route = Route(destination, device)
        if route not in self.routes:
            self.routes.append(route)
