"""The server of a measurement: its address, port and protocol."""

from __future__ import annotations

import socket
import threading
from concurrent.futures import Future, wait
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from jostle.errors import InputError
from jostle.measurements.live.time_limits import Limit, connect
from jostle.measurements.live.transfer import Tick

__all__ = ["Target", "target_of"]

_PORTS: Final = {"iperf3": 5201, "http": 80, "https": 443}
_LOOKUP_S: Final = 20.0
"""For the lookup of a name; resolvers repeat a query for about as long."""
_TRY_S: Final = 3.0
"""For an address, if the name has several."""
_TRIED: Final = 8
"""Largest number of addresses to try: the owner of a name may give it thousands."""


@dataclass(frozen=True)
class Target:
    """The server of a measurement.

    Attributes
    ----------
    by
        `iperf3` or `http`.
    host
        Host as the user wrote it, without port and path.
    family, address
        First address of the name, or for a web server the first address that answers. The complete
        measurement uses it.
    port
        Port of the server.
    secure
        Whether HTTP uses TLS.
    path
        Path of the file with its query, for HTTP only.
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
        """Name in texts and files, without the query, which may contain a key."""
        if self.by == "http":
            host = f"[{self.host}]" if ":" in self.host else self.host
            path, mark, _ = self.path.partition("?")
            shown = f"{path}?…" if mark else path
            return f"http{'s' if self.secure else ''}://{host}:{self.port}{shown}"
        return f"{self.host} port {self.port}"


def target_of(given: str, by: str | None, port: int | None, tick: Tick = lambda: None) -> Target:
    """Parse HOST, HOST:PORT or a URL, and look up the name.

    Parameters
    ----------
    given
        Text from the user.
    by
        `iperf3` or `http`; by default, `http` for a URL, else `iperf3`.
    port
        Port, instead of the default port or the port in `given`.
    tick
        Called regularly; if it raises, the lookup ends.

    Raises
    ------
    InputError
        When the text cannot be parsed, or there is no such host.
    """
    scheme, mark, _ = given.partition("://")
    if mark and scheme not in ("http", "https"):
        raise InputError(f"{given}: a name, an address, or a URL of http or https")
    if mark and by == "iperf3":
        raise InputError(
            f"{given} is a URL: leave --with iperf3 out, or give the host's name alone"
        )
    by = by or ("http" if mark else "iperf3")
    # Two colons without a bracket: an IPv6 address.
    plain = f"[{given}]" if not mark and given.count(":") > 1 and "[" not in given else given
    try:
        parts = urlsplit(plain if mark else f"//{plain}")
        host, there = parts.hostname, parts.port
    except ValueError as error:
        raise InputError(f"{given}: {error}") from error
    if not host:
        raise InputError(f"{given}: no host is named")
    if "@" in parts.netloc:
        raise InputError(f"{host}: a user's name and password are not sent: leave them out")
    secure = scheme == "https" and bool(mark)
    number = port or there or _PORTS["https" if secure else by]
    family, address = _resolved(host, number, tick, try_each=by == "http")
    path = f"{parts.path or '/'}{'?' + parts.query if parts.query else ''}"
    return Target(by, host, family, address, number, secure, path)


def _resolved(host: str, port: int, tick: Tick, *, try_each: bool) -> tuple[int, str]:
    try:
        found = _looked_up(host, port, Limit(_LOOKUP_S, tick))
    except (OSError, UnicodeError) as error:
        said = getattr(error, "strerror", None) or error
        raise InputError(f"{host}: no address is found for this name ({said})") from error
    first = found[0]
    # An iperf3 server has one client at a time; a probing connection would occupy it.
    if try_each and len(found) > 1:
        first = next((one for one in found[:_TRIED] if _is_reachable(one, tick)), first)
    return int(first[0]), str(first[4][0])


_Address = tuple[Any, Any, int, str, tuple[Any, ...]]


def _looked_up(host: str, port: int, limit: Limit) -> list[_Address]:
    """Resolve a name in a thread, because the time of a lookup cannot be limited otherwise."""
    found: Future[list[_Address]] = Future()

    def ask() -> None:
        try:
            found.set_result(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except (OSError, UnicodeError) as error:
            found.set_exception(error)

    threading.Thread(target=ask, daemon=True).start()
    while not found.done():
        wait((found,), limit.wait_s())
    return found.result()


def _is_reachable(address: _Address, tick: Tick) -> bool:
    family, _, _, _, end = address
    with socket.socket(family, socket.SOCK_STREAM) as tried:
        try:
            connect(tried, end[0], end[1], Limit(_TRY_S, tick))
        except OSError:
            return False
    return True
