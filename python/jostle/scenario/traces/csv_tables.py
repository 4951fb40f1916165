"""CSV tables of samples with or without column names, including published data sets."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import numpy as np

from jostle.scenario.parsing.problems import did_you_mean
from jostle.scenario.parsing.quantities import QuantityError, quoted
from jostle.scenario.traces.recording import (
    UNITS,
    Column,
    Floats,
    Quantity,
    Recording,
    checked,
    spans,
)

__all__ = ["recording"]

_WITHOUT_NAMES: Final = ("time_s", "rate_mbps", "delay_ms", "loss")
"""Columns of a table without a header line."""
_LONGEST_NAME: Final = 255
"""Characters of a column's name, as of other names: tables and messages show it."""
_STARTS: Final = ("time", "t", "timestamp", "timestamp_start", "start", "seconds")
_ENDS: Final = ("timestamp_end", "end", "end_s")

_BY_UNIT: Final[Mapping[str, tuple[Quantity, float]]] = {
    "gbps": ("rate", 1e9),
    "gbit/s": ("rate", 1e9),
    "mbps": ("rate", 1e6),
    "mbit/s": ("rate", 1e6),
    "kbps": ("rate", 1e3),
    "kbit/s": ("rate", 1e3),
    "bps": ("rate", 1.0),
    "bit/s": ("rate", 1.0),
    "bits_per_second": ("rate", 1.0),
    "ms": ("delay", 1e-3),
    "us": ("delay", 1e-6),
    "%": ("loss", 1e-2),
    "percent": ("loss", 1e-2),
}
_UNIT: Final = re.compile(
    rf"(.*?)[ _]*[(\[]?({'|'.join(sorted(map(re.escape, _BY_UNIT), key=len, reverse=True))})[)\]]?"
)
_BY_NAME: Final[Mapping[Quantity, tuple[str, ...]]] = {
    "rate": (
        *("rate", "down", "up", "download", "upload", "downlink", "uplink"),
        *("throughput", "bandwidth", "capacity"),
    ),
    "delay": ("delay", "rtt", "latency", "ping"),
    "loss": ("loss", "loss_rate", "loss_ratio"),
}

_HYPATIA_RTT: Final = re.compile(r"\d+\.\d{10}")
"""RTT in a file `networkx_rtt_A_to_B.txt` of Hypatia (satgenpy, post_analysis)."""

_Meaning = tuple[Quantity, float]
_MS: Final[_Meaning] = ("delay", 1e-3)
_PUBLISHED: Final[tuple[tuple[str, frozenset[str], Mapping[str, _Meaning | None]], ...]] = (
    # Laniewski et al., "Starlink on the Road: A First Look at Mobile Starlink Performance in
    # Central Europe", TMA 2024: rates per second (also in bit/s), and 250 pings in 25 s.
    (
        "Starlink on the Road, rates",
        frozenset({"timestamp_start", "timestamp_end", "download_mbps", "upload_mbps"}),
        {"download": None, "upload": None},
    ),
    (
        "Starlink on the Road, pings",
        frozenset({"timestamp_start", "timestamp_end", "ping_avg", "packet_loss"}),
        {
            "ping_avg": _MS,
            "ping_worst": _MS,
            "ping_best": _MS,
            "packet_loss": ("loss", 1e-2),
        },
    ),
)


@dataclass
class _Table:
    source: str
    names: list[str]
    rows: list[tuple[int, list[str]]]
    """Line number and cells of each row."""

    def numbers(self, at: int) -> Floats | None:
        """Return a column as numbers, NaN for empty cells; None if a cell is not a number."""
        values = np.full(len(self.rows), np.nan)
        for row, (_, cells) in enumerate(self.rows):
            written = cells[at].strip()
            if written:
                try:
                    values[row] = float(written)
                except ValueError:
                    return None
        return values

    def wrong(self, row: int, message: str) -> QuantityError:
        return QuantityError(f'trace "{self.source}", line {self.rows[row][0]}: {message}')


