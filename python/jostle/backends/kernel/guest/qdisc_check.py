"""Checks that the kernel has all queueing disciplines, before the network is built."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from .failure import GuestFailure
from .namespaces import Host
from .netlink import Device

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
    if any(host["delays_us"] for host in hosts):
        kinds.add("netem")
    with Host("probe").entered():
        loopback = Device("lo")
    lacking = [kind for kind in sorted(kinds - _BUILT_IN) if not loopback.knows(kind)]
    loopback.close()
    if lacking:
        modules = ", ".join(f"sch_{kind}" for kind in lacking)
        plural = "s" if len(lacking) > 1 else ""
        raise GuestFailure(
            f"this kernel lacks the queueing discipline{plural} {', '.join(lacking)} "
            f"(module{plural} {modules}), which the scenario's delays and queues need: "
            "use a kernel that has them, such as --backend kernel"
        )
