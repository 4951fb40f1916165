"""Transfers with a web server over a dedicated connection."""

from __future__ import annotations

import http.client
import os
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import closing
from importlib import metadata
from typing import Final

from jostle.errors import InputError, JostleError
from jostle.measurements.live.target import Target
from jostle.measurements.live.tcp_info_sampler import Sampler, of_socket
from jostle.measurements.live.time_limits import Limit, LimitedSocket, connect
from jostle.measurements.live.transfer import Step, Tick, TransferResult

__all__ = ["carry_out"]

_CONNECT_S: Final = 5.0
"""For TCP and TLS together. This and two `_ANSWER_S` make the margin of an upload, MARGIN_S."""
_ANSWER_S: Final = 10.0
"""For the complete header of a response, and for the last chunks of an upload."""
_BLOCK: Final = 1 << 16
_UNSENT: Final = 1 << 17
"""Largest number of unsent bytes in the socket, so that an upload ends in time."""
_TCP_NOTSENT_LOWAT: Final = 25
_FEWEST: Final = 2
"""Smallest number of samples of a transfer: counters start at the first sample."""
_LEAST_BYTES: Final = 14_600
"""An initial window (RFC 6928): a smaller transfer does not measure the path."""
_REDIRECTS: Final = range(300, 400)
_REFUSED: Final = 400


def carry_out(target: Target, step: Step, tick: Tick) -> TransferResult:
    """Carry out one transfer.

    Raises
    ------
    InputError
        When there is no server, or it does not support the request.
    JostleError
        When the transfer breaks off.
    """
    with closing(_connected(target, step, tick)) as plain:
        limited = LimitedSocket(plain, Limit(_ANSWER_S, tick))
        connection = http.client.HTTPConnection(target.host, target.port)
        # The socket is already connected; http.client would otherwise open another one.
        connection.sock = limited
        connection.auto_open = 0
        with Sampler(of_socket(plain)) as sampler:
            began = time.monotonic()
            try:
                (_download if step.direction == "down" else _upload)(
                    connection, limited, target, step.seconds, tick
                )
            except (OSError, http.client.HTTPException) as error:
                raise JostleError(f"{target.label}: the transfer broke off: {error!r}") from error
            lasted = time.monotonic() - began
        if step.direction == "up":
            limited.limit = Limit(_ANSWER_S, tick)
            _check_upload_accepted(connection, target)
    samples, notes = sampler.largest(), []
    cut_short = lasted < 0.9 * step.seconds
    if len(samples) < _FEWEST or samples[-1].moved_bytes < _LEAST_BYTES:
        raise InputError(
            f"{target.label}: the server ended the connection after {lasted:.3f} s, too soon to be "
            "measured: give the URL of a large file"
            if cut_short
            else f"{target.label}: next to no data within {lasted:.1f} s, too little to be "
            "measured: give a server that answers at once, or a longer --duration"
        )
    if cut_short:
        notes.append(
            f"{step.name}: the server ended the connection after {lasted:.1f} s of {step.seconds}: "
            "a larger file tells more"
        )
    verb = "GET" if step.direction == "down" else "POST"
    return TransferResult(samples, f"{verb} {target.label}", notes=notes)


def _connected(target: Target, step: Step, tick: Tick) -> socket.socket:
    made = socket.socket(target.family, socket.SOCK_STREAM)
    limit = Limit(_CONNECT_S, tick)
    try:
        if step.direction == "up":
            if step.controller:
                name = step.controller.encode()
                made.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name)
            made.setsockopt(socket.IPPROTO_TCP, _TCP_NOTSENT_LOWAT, _UNSENT)
        connect(made, target.address, target.port, limit)
        if target.secure:
            secure = ssl.create_default_context().wrap_socket(
                made, server_hostname=target.host, do_handshake_on_connect=False
            )
            made = secure
            LimitedSocket(secure, limit).wait(secure.do_handshake)
    except ssl.SSLCertVerificationError as error:
        made.close()
        raise InputError(
            f"{target.label}: its certificate is not trusted here ({error.verify_message}): see to "
            "the name, or give the file of its authority as SSL_CERT_FILE"
        ) from error
    except OSError as error:
        made.close()
        raise InputError(
            f"no web server answers at {target.label} ({error.strerror or error}): see to the URL"
        ) from error
    except BaseException:
        made.close()
        raise
    return made


