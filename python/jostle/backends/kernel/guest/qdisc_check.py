"""Checks that the kernel has all queueing disciplines, before the network is built."""

from __future__ import annotations

import errno
import re
import socket
import struct
from collections.abc import Mapping, Sequence
from typing import Any

from .failure import GuestFailure
from .namespaces import Host
from .netlink import ROOT

# linux/netlink.h, linux/rtnetlink.h
_RTM_NEWQDISC = 36
_REQUEST, _ACKNOWLEDGE, _REPLACE, _CREATE = 1, 4, 0x100, 0x400
_TCA_KIND = 1
_LOOPBACK = 1

# FIFOs are part of the traffic control core.
_BUILT_IN = {"pfifo", "bfifo"}


def check(hosts: Sequence[Mapping[str, Any]]) -> None:
    """Check that the kernel has every queueing discipline that the hosts of a job use.

    A request loads its module, if there is one.

    Raises
    ------
    GuestFailure
        If disciplines are missing. The message names all of them.
    """
    lines = (line for host in hosts for line in host["tc"])
    kinds = {kind for line in lines for kind in re.findall(r"^qdisc .* handle \w+: (\w+)", line)}
    with Host("probe").entered():
        lacking = [kind for kind in sorted(kinds - _BUILT_IN) if not _is_there(kind)]
    if lacking:
        modules = ", ".join(f"sch_{kind}" for kind in lacking)
        plural = "s" if len(lacking) > 1 else ""
        raise GuestFailure(
            f"this kernel lacks the queueing discipline{plural} {', '.join(lacking)} "
            f"(module{plural} {modules}), which the scenario's delays and queues need: "
            "use a kernel that has them, such as --backend kernel"
        )


def _is_there(kind: str) -> bool:
    """Request a discipline on the loopback device, without its options."""
    name = kind.encode() + b"\0"
    attribute = struct.pack("=HH", 4 + len(name), _TCA_KIND) + name + bytes(-len(name) % 4)
    # struct tcmsg
    body = struct.pack("=BxxxiIII", socket.AF_UNSPEC, _LOOPBACK, 0, ROOT, 0) + attribute
    flags = _REQUEST | _ACKNOWLEDGE | _CREATE | _REPLACE
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as netlink:
        netlink.bind((0, 0))
        netlink.send(struct.pack("=IHHII", 16 + len(body), _RTM_NEWQDISC, flags, 0, 0) + body)
        (number,) = struct.unpack_from("=i", netlink.recv(1 << 16), 16)
    return bool(-number != errno.ENOENT)
