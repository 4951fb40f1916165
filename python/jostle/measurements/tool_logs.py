"""Samples from logs of other tools, for the engine.

Values that a log does not contain are absent.
"""

from __future__ import annotations

import gzip
import os
import zlib
from pathlib import Path
from typing import Any, Final

from jostle.errors import InputError
from jostle.measurements.flent import of_flent
from jostle.measurements.iperf3 import of_iperf3
from jostle.measurements.log_samples import Log
from jostle.measurements.ping import of_irtt, of_ping
from jostle.measurements.qlog import of_qlog
from jostle.measurements.ss import is_ss, of_ss
from jostle.safe_io.untrusted_files import (
    TRACE_BYTES,
    malformed,
    open_regular,
    parse_json,
    read_bytes,
)

_QLOG: Final = (".qlog", ".sqlog")
_SUFFIXES: Final = (".json", ".txt", ".log", ".flent", *_QLOG)
_MB: Final = 10**6
_GZIP: Final = b"\x1f\x8b"
_MOST_UNPACKED: Final = 60
"""Decompressed bytes per byte of a compressed qlog; logs of QUIC implementations have about 20."""
_WRONG: Final = (LookupError, TypeError, AttributeError, ValueError, ArithmeticError)
"""Exceptions that a malformed document may raise."""


def is_log(path: Path) -> bool:
    """Return whether a file is a log, by its name; captures are recognised by content."""
    return path.name.removesuffix(".gz").endswith(_SUFFIXES)


def read(path: Path) -> Log:
    """Read a log, plain or compressed with gzip.

    Raises
    ------
    InputError
        When its kind is not known, or it contains nothing to measure.
    """
    if path.name.removesuffix(".gz").endswith(_QLOG):
        return _qlog(path)
    try:
        text = _content(path).decode("utf-8", "replace")
    except (OSError, ValueError, zlib.error) as error:
        raise InputError(f"{path}: {error}") from error
    if text.lstrip().startswith("{"):
        try:
            document = parse_json(text)
        except ValueError as error:
            raise InputError(f"{path}: no JSON: {error}") from error
        return _of_document(path, document)
    make, words = (of_ss, "ss -tin") if is_ss(text) else (of_ping, "ping")
    try:
        found = make(text)
    except (ValueError, ArithmeticError) as error:
        raise InputError(f"{path}: not what {words} prints ({error})") from error
    if found is None:
        raise InputError(f"{path}: neither JSON of iperf3, irtt or flent nor the lines of ping")
    return found


def _qlog(path: Path) -> Log:
    """Read a qlog line by line, because it has one line per packet."""
    try:
        with open_regular(path) as packed:
            if not packed.peek(2).startswith(_GZIP):
                return of_qlog(packed, path)
            size = os.fstat(packed.fileno()).st_size
            with gzip.open(packed) as file:
                return of_qlog(file, path, max(_MOST_UNPACKED * size, TRACE_BYTES))
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path}: {error}") from error
    except (ValueError, ArithmeticError) as error:
        message = str(error)
        where = path.parent / message if message.startswith(path.name) else f"{path}: {message}"
        raise InputError(str(where)) from error


def _of_document(path: Path, document: dict[str, Any]) -> Log:
    """Convert a document of the tool that its keys identify."""
    made_of, words = of_iperf3, "iperf3 --json writes"
    if "round_trips" in document:
        made_of, words = of_irtt, "irtt client -o writes"
    elif "x_values" in document:
        made_of, words = of_flent, "flent writes"
    try:
        return made_of(document)
    except _WRONG as error:
        raise InputError(f"{path}: not what {words} ({malformed(error)})") from error


def _content(path: Path) -> bytes:
    content = read_bytes(path, TRACE_BYTES)
    if not content.startswith(_GZIP):
        return content
    # 16 selects gzip's header. A small file may expand to gigabytes of zeros.
    unpacking = zlib.decompressobj(16 + zlib.MAX_WBITS)
    plain = unpacking.decompress(content, TRACE_BYTES)
    if unpacking.unconsumed_tail:
        raise ValueError(f"larger than {TRACE_BYTES // _MB} MB, the most that is read here")
    if not unpacking.eof:
        raise ValueError("it ends in the middle of what gzip packed")
    return plain
