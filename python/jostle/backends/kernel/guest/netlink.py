"""Netlink interface to devices, addresses, routes and qdiscs.

In User-Mode Linux, a process that runs `ip` or `tc` takes 30 ms of the machine's time.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
from collections.abc import Iterator

from .failure import GuestFailure

# linux/netlink.h, linux/rtnetlink.h
_NEW_LINK, _NEW_ADDRESS, _NEW_ROUTE, _NEW_QDISC, _GET_QDISC = 16, 20, 24, 36, 38
_REQUEST, _ACKNOWLEDGE, _ECHO, _REPLACE, _EXCLUSIVE, _CREATE = 1, 4, 8, 0x100, 0x200, 0x400
_ERROR = 2
_NESTED = 0x8000
_HEADER = struct.Struct("=IHHII")
_TCA_KIND, _TCA_OPTIONS = 1, 2
_RTA_DST, _RTA_OIF, _RTA_PREFSRC, _RTA_METRICS, _RTAX_INITCWND = 1, 4, 7, 8, 11

# linux/if_link.h, linux/if_addr.h, linux/if.h, linux/veth.h
_IFLA_ADDRESS, _IFLA_IFNAME, _IFLA_MTU, _IFLA_LINKINFO, _IFLA_NET_NS_FD = 1, 3, 4, 18, 28
_IFLA_GSO_MAX_SEGS, _IFLA_INFO_KIND, _IFLA_INFO_DATA, _VETH_INFO_PEER = 40, 1, 2, 1
_IFA_ADDRESS, _IFA_LOCAL = 1, 2
_IFF_UP, _IFF_NOARP = 1, 0x80

ROOT = 0xFFFFFFFF
"""Parent of a device's root qdisc."""

NETEM_PACKETS = 1_000_000
"""Limit of netem, which must hold all packets in transit; its default is 1,000 packets."""
_NETEM_LATENCY64 = 10

# struct tcmsg
_TC = struct.Struct("=BxxxiIII")
TC_BYTES = _HEADER.size + _TC.size

# struct ifinfomsg: index, flags and their mask.
_LINK = struct.Struct("=BxHiII")

# struct ifaddrmsg of one IPv4 address: RT_SCOPE_UNIVERSE.
_ADDRESS = struct.Struct("=BBBBI")

# struct rtmsg of an IPv4 route through a device: RT_TABLE_MAIN, RTPROT_BOOT, RT_SCOPE_LINK,
# RTN_UNICAST.
_ROUTE = struct.Struct("=BBBBBBBBI")


def attribute(number: int, content: bytes) -> bytes:
    """Encode an attribute."""
    length = 4 + len(content)
    return struct.pack("=HH", length, number) + content + bytes(-length % 4)


def _integer(number: int, value: int) -> bytes:
    return attribute(number, struct.pack("=I", value))


def attributes(message: bytes, at: int, end: int) -> Iterator[tuple[int, bytes]]:
    """Decode the attributes between two positions: number and content."""
    while at + 4 <= end:
        length, number = struct.unpack_from("=HH", message, at)
        if length < 4:
            return
        yield number & ~_NESTED, message[at + 4 : at + length]
        at += (length + 3) & ~3


