"""Tables of an application's writes: times and bytes."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Final

from jostle.run_spec import WriteSpec
from jostle.safe_io.untrusted_files import TRACE_BYTES, read_text
from jostle.scenario.parsing.quantities import LARGEST, QuantityError, quoted

__all__ = ["read_writes"]

_MOST: Final = 1_000_000
_FORM: Final = '"0.02,160": seconds since the start of the flow, and bytes'


def read_writes(path: Path) -> list[WriteSpec]:
    """Read a table of writes: a line `seconds,bytes` for each, in order of time.

    Empty lines, lines that begin with `#`, and a first line of column names are skipped.

    Raises
    ------
    QuantityError
        If the file cannot be read, or a line is invalid; the message names the line.
    """
    try:
        text = read_text(path, TRACE_BYTES)
    except OSError as error:
        reason = error.strerror or "it cannot be read"
        raise QuantityError(f'"{path}": {reason[0].lower()}{reason[1:]}') from None
    except ValueError:
        raise QuantityError(f'"{path}": not a text file') from None
    writes: list[WriteSpec] = []
    named = False
    for number, line in enumerate(text.splitlines(), start=1):
        written = line.strip()
        if not written or written.startswith("#"):
            continue
        if not writes and not named and written.replace(" ", "").lower() in _NAMES:
            named = True
            continue
        at = f'"{path}", line {number}'
        write = _write(written, at)
        if writes and write["at_ns"] < writes[-1]["at_ns"]:
            raise QuantityError(f"{at}: its time is earlier than the time of the previous line")
        writes.append(write)
        if len(writes) > _MOST:
            raise QuantityError(f"{at}: more than {_MOST} writes")
    if not writes:
        raise QuantityError(f'"{path}": empty — a line is {_FORM}')
    return writes


_NAMES: Final = {"time,bytes", "time_s,bytes", "seconds,bytes"}


def _write(written: str, at: str) -> WriteSpec:
    fields = [field.strip() for field in written.split(",")]
    if len(fields) != 2 or not written.isascii() or "_" in written:
        raise QuantityError(f"{at}: {quoted(written)} — a line is {_FORM}")
    try:
        seconds = Decimal(fields[0])
        at_ns = int(seconds * 10**9)
    except (InvalidOperation, OverflowError, ValueError):
        raise QuantityError(f"{at}: {quoted(fields[0])} is no number of seconds") from None
    if seconds.is_signed() or at_ns > LARGEST:
        raise QuantityError(f"{at}: {quoted(fields[0])} s is no time of a run")
    if not fields[1].isdigit() or not 0 < len(fields[1]) <= 16 or int(fields[1]) == 0:
        message = f"{at}: {quoted(fields[1])} is not a whole number of bytes, 1 at least"
        raise QuantityError(message)
    return {"at_ns": at_ns, "bytes": int(fields[1])}
