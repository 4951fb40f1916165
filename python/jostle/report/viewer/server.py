"""A web server for a store, restricted to this machine, this user and this session.

It listens on 127.0.0.1. Every URL begins with a secret that is generated at start, because other
users of the machine can connect to the port. Requests with another Host header are rejected,
because a foreign page may resolve its name to this machine (DNS rebinding). The server answers GET
and writes nothing.

The secret is part of the path and not a cookie, because browsers send a cookie of 127.0.0.1 to
every port of this machine, and thus to servers of other users.
"""

from __future__ import annotations

import functools
import hmac
import json
import secrets
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socketserver import TCPServer
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from jostle.errors import InputError, JostleError
from jostle.report import assets
from jostle.report.page import rendered
from jostle.report.viewer.store_queries import StoreQueries

SCRIPTS = ("uplot.js", "charts.js", "view.js")
_REQUEST_S: Final = 10.0
"""For a complete request since the connection or the last response; then it is closed."""
_WAITING: Final = 64
"""Largest number of connections without a complete request. The oldest ones are closed, because
other users of this machine can open any number, and browsers repeat failed requests."""


class StoreServer:
    """A server for a store, which listens once it is created.

    Parameters
    ----------
    store
        The store's folder.
    port
        Port to listen on; any free port if 0.

    Raises
    ------
    InputError
        When there is no such store, or the port is not available.
    """

    def __init__(self, store: Path, port: int = 0) -> None:
        library = StoreQueries(store)
        self._secret = secrets.token_urlsafe(24)
        handler = type("Handler", (_Handler,), {"library": library, "secret": self._secret})
        try:
            self._server = _Server(("127.0.0.1", port), handler)
        except (OSError, OverflowError) as error:
            why = getattr(error, "strerror", None) or error
            raise InputError(f"cannot listen on port {port}: {why}; choose another") from error

    @property
    def url(self) -> str:
        """Address of the page, including the secret."""
        return f"http://127.0.0.1:{self._server.server_port}/{self._secret}/"

    def serve(self, check: Callable[[], object] = lambda: None) -> None:
        """Serve until `close` is called, or until `check`, which is called regularly, raises."""
        self._server.check = check
        self._server.serve_forever(poll_interval=0.1)

    def close(self) -> None:
        """Stop the server."""
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    """Accepts connections, and tracks those without a complete request."""

    daemon_threads = True
    request_queue_size = _WAITING
    check: Callable[[], object]

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        self._lock = threading.Lock()
        # The oldest connection is first.
        self._due_s: dict[socket.socket, float] = {}
        super().__init__(address, handler)

    def server_bind(self) -> None:
        """Bind without a reverse lookup of the host name, unlike HTTPServer."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]

    def await_request(self, connection: socket.socket) -> None:
        """Start the time limit of a connection's request."""
        with self._lock:
            self._due_s.pop(connection, None)
            self._due_s[connection] = time.monotonic() + _REQUEST_S
            surplus = list(self._due_s)[:-_WAITING]
        self._drop(surplus)

    def await_nothing(self, connection: socket.socket) -> None:
        """End the time limit of a connection: its request is complete, or it is closed."""
        with self._lock:
            self._due_s.pop(connection, None)

    def service_actions(self) -> None:
        """Close connections that exceed the time limit; called by `serve_forever`."""
        now_s = time.monotonic()
        with self._lock:
            overdue = [one for one, due_s in self._due_s.items() if due_s < now_s]
        self._drop(overdue)
        self.check()

    def handle_error(self, *words: Any) -> None:
        """Ignore broken connections, because any user of this machine can break them."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(*words)

    def _drop(self, connections: list[socket.socket]) -> None:
        for connection in connections:
            self.await_nothing(connection)
            # The connection's thread waits for it, and closes it.
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    """Handles the requests of a connection, one after another."""

    server: _Server
    library: StoreQueries
    secret: str
    server_version = "jostle"
    sys_version = ""
    protocol_version = "HTTP/1.1"
    # Time limit for a browser that stops reading a response.
    timeout = 60

    def handle_one_request(self) -> None:
        """Wait for a request, and handle it."""
        self.server.await_request(self.connection)
        super().handle_one_request()

    def finish(self) -> None:
        """End the connection."""
        self.server.await_nothing(self.connection)
        super().finish()

    def do_GET(self) -> None:
        """Send the response, or an error as JSON."""
        self.server.await_nothing(self.connection)
        try:
            status, kind, content = self._response()
        except JostleError as error:
            status, kind = HTTPStatus.BAD_REQUEST, "application/json"
            content = _json({"error": str(error)})
        except Exception as error:
            # A user who can write the store can create any content with valid digests.
            status, kind = HTTPStatus.INTERNAL_SERVER_ERROR, "application/json"
            told = f"what is stored cannot be shown ({type(error).__name__})"
            content = _json({"error": told})
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("Content-Security-Policy", assets.policy(SCRIPTS, connect="'self'"))
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Log nothing: request paths contain the secret."""

    def _response(self) -> tuple[HTTPStatus, str, bytes]:
        address = urlsplit(self.path)
        _, given, name = ([*address.path.split("/", 2), "", ""])[:3]
        host = self.headers.get("Host", "").rpartition(":")[0]
        if host not in {"127.0.0.1", "localhost"} or not hmac.compare_digest(
            given.encode(), self.secret.encode()
        ):
            return HTTPStatus.FORBIDDEN, "text/plain", b"the address is the one that was printed\n"
        if not name:
            return HTTPStatus.OK, "text/html", _page(self.library.root)
        asked = parse_qs(address.query, keep_blank_values=True)
        found = _query(self.library, name, asked)
        if found is None:
            return HTTPStatus.NOT_FOUND, "text/plain", b"there is no such page\n"
        return HTTPStatus.OK, "application/json", _json(found)


def _query(library: StoreQueries, name: str, asked: dict[str, list[str]]) -> Any:
    """Return the result of a request; None for an unknown name."""
    answer: Callable[[], Any]
    try:
        match name:
            case "plans":
                answer = library.plans
            case "table":
                (plan,), (phase,), (measure,) = asked["plan"], asked["phase"], asked["measure"]
                answer = functools.partial(library.table, plan, phase, measure)
            case "runs":
                (plan,), (condition,) = asked["plan"], asked["condition"]
                answer = functools.partial(library.runs, plan, int(condition))
            case "charts":
                answer = functools.partial(library.charts, asked["of"])
            case _:
                return None
    except (KeyError, ValueError) as error:
        raise InputError(f"{name}: a part of the question is missing or wrong") from error
    return answer()


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, allow_nan=False).encode()


def _page(store: Path) -> bytes:
    text = rendered(
        "jostle.report.viewer", "view.html.jinja", scripts=SCRIPTS, store=str(store.resolve())
    )
    return text.encode()