def recording(text: str, source: str, where: Mapping[str, str]) -> Recording:
    """Parse a table of samples.

    Parameters
    ----------
    text, source
        Text of the table, and name of its file.
    where
        Required values by column, as text; other rows are ignored.

    Raises
    ------
    QuantityError
        If the text is not a table of samples; the message names the line.
    """
    table = _table(text, source)
    if _is_hypatia(table) and not where:
        return _hypatia(table)
    known = [found for found in _PUBLISHED if found[1] <= set(table.names)]
    format_name, meanings = (known[0][0], known[0][2]) if known else ("CSV", {})
    start_at = next((i for i, n in enumerate(table.names) if _plain_time(n) in _STARTS), None)
    if start_at is None:
        hint = f"call it one of {', '.join(_STARTS)}"
        raise QuantityError(f'trace "{source}", line 1: no column is a time — {hint}')
    # Values of rows are quoted in messages only after a time column identifies a sample table.
    table = _chosen(table, where)
    start_s, notes = _times(table, start_at), []
    _check_order(table, start_s)
    end_at = next((i for i, n in enumerate(table.names) if n in _ENDS), None)
    if end_at is not None:
        end_s = _times(table, end_at) - start_s[0]
    start_s = start_s - start_s[0]
    if end_at is None:
        end_s, usual_s = spans(start_s)
        if usual_s is not None:
            notes.append(f"a sample lasts until the next one; they are {usual_s:g} s apart")
    elif (bad := np.flatnonzero(end_s < start_s)).size:
        raise table.wrong(int(bad[0]), "it ends before it starts")
    else:
        # If timestamps are whole seconds, a sample can end after the next one starts.
        end_s[:-1] = np.minimum(end_s[:-1], start_s[1:])
    columns, others = _columns(table, {start_at, end_at}, meanings)
    return Recording(source, format_name, start_s, end_s, columns, others, notes=tuple(notes))


def _is_hypatia(table: _Table) -> bool:
    """Whether the table is Hypatia's: times in whole ns, and RTTs in ns with ten decimals."""
    return (
        table.names == list(_WITHOUT_NAMES[:2])
        and table.rows[0][1][0].strip() == "0"
        and all(
            cells[0].strip().isdecimal() and _HYPATIA_RTT.fullmatch(cells[1].strip())
            for _, cells in table.rows
        )
    )


def _hypatia(table: _Table) -> Recording:
    """Parse the RTT between two ground stations, which is 0 while no path connects them."""
    times_ns, rtts_ns = table.numbers(0), table.numbers(1)
    assert times_ns is not None
    assert rtts_ns is not None
    start_s = times_ns * 1e-9
    _check_order(table, start_s)
    end_s, usual_s = spans(start_s)
    unreachable = rtts_ns == 0.0
    rtt = Column("rtt", "delay", np.where(unreachable, np.nan, rtts_ns * 1e-9))
    columns = [checked(rtt, table.source), Column("loss", "loss", unreachable.astype(np.float64))]
    notes = [] if usual_s is None else [f"a sample lasts {usual_s:g} s, until the next one"]
    if unreachable.any():
        notes.append(f"no path in {unreachable.sum()} of {unreachable.size} samples: loss is 1")
    return Recording(table.source, "Hypatia", start_s, end_s, tuple(columns), notes=tuple(notes))


def _plain_time(name: str) -> str:
    return re.sub(r"[ _]*[(\[]?(ms|s)[)\]]?$", "", name) if name not in _STARTS else name


def _table(text: str, source: str) -> _Table:
    first = next((line for line in text.splitlines() if line.strip()), "")
    delimiter = max(",;\t", key=first.count)
    lines = csv.reader(io.StringIO(text), delimiter=delimiter)
    rows: list[tuple[int, list[str]]] = []
    try:
        for cells in lines:
            if any(cell.strip() for cell in cells) and not cells[0].lstrip().startswith("#"):
                rows.append((lines.line_num, cells))
    except csv.Error as error:
        raise QuantityError(f'trace "{source}", line {lines.line_num}: {error}') from None
    if not rows:
        raise QuantityError(f'trace "{source}": empty — it needs at least one sample')
    names = [cell.strip().lower() for cell in rows[0][1]]
    if _is_number(names[0]):
        if not 2 <= len(names) <= len(_WITHOUT_NAMES):
            hint = f"the columns are {', '.join(_WITHOUT_NAMES)}; with others the first line names"
            raise QuantityError(
                f'trace "{source}", line {rows[0][0]}: {len(names)} columns — {hint} them'
            )
        names = list(_WITHOUT_NAMES[: len(names)])
    else:
        longest = max(map(len, names))
        if longest > _LONGEST_NAME:
            message = f"a column's name of {longest} characters — at most {_LONGEST_NAME}"
            raise QuantityError(f'trace "{source}", line {rows[0][0]}: {message}')
        rows = rows[1:]
    if not rows:
        raise QuantityError(f'trace "{source}": names of columns alone — it needs a sample')
    for number, cells in rows:
        if len(cells) != len(names):
            message = f"{len(cells)} cells, and {len(names)} columns"
            raise QuantityError(f'trace "{source}", line {number}: {message}')
    return _Table(source, names, rows)


