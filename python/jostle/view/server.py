"""A small web server over a store: for this machine, this user and this session alone.

It listens on 127.0.0.1. Every address begins with a secret that is made anew each time, since other
users of the machine reach the port too; requests under another host's name are refused, since a
page elsewhere may have its name resolved to this machine (DNS rebinding). It answers GET and writes
nothing.

The secret is a part of the path, and not a cookie: browsers send a cookie of 127.0.0.1 to every
port of this machine, and thus to servers of other users.
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
from jostle.view.library import Library

SCRIPTS = ("uplot.js", "charts.js", "view.js")
_REQUEST_S: Final = 10.0
"""For a whole request, from the connection or the answer before: afterwards it is closed."""
_WAITING: Final = 64
"""Connections without a whole request. Of more, the oldest are closed: others on this machine can
open any number, and browsers repeat what they asked."""


class Viewer:
    """A server over a store, which listens once it is made.

    Parameters
    ----------
    store
        The store's folder.
    port
        Port to listen on; any that is free if 0.

    Raises
    ------
    InputError
        When there is no such store, or the port cannot be had.
    """

    def __init__(self, store: Path, port: int = 0) -> None:
        library = Library(store)
        self._secret = secrets.token_urlsafe(24)
        handler = type("Handler", (_Handler,), {"library": library, "secret": self._secret})
        try:
            self._server = _Server(("127.0.0.1", port), handler)
        except (OSError, OverflowError) as error:
            why = getattr(error, "strerror", None) or error
            raise InputError(f"cannot listen on port {port}: {why}; choose another") from error

    @property
    def url(self) -> str:
        """Address of the page, with the secret in it."""
        return f"http://127.0.0.1:{self._server.server_port}/{self._secret}/"

    def serve(self, check: Callable[[], object] = lambda: None) -> None:
        """Answer until `close` is called, or `check`, called several times a second, raises."""
        self._server.check = check
        self._server.serve_forever(poll_interval=0.1)

    def close(self) -> None:
        """Stop answering."""
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    """Takes connections; knows which of them have not sent a whole request yet."""

    daemon_threads = True
    request_queue_size = _WAITING
    check: Callable[[], object]

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        self._lock = threading.Lock()
        # The oldest comes first.
        self._due_s: dict[socket.socket, float] = {}
        super().__init__(address, handler)

    def server_bind(self) -> None:
        """Bind, and ask no resolver for a name, as HTTPServer does."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]

    def await_request(self, connection: socket.socket) -> None:
        """Give a connection time for a request."""
        with self._lock:
            self._due_s.pop(connection, None)
            self._due_s[connection] = time.monotonic() + _REQUEST_S
            surplus = list(self._due_s)[:-_WAITING]
        self._drop(surplus)

    def await_nothing(self, connection: socket.socket) -> None:
        """Let a connection be: its request is there, or it is closed."""
        with self._lock:
            self._due_s.pop(connection, None)

    def service_actions(self) -> None:
        """Close connections whose time is over; `serve_forever` calls this."""
        now_s = time.monotonic()
        with self._lock:
            overdue = [one for one, due_s in self._due_s.items() if due_s < now_s]
        self._drop(overdue)
        self.check()

    def handle_error(self, *words: Any) -> None:
        """Say nothing of connections that break: anybody on this machine can break them."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(*words)

    def _drop(self, connections: list[socket.socket]) -> None:
        for connection in connections:
            self.await_nothing(connection)
            # Its thread is waiting for it, and closes it.
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    """Answers the requests of a connection, one after another."""

    server: _Server
    library: Library
    secret: str
    server_version = "jostle"
    sys_version = ""
    protocol_version = "HTTP/1.1"
    # For a browser that takes no more of an answer.
    timeout = 60

    def handle_one_request(self) -> None:
        """Wait for a request, and answer it."""
        self.server.await_request(self.connection)
        super().handle_one_request()

    def finish(self) -> None:
        """End the connection."""
        self.server.await_nothing(self.connection)
        super().finish()

    def do_GET(self) -> None:
        """Answer, or say in JSON why not."""
        self.server.await_nothing(self.connection)
        try:
            status, kind, content = self._answer()
        except JostleError as error:
            status, kind = HTTPStatus.BAD_REQUEST, "application/json"
            content = _json({"error": str(error)})
        except Exception as error:
            # Whoever can write a store can put anything into it, with digests that fit.
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
        """Say nothing: the addresses hold the secret."""

    def _answer(self) -> tuple[HTTPStatus, str, bytes]:
        address = urlsplit(self.path)
        _, given, name = ([*address.path.split("/", 2), "", ""])[:3]
        host = self.headers.get("Host", "").rpartition(":")[0]
        if host not in {"127.0.0.1", "localhost"} or not hmac.compare_digest(
            given.encode(), self.secret.encode()
        ):
            return HTTPStatus.FORBIDDEN, "text/plain", b"the address is the one that was printed\n"
        if not name:
            return HTTPStatus.OK, "text/html", _page(self.library.root)
        asked = parse_qs(address.query)
        found = _found(self.library, name, asked)
        if found is None:
            return HTTPStatus.NOT_FOUND, "text/plain", b"there is no such page\n"
        return HTTPStatus.OK, "application/json", _json(found)


def _found(library: Library, name: str, asked: dict[str, list[str]]) -> Any:
    """Look up what was asked for; None if there is no such question."""
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
    text = rendered("jostle.view", "view.html.jinja", scripts=SCRIPTS, store=str(store.resolve()))
    return text.encode()
