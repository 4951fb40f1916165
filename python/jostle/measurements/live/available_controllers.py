"""Controllers that this user may set on a socket of this host."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from jostle.errors import InputError

__all__ = ["AVAILABLE", "Controllers", "chosen", "refusal"]

AVAILABLE: Final = "available"
_NET: Final = Path("/proc/sys/net/ipv4")


@dataclass(frozen=True)
class Controllers:
    """Controllers to measure with, and controllers that are not permitted.

    Attributes
    ----------
    used
        Names, in order.
    left_out
        Names of controllers in the kernel, each with a hint how to permit it.
    """

    used: tuple[str, ...]
    left_out: Mapping[str, str]


def chosen(given: str) -> Controllers:
    """Parse a choice: `available`, or a comma-separated list of names.

    Raises
    ------
    InputError
        When a named controller cannot be used; the text contains a hint.
    """
    if given == AVAILABLE:
        names = listed("tcp_available_congestion_control") or (present(),)
        refused = {name: why for name in names if (why := refusal(name))}
        used = tuple(name for name in names if name not in refused)
        if not used:
            raise InputError(f"no controller may be set: {next(iter(refused.values()))}")
        # The host's default controller comes first.
        return Controllers(tuple(sorted(used, key=lambda name: name != present())), refused)
    names = tuple(dict.fromkeys(word.strip() for word in given.split(",") if word.strip()))
    if not names:
        raise InputError("--controllers: empty — names with commas between them, or `available`")
    for name in names:
        if why := refusal(name):
            raise InputError(f"--controllers: {why}")
    return Controllers(names, {})


def refusal(name: str) -> str | None:
    """Return why a controller cannot be set on a socket of this host; None if it can."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as tried:
        try:
            tried.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())
        except (OSError, UnicodeError) as error:
            number = error.errno if isinstance(error, OSError) else errno.ENOENT
            return _said(name, number or 0)
    return None


def _said(name: str, number: int) -> str:
    if number == errno.EPERM:
        allowed = " ".join((*listed("tcp_allowed_congestion_control"), name))
        how = f'sudo sysctl net.ipv4.tcp_allowed_congestion_control="{allowed}"'
        return f"`{name}` is for root alone on this host. To allow it: {how}"
    if number == errno.ENOENT:
        there = ", ".join(listed("tcp_available_congestion_control")) or "none that it lists"
        module = f"sudo modprobe tcp_{name}" if name.isidentifier() else "a name of Linux"
        return (
            f"the kernel has no controller `{name}` (there is {there}). If it is a module: {module}"
        )
    return f"the kernel refuses `{name}`: {os.strerror(number)}"


def listed(name: str) -> Sequence[str]:
    """Return the names that a file of /proc/sys lists; empty if it cannot be read."""
    try:
        return tuple((_NET / name).read_text("ascii").split())
    except (OSError, UnicodeError):
        return ()


def present() -> str:
    """Return the host's default controller."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as made:
        name: bytes = made.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
        return name.rstrip(b"\0").decode("ascii", "replace")