def _headers() -> dict[str, str]:
    return {
        "User-Agent": f"jostle/{metadata.version('jostle')}",
        "Accept-Encoding": "identity",
        "Cache-Control": "no-cache",
    }


def _download(
    connection: http.client.HTTPConnection,
    limited: LimitedSocket,
    target: Target,
    seconds: float,
    tick: Tick,
) -> None:
    """Request the file repeatedly until the time is over or the server closes the connection."""
    room = bytearray(_BLOCK)
    headers = _headers()
    transfer = Limit(seconds, tick)
    while not transfer.is_over():
        limited.limit = Limit(_ANSWER_S, tick)
        connection.request("GET", target.path, headers=headers)
        answer = _response_header(connection, target)
        _fine(answer, target)
        limited.limit = transfer
        took = 0
        # With the last byte of the last response, http.client also closes the socket.
        try:
            while not answer.isclosed():
                took += answer.readinto(room)
        except TimeoutError:
            return
        if not took:
            raise InputError(f"{target.label} is empty: give the URL of a large file")
        # `length` is the remainder of Content-Length.
        if answer.will_close or answer.length or connection.sock is None:
            return


def _upload(
    connection: http.client.HTTPConnection,
    limited: LimitedSocket,
    target: Target,
    seconds: float,
    tick: Tick,
) -> None:
    """Send chunks until the time is over or the server stops reading."""
    transfer = Limit(seconds, tick)
    limited.limit = Limit(seconds + _ANSWER_S, tick)
    connection.putrequest("POST", target.path, skip_accept_encoding=True)
    for name, value in _headers().items():
        connection.putheader(name, value)
    connection.putheader("Content-Type", "application/octet-stream")
    connection.putheader("Transfer-Encoding", "chunked")
    connection.endheaders()
    try:
        for piece in _chunks(transfer):
            limited.sendall(piece)
    except TimeoutError as error:
        raise JostleError(
            f"{target.label}: the server takes too little: {_BLOCK >> 10} KiB were not sent within "
            f"{_ANSWER_S:g} s after the transfer's time"
        ) from error
    except OSError:
        # The server may explain the failure in its response.
        return


def _chunks(transfer: Limit) -> Iterator[bytes]:
    """Yield chunks (RFC 9112 §7.1) of incompressible data."""
    chunk = b"%x\r\n" % _BLOCK + os.urandom(_BLOCK) + b"\r\n"
    while not transfer.is_over():
        yield chunk
    yield b"0\r\n\r\n"


def _check_upload_accepted(connection: http.client.HTTPConnection, target: Target) -> None:
    """Check that the server accepted the upload."""
    try:
        answer = _response_header(connection, target)
    except (OSError, http.client.HTTPException) as error:
        raise InputError(
            f"{target.label} takes no uploads: it closed the connection ({error!r}). Give a URL "
            "that takes a POST, or --direction down"
        ) from error
    _fine(answer, target)


def _response_header(
    connection: http.client.HTTPConnection, target: Target
) -> http.client.HTTPResponse:
    """Read the header of a response; http.client limits the number and length of its lines."""
    try:
        return connection.getresponse()
    except TimeoutError as error:
        raise JostleError(
            f"{target.label}: the server did not send a whole header within {_ANSWER_S:g} s"
        ) from error


def _fine(answer: http.client.HTTPResponse, target: Target) -> None:
    if answer.status in _REDIRECTS:
        where = answer.getheader("Location") or "another place"
        raise InputError(f"{target.label} is at {where}: give that URL")
    if answer.status >= _REFUSED:
        raise InputError(
            f"{target.label}: the server answers {answer.status} {answer.reason} — give the URL of "
            "a large file, or for --direction up one that takes a POST"
        )
