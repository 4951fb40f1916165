"""The host that is measured: its address, port, and what is spoken there."""

from __future__ import annotations

import socket
import threading
from concurrent.futures import Future, wait
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from jostle.errors import InputError
from jostle.live.limits import Limit, connect
from jostle.live.transfer import Tick

__all__ = ["Target", "target_of"]

_PORTS: Final = {"iperf3": 5201, "http": 80, "https": 443}
_LOOKUP_S: Final = 20.0
"""For a name: resolvers repeat their question for about as long."""
_TRY_S: Final = 3.0
"""For an address, if the name has several."""
_TRIED: Final = 8
"""Addresses that are tried at most: the owner of a name may give it thousands."""


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
        """Its name in texts and files: without the query, which may contain a key."""
        if self.by == "http":
            host = f"[{self.host}]" if ":" in self.host else self.host
            path, mark, _ = self.path.partition("?")
            shown = f"{path}?…" if mark else path
            return f"http{'s' if self.secure else ''}://{host}:{self.port}{shown}"
        return f"{self.host} port {self.port}"


def target_of(given: str, by: str | None, port: int | None, tick: Tick = lambda: None) -> Target:
    """Read HOST, HOST:PORT or a URL, and look the name up.

    Parameters
    ----------
    given
        What the user wrote.
    by
        `iperf3` or `http`; None for what `given` looks like.
    port
        Instead of the usual one, or of the one in `given`.
    tick
        Called now and then; an exception of it ends the lookup.

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
    # A server of iperf3 takes one client at a time, and a connection for the first.
    if try_each and len(found) > 1:
        first = next((one for one in found[:_TRIED] if _is_reachable(one, tick)), first)
    return int(first[0]), str(first[4][0])


_Address = tuple[Any, Any, int, str, tuple[Any, ...]]


def _looked_up(host: str, port: int, limit: Limit) -> list[_Address]:
    """Ask the resolver in a thread: nothing else limits how long it takes."""
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
