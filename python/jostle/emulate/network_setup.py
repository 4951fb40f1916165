"""Network devices, addresses and routes on both sides of the emulated links.

The inside is a network namespace with COMMAND, whose traffic crosses the links. The outside is the
host, or a second namespace that contains only a peer's program.
"""

from __future__ import annotations

from contextlib import ExitStack, suppress
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Network
from pathlib import Path
from typing import Final

from jostle.emulate import namespaces
from jostle.emulate.namespaces import Owner
from jostle.emulate.nat import Nat
from jostle.emulate.system_commands import ip, ip_json
from jostle.errors import EmulationError

__all__ = ["EndpointAddresses", "NetworkSetup", "free_subnet"]

# RFC 6598: addresses between a provider and its customers, used in neither's own networks.
_SHARED: Final = IPv4Network("100.64.0.0/10")
_PREFIX_LENGTH: Final = 30
# RFC 4193: a local prefix with a random number.
_LOCAL6: Final = IPv6Network("fd4a:6f73:746c::/48")
_DEVICE: Final = "jostle0"
_NO_IP6: Final = Path("/proc/sys/net/ipv6/conf/default/disable_ipv6")


@dataclass(frozen=True)
class EndpointAddresses:
    """Addresses of both ends.

    Parameters
    ----------
    inside, outside
        IPv4 addresses of the inside and the outside.
    inside6, outside6
        IPv6 addresses; None if the kernel has no IPv6.
    """

    inside: str
    outside: str
    inside6: str | None
    outside6: str | None

    def environment(self, *, from_inside: bool) -> dict[str, str]:
        """Return the environment variables that contain the addresses as seen from one side."""
        pairs = [(self.inside, self.outside), (self.inside6, self.outside6)]
        ordered = [pair if from_inside else pair[::-1] for pair in pairs]
        (own, peer), (own6, peer6) = ordered
        found = {
            "JOSTLE_ADDRESS": own,
            "JOSTLE_PEER": peer,
            "JOSTLE_ADDRESS6": own6,
            "JOSTLE_PEER6": peer6,
        }
        return {name: address for name, address in found.items() if address is not None}


class NetworkSetup:
    """Creates the namespaces, and configures devices after the engine has created them.

    `stack` removes everything, even if the setup was interrupted.

    Parameters
    ----------
    stack
        Receives the clean-up functions.
    isolated
        Whether the outside is a namespace.
    nat
        Whether COMMAND can reach the host's networks.
    """

    def __init__(self, stack: ExitStack, *, isolated: bool, nat: bool) -> None:
        self.label = Owner.present().label()
        self.inside = f"{self.label}-in"
        self.outside = f"{self.label}-out" if isolated else None
        token = self.label.rpartition("-")[2]
        # Device names have at most 15 characters, and share a namespace until they are moved.
        self.devices = (f"jostle-i{token}", f"jostle-o{token}")
        self._stack = stack
        self._nat = nat
        stack.callback(self._delete_outside_device)
        for name in filter(None, (self.inside, self.outside)):
            stack.callback(namespaces.remove, name)
            namespaces.create(name)

    def connect(self) -> EndpointAddresses:
        """Move the devices to their namespaces, set addresses and routes, and activate them."""
        subnet, number = free_subnet(set() if self.outside else _addresses())
        outside, inside = (str(address) for address in subnet.hosts())
        has_ip6 = _has_ip6()
        network6 = _LOCAL6[number << 64]
        outside6, inside6 = (str(network6 + 1), str(network6 + 2)) if has_ip6 else (None, None)
        ends = EndpointAddresses(inside, outside, inside6, outside6)
        device, outer = self.devices
        ip("link", "set", "dev", device, "netns", self.inside, "name", _DEVICE)
        if self.outside is not None:
            ip("link", "set", "dev", outer, "netns", self.outside, "name", _DEVICE)
            outer = _DEVICE
        self._outer = outer
        _configure(_DEVICE, self.inside, (inside, outside), inside6)
        _configure(outer, self.outside, (outside, inside), outside6)
        ip("route", "add", "default", "dev", _DEVICE, namespace=self.inside)
        if has_ip6:
            ip("-6", "route", "add", "default", "dev", _DEVICE, namespace=self.inside)
        if self._nat:
            nat = Nat(self.label, str(subnet))
            self._stack.callback(nat.remove)
            nat.add()
        return ends

    def unseen_drops(self) -> tuple[int, int]:
        """Return packets that the kernel dropped before the links: inside, outside."""
        return _dropped(_DEVICE, self.inside), _dropped(self._outer, self.outside)

    def _delete_outside_device(self) -> None:
        if self.outside is None and Path("/sys/class/net", self.devices[1]).exists():
            # The device may disappear at this moment, when its last user closes it.
            with suppress(EmulationError):
                ip("link", "delete", "dev", self.devices[1])


def free_subnet(taken: set[str]) -> tuple[IPv4Network, int]:
    """Return an unused subnet for two hosts, disjoint from `taken`, and its number.

    Raises
    ------
    EmulationError
        If there is no unused subnet.
    """
    used = {IPv4Address(address) for address in taken}
    for number, subnet in enumerate(_SHARED.subnets(new_prefix=_PREFIX_LENGTH)):
        if number > 0xFFFF:
            break
        if not any(address in subnet for address in used):
            return subnet, number
    raise EmulationError(f"no subnet of {_SHARED} is free")


def _has_ip6() -> bool:
    try:
        return _NO_IP6.read_text().strip() == "0"
    except OSError:
        return False


def _addresses() -> set[str]:
    """Return all IPv4 addresses of the host and of its point-to-point peers."""
    found: set[str] = set()
    for link in ip_json("-4", "address"):
        for info in link.get("addr_info", ()):
            found.update(info[key] for key in ("local", "address") if key in info)
    return found


def _configure(
    device: str,
    namespace: str | None,
    addresses: tuple[str, str],
    own6: str | None,
) -> None:
    # Without multicast and link-local addresses, only programs send packets over the links.
    ip("link", "set", "dev", device, "multicast", "off", namespace=namespace)
    own, peer = addresses
    ip("address", "add", own, "peer", peer, "dev", device, namespace=namespace)
    if own6 is not None:
        ip("link", "set", "dev", device, "addrgenmode", "none", namespace=namespace)
        # Use a subnet, because Linux adds no route to an IPv6 peer of a device that is down.
        ip("address", "add", f"{own6}/64", "dev", device, "nodad", namespace=namespace)
    ip("link", "set", "dev", device, "up", namespace=namespace)


def _dropped(device: str, namespace: str | None) -> int:
    shown = ip_json("-statistics", "link", "show", "dev", device, namespace=namespace)
    return int(shown[0]["stats64"]["tx"]["dropped"])
