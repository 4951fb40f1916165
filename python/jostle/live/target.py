"""The host that is measured: its address, port, and what is spoken there."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from jostle.errors import InputError

__all__ = ["Target", "target_of"]

_PORTS: Final = {"iperf3": 5201, "http": 80, "https": 443}
_TRY_S: Final = 3.0
"""For an address, if the name has several."""


@dataclass(frozen=True)
class Target:
    """Where a measurement goes to.

    Attributes
    ----------
    by
        `iperf3` or `http`.
    host
        As it was given, without port and path.
    family, address
        What it resolves to first, of a web server the first that answers; all of a measurement
        goes there.
    port
        Of the server.
    secure
        Whether HTTP is spoken over TLS.
    path
        Of the file, with its query; of HTTP alone.
    """

    by: str
    host: str
    family: int
    address: str
    port: int
    secure: bool = False
    path: str = "/"

    @property
    def label(self) -> str:
        """What it is called in texts."""
        if self.by == "http":
            host = f"[{self.host}]" if ":" in self.host else self.host
            return f"http{'s' if self.secure else ''}://{host}:{self.port}{self.path}"
        return f"{self.host} port {self.port}"


def target_of(given: str, by: str | None, port: int | None) -> Target:
    """Read HOST, HOST:PORT or a URL, and look the name up.

    Parameters
    ----------
    given
        What the user wrote.
    by
        `iperf3` or `http`; None for what `given` looks like.
    port
        Instead of the usual one, or of the one in `given`.

    Raises
    ------
    InputError
        When it cannot be read, or there is no such host.
    """
    scheme, mark, _ = given.partition("://")
    if mark and scheme not in ("http", "https"):
        raise InputError(f"{given}: a name, an address, or a URL of http or https")
    if mark and by == "iperf3":
        raise InputError(
            f"{given} is a URL: leave --with iperf3 out, or give the host's name alone"
        )
    by = by or ("http" if mark else "iperf3")
    # What has two colons and no bracket is an address of IPv6.
    plain = f"[{given}]" if not mark and given.count(":") > 1 and "[" not in given else given
    try:
        parts = urlsplit(plain if mark else f"//{plain}")
        host, there = parts.hostname, parts.port
    except ValueError as error:
        raise InputError(f"{given}: {error}") from error
    if not host:
        raise InputError(f"{given}: no host is named")
    secure = scheme == "https" and bool(mark)
    number = port or there or _PORTS["https" if secure else by]
    family, address = _resolved(host, number, try_each=by == "http")
    path = f"{parts.path or '/'}{'?' + parts.query if parts.query else ''}"
    return Target(by, host, family, address, number, secure, path)


def _resolved(host: str, port: int, *, try_each: bool) -> tuple[int, str]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        said = getattr(error, "strerror", None) or error
        raise InputError(f"{host}: no address is found for this name ({said})") from error
    # A server of iperf3 takes one client at a time, and a connection for the first.
    if try_each and len(found) > 1:
        found = sorted(found, key=lambda one: not _answers(str(one[4][0]), port))
    family, _, _, _, end = found[0]
    return int(family), str(end[0])


def _answers(address: str, port: int) -> bool:
    try:
        socket.create_connection((address, port), timeout=_TRY_S).close()
    except OSError:
        return False
    return True