class Netlink:
    """A socket for settings of the network namespace that the thread is in."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
        self._socket.bind((0, 0))

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def ask(self, message: bytes) -> tuple[bytes, int]:
        """Send a message; return the reply and its length.

        Raises
        ------
        OSError
            If the kernel returned an error.
        """
        self._socket.send(message)
        reply = self._socket.recv(1 << 16)
        length, kind = struct.unpack_from("=IH", reply)
        if kind == _ERROR:
            number = -struct.unpack_from("=i", reply, _HEADER.size)[0]
            if number:
                raise OSError(number, os.strerror(number))
        return reply, length

    def add_veth(self, a: str, a_space: int, b: str, b_space: int, mac: bytes) -> None:
        """Create a pair of connected devices.

        Parameters
        ----------
        a, b
            Their names.
        a_space, b_space
            File descriptors of their network namespaces.
        mac
            MAC address of both.

        Raises
        ------
        GuestFailure
            If the kernel rejects or does not know them.
        """

        def end(name: str, space: int) -> bytes:
            link = _LINK.pack(socket.AF_UNSPEC, 0, 0, 0, 0)
            link += attribute(_IFLA_IFNAME, name.encode() + b"\0")
            return link + attribute(_IFLA_ADDRESS, mac) + _integer(_IFLA_NET_NS_FD, space)

        kind = attribute(_IFLA_INFO_KIND, b"veth")
        peer = attribute(_VETH_INFO_PEER, end(b, b_space))
        data = attribute(_IFLA_INFO_DATA | _NESTED, peer)
        body = end(a, a_space) + attribute(_IFLA_LINKINFO | _NESTED, kind + data)
        self._set(_NEW_LINK, _CREATE | _EXCLUSIVE, body, f"the devices {a} and {b} are refused")

    def _set(self, kind: int, flags: int, body: bytes, refused: str) -> None:
        flags |= _REQUEST | _ACKNOWLEDGE
        try:
            self.ask(_HEADER.pack(_HEADER.size + len(body), kind, flags, 0, 0) + body)
        except OSError as error:
            raise GuestFailure(f"{refused}: {error.strerror}") from error


class Device(Netlink):
    """A device in the current network namespace: its settings, qdiscs, and routes through it."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name
        self._index = socket.if_nametoindex(name)

    def query(self, handle: int) -> bytes:
        """Return the request for a qdisc, which can be sent repeatedly."""
        # Without ECHO, only subscribers of all events get the reply.
        return self._message(_GET_QDISC, _REQUEST | _ECHO, handle, 0, b"")

    def enable(self, mtu_bytes: int | None = None, *, single_segment: bool = False) -> None:
        """Enable the device, without ARP.

        Parameters
        ----------
        mtu_bytes
            Default: the present one.
        single_segment
            Whether a packet of a segmentation offload is passed as several.

        Raises
        ------
        GuestFailure
            If the kernel rejects a setting.
        """
        flags = _IFF_UP | _IFF_NOARP
        body = _LINK.pack(socket.AF_UNSPEC, 0, self._index, flags, flags)
        if mtu_bytes is not None:
            body += _integer(_IFLA_MTU, mtu_bytes)
        if single_segment:
            body += _integer(_IFLA_GSO_MAX_SEGS, 1)
        self._set(_NEW_LINK, 0, body, f"the settings of {self._name} are refused")

    def add_address(self, address: str) -> None:
        """Add an IPv4 address.

        Raises
        ------
        GuestFailure
            If the kernel rejects it.
        """
        content = socket.inet_aton(address)
        body = _ADDRESS.pack(socket.AF_INET, 32, 0, 0, self._index)
        body += attribute(_IFA_LOCAL, content) + attribute(_IFA_ADDRESS, content)
        self._set(_NEW_ADDRESS, _CREATE | _EXCLUSIVE, body, f"the address {address} is refused")

    def route(
        self,
        destination: str | None,
        *,
        source: str | None = None,
        initial_window_packets: int | None = None,
    ) -> None:
        """Route packets through the device, instead of an earlier route.

        Parameters
        ----------
        destination
            An IPv4 address, or None for the default route.
        source
            Address of packets that have none.
        initial_window_packets
            Initial window of connections.

        Raises
        ------
        GuestFailure
            If the kernel rejects it.
        """
        bits = 0 if destination is None else 32
        body = _ROUTE.pack(socket.AF_INET, bits, 0, 0, 254, 3, 253, 1, 0)
        if destination is not None:
            body += attribute(_RTA_DST, socket.inet_aton(destination))
        body += _integer(_RTA_OIF, self._index)
        if source is not None:
            body += attribute(_RTA_PREFSRC, socket.inet_aton(source))
        if initial_window_packets is not None:
            window = _integer(_RTAX_INITCWND, initial_window_packets)
            body += attribute(_RTA_METRICS | _NESTED, window)
        refused = f"the route to {destination or 'the default'} is refused"
        self._set(_NEW_ROUTE, _CREATE | _REPLACE, body, refused)

    def delay(self, delay_us: int, *, change: bool = False) -> None:
        """Delay packets by netem, or change the delay.

        Raises
        ------
        GuestFailure
            If the kernel rejects or does not know netem.
        """
        # struct tc_netem_qopt: latency, limit, loss, gap, duplicate, jitter.
        options = struct.pack("=6I", 0, NETEM_PACKETS, 0, 0, 0, 0)
        options += attribute(_NETEM_LATENCY64, struct.pack("=q", delay_us * 1000))
        (self.change if change else self.add)("netem", 1 << 16, ROOT, options)

    def add(self, kind: str, handle: int, parent: int, options: bytes) -> None:
        """Create a qdisc.

        Raises
        ------
        GuestFailure
            If the kernel rejects or does not know it.
        """
        self._set_qdisc(kind, handle, parent, options, _CREATE | _EXCLUSIVE)

    def change(self, kind: str, handle: int, parent: int, options: bytes) -> None:
        """Add options to a qdisc.

        Raises
        ------
        GuestFailure
            If the kernel rejects them.
        """
        self._set_qdisc(kind, handle, parent, options, 0)

    def knows(self, kind: str) -> bool:
        """Return whether the kernel has a qdisc, after its request without options."""
        flags = _REQUEST | _ACKNOWLEDGE | _REPLACE | _CREATE
        body = attribute(_TCA_KIND, kind.encode() + b"\0")
        try:
            self.ask(self._message(_NEW_QDISC, flags, 0, ROOT, body))
        except OSError as error:
            return error.errno != errno.ENOENT
        return True

    def _set_qdisc(self, kind: str, handle: int, parent: int, options: bytes, flags: int) -> None:
        body = attribute(_TCA_KIND, kind.encode() + b"\0")
        body += attribute(_TCA_OPTIONS | _NESTED, options)
        message = self._message(_NEW_QDISC, _REQUEST | _ACKNOWLEDGE | flags, handle, parent, body)
        try:
            self.ask(message)
        except FileNotFoundError:
            raise GuestFailure(f"this kernel lacks the queueing discipline {kind}") from None
        except OSError as error:
            raise GuestFailure(f"the discipline {kind} is refused: {error.strerror}") from error

    def _message(self, kind: int, flags: int, handle: int, parent: int, body: bytes) -> bytes:
        body = _TC.pack(socket.AF_UNSPEC, self._index, handle, parent, 0) + body
        return _HEADER.pack(_HEADER.size + len(body), kind, flags, 0, 0) + body
