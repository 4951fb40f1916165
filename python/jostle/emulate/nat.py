"""Network address translation on the host, so that COMMAND can reach the host's networks."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Final

from jostle.emulate.namespaces import Owner
from jostle.emulate.system_commands import available, run
from jostle.errors import EmulationError

__all__ = ["Nat", "clean_stale", "require"]

_FORWARDING: Final = Path("/proc/sys/net/ipv4/ip_forward")


def require() -> None:
    """Check that translation is possible.

    Raises
    ------
    EmulationError
        If the host does not forward packets, or no program for translation is installed. The
        administrator can change both.
    """
    if available("nft") is None and available("iptables") is None:
        raise EmulationError("--nat needs `nft` or `iptables`. On Debian: apt-get install nftables")
    if _FORWARDING.read_text().strip() != "1":
        raise EmulationError(
            "--nat needs a host that forwards packets: sysctl -w net.ipv4.ip_forward=1"
        )


class Nat:
    """Address translation for one subnet.

    Parameters
    ----------
    label
        Name of the added rules, by which they can be found again.
    subnet
        Addresses that are translated to the host's.
    """

    def __init__(self, label: str, subnet: str) -> None:
        self.label = label
        self.subnet = subnet

    def add(self) -> None:
        """Add the rules."""
        if available("nft") is not None:
            rule = f"ip saddr {self.subnet} ip daddr != {self.subnet} masquerade"
            chain = f"type nat hook postrouting priority srcnat; {rule};"
            # nft 1.0.6 requires a separator between two closing braces on one line.
            run("nft", "-f", "-", text=f"table ip {self.label} {{ chain out {{ {chain} }}; }}\n")
        else:
            run("iptables", *_WAIT, "-t", "nat", "-A", "POSTROUTING", *self._rule())

    def remove(self) -> None:
        """Remove the rules that exist."""
        with suppress(EmulationError):
            if available("nft") is not None:
                run("nft", "delete", "table", "ip", self.label)
            else:
                run("iptables", *_WAIT, "-t", "nat", "-D", "POSTROUTING", *self._rule())

    def _rule(self) -> tuple[str, ...]:
        comment = ("-m", "comment", "--comment", self.label)
        return ("-s", self.subnet, "!", "-d", self.subnet, *comment, "-j", "MASQUERADE")


def clean_stale() -> None:
    """Remove the rules of killed emulations."""
    # Without `nft`, no table was added; without the right to list tables, none can be removed.
    with suppress(EmulationError):
        if available("nft") is not None:
            listed = json.loads(run("nft", "-j", "list", "tables"))["nftables"]
            for table in (entry["table"] for entry in listed if "table" in entry):
                if _is_stale(table["name"]):
                    run("nft", "delete", "table", table["family"], table["name"])
        elif available("iptables") is not None:
            for line in run("iptables", *_WAIT, "-t", "nat", "-S", "POSTROUTING").splitlines():
                words = line.replace('"', "").split()
                if any(_is_stale(word) for word in words):
                    run("iptables", *_WAIT, "-t", "nat", "-D", *words[1:])


def _is_stale(name: str) -> bool:
    owner = Owner.of(name)
    return owner is not None and not owner.alive


_WAIT: Final = ("-w", "5")