def _chosen(table: _Table, where: Mapping[str, str]) -> _Table:
    rows = table.rows
    for name, value in where.items():
        if name.lower() not in table.names:
            hint = did_you_mean(name, table.names)
            raise QuantityError(f'trace "{table.source}": there is no column "{name}" — {hint}')
        at = table.names.index(name.lower())
        rows, before = [row for row in rows if row[1][at].strip() == value], rows
        if not rows:
            values = sorted({cells[at].strip() for _, cells in before})[:8]
            shown = ", ".join(f'"{one}"' for one in values)
            message = f'no row has "{value}" in column "{name}" — it has {shown}'
            raise QuantityError(f'trace "{table.source}": {message}')
    return _Table(table.source, table.names, rows)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _times(table: _Table, at: int) -> Floats:
    """Return a column of times in seconds, given as numbers or as ISO 8601 dates."""
    name = table.names[at]
    factor = 1e-3 if re.search(r"[ _(\[]ms[)\]]?$", name) else 1.0
    times = np.empty(len(table.rows))
    for row, (_, cells) in enumerate(table.rows):
        written = cells[at].strip()
        try:
            times[row] = float(written) * factor
        except ValueError:
            try:
                moment = datetime.fromisoformat(written)
            except ValueError:
                hint = 'write seconds, or a date as "2024-01-11 10:06:39"'
                raise table.wrong(row, f"{quoted(written)} is no time — {hint}") from None
            # Only differences matter. Ignore the local zone to avoid jumps at daylight saving.
            times[row] = (moment.replace(tzinfo=None) - datetime(2000, 1, 1)).total_seconds()
            if moment.tzinfo is not None:
                times[row] -= moment.utcoffset().total_seconds()  # type: ignore[union-attr]
        if not np.isfinite(times[row]):
            raise table.wrong(row, f"{quoted(written)} is no time")
    return times


def _check_order(table: _Table, start_s: Floats) -> None:
    back = np.flatnonzero(np.diff(start_s) <= 0)
    if back.size:
        row = int(back[0]) + 1
        message = f"{start_s[row]:g} s is not after {start_s[row - 1]:g} s, the sample before it"
        hint = "choose rows of one measurement by where = { column = … }"
        raise table.wrong(row, f"{message} — sort it, or {hint}")


def _columns(
    table: _Table, times: set[int | None], meanings: Mapping[str, _Meaning | None]
) -> tuple[tuple[Column, ...], dict[str, Floats]]:
    """Return the columns of rates, delays and losses, and the other numeric columns."""
    columns, others = [], {}
    for at, name in enumerate(table.names):
        if at in times:
            continue
        values = table.numbers(at)
        meaning = meanings[name] if name in meanings else _meaning(name)
        if meaning is not None:
            if values is None:
                raise _not_a_number(table, at)
            quantity, factor = meaning
            with np.errstate(over="ignore"):  # Overflow gives inf, which is rejected.
                scaled = values * factor
            columns.append(checked(Column(name, quantity, scaled), table.source))
        elif values is not None:
            others[name] = values
    return tuple(columns), others


def _not_a_number(table: _Table, at: int) -> QuantityError:
    row = next(
        row
        for row, (_, cells) in enumerate(table.rows)
        if cells[at].strip() and not _is_number(cells[at])
    )
    written = quoted(table.rows[row][1][at].strip())
    return table.wrong(row, f'{written} in column "{table.names[at]}" is not a number')


def _meaning(name: str) -> _Meaning | None:
    """Return the quantity of a column name and its factor to SI units."""
    found = _UNIT.fullmatch(name)
    if found is not None:
        return _BY_UNIT[found[2]]
    for quantity, names in _BY_NAME.items():
        if name in names:
            return quantity, UNITS[quantity][1]
    return None
