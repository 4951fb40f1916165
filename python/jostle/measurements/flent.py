"""Data files of flent (`.flent.gz`, format versions 2 to 4), as samples.

A file is an object in JSON, packed by gzip: `version`; `metadata`, of which `T0` is the time that
all others count from; `x_values`, in seconds since T0, and `results`, a list for each series, as
long; `raw_values`, for each series what its program said: `t` in seconds since 1970, `val`, `dur`,
and from `ss` `tcp_cwnd` (packets), `tcp_rtt` (ms) and `tcp_pacing_rate` (Mbit/s). Series are rates
in Mbit/s, or round trips in ms.

Older versions differ in raw values, which version 4 converts before it stores them, and version 2
has local times. They are converted as `ResultSet.unserialise_compat` and `parse_date` of flent do.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from jostle.measurements.log_samples import (
    FULL_BYTES,
    HEADER_BYTES,
    MOST_ROWS,
    NS,
    Log,
    Ping,
    check,
    check_size,
    empty_samples,
    flow_samples,
    flow_spec,
    ping_flow,
    spec,
)
from jostle.measurements.unknown_values import Unknown
from jostle.scenario.traces.ping_output import SequenceNumbers

VERSION: Final = 4
"""Version of the format that is written."""
_OLDEST: Final = 2
"""Oldest version of the format that is read."""
_UTC: Final = 3
"""First version whose times are in UTC."""

_MS: Final = 1e-3
_PAYLOAD: Final = 56
"""Bytes of a ping, of which the file does not tell: ping's own default."""
_ZONE_S: Final = 900
"""Offsets of time zones from UTC are multiples of a quarter of an hour…"""
_FARTHEST_ZONE_S: Final = 14 * 3600
"""…and at most 14 hours."""


def of_flent(document: Mapping[str, Any]) -> Log:
    """Take rates and round trips; sums, means and what is counted in other units are left out."""
    version = document["version"]
    if version not in range(_OLDEST, VERSION + 1):
        raise ValueError(
            f"version {version} of flent's format: versions {_OLDEST} to {VERSION} are read"
        )
    metadata, raw = document["metadata"], document["raw_values"]
    notes = ["flent files do not contain retransmissions"]
    grid = _grid(document["x_values"])
    time = metadata.get("T0") or metadata["TIME"]
    from_s = _local_time(time, raw) if version < _UTC else _time(time)
    if version < VERSION:
        raw, more = _converted(raw)
        notes += more
    flows, told = [], []
    for name in sorted(document["results"]):
        about = (metadata.get("SERIES_META") or {}).get(name) or {}
        values = sorted(raw.get(name) or [], key=lambda value: float(value["t"]))
        unit = about.get("UNITS") or {"TCP": "Mbits/s", "Pin": "ms"}.get(name[:3])
        if not values or unit not in {"Mbits/s", "ms"}:
            continue
        make = _rate if unit == "Mbits/s" else _pings
        if found := make(str(name)[:255], values, grid, from_s, about):
            flows.append(found[0])
            told.append(found[1])
        check_size(len(grid), len(flows))
    if not flows:
        raise ValueError("it has neither rates in Mbit/s nor round trips in ms, with raw values")
    unknown: dict[str, list[Unknown]] = {
        one["name"]: ["retransmissions"] for one in flows if one["transport"] == "tcp"
    }
    return Log(spec(grid, flows), grid, told, tuple(notes), unknown)


def _converted(raw: Mapping[str, Any]) -> tuple[dict[str, list[dict[str, Any]]], list[str]]:
    """Convert raw values of versions 2 and 3 to version 4, and name the series of means."""
    converted: dict[str, list[dict[str, Any]]] = {}
    means = []
    for name, series in raw.items():
        values = converted[name] = [dict(value) for value in series]
        if "UDP" in name and any("dur" in value for value in values):
            # Netperf's UDP_RR counts transactions per second; none within `dur` gives no RTT.
            for value in values:
                rate = float(value.get("val") or 0.0) if "dur" in value else None
                if rate is not None:
                    value["val"] = 1e3 / rate if rate else None
            means.append(name)
        elif name == "HTTP latency":
            for value in values:
                if value.get("val") is not None:
                    value["val"] = float(value["val"]) / _MS
    said = "each RTT is a mean over an interval, of netperf's UDP_RR"
    return converted, [f"{', '.join(means)}: {said}"] if means else []


def _grid(x_values: Sequence[float]) -> list[int]:
    times = [round(float(x) * NS) for x in x_values]
    if len(times) > MOST_ROWS:
        raise ValueError(f"{len(times)} times: at most {MOST_ROWS} are read")
    grid = [0, *(at for at in times if at > 0)]
    if len(grid) < 2:
        raise ValueError("no time passes in it")
    check(grid)
    return grid


def _time(text: str) -> float:
    """Seconds since 1970 of a time as flent writes it, in UTC."""
    if not text.endswith("Z"):
        raise ValueError(f"{text} is no time in UTC, which ends in Z")
    return datetime.fromisoformat(text).timestamp()


def _local_time(text: str, raw: Mapping[str, Any]) -> float:
    """Seconds since 1970 of a local time, whose offset from UTC the first raw value shows.

    Flent tries whole hours; quarters of an hour include the time zones between them.
    """
    if text.endswith("Z"):
        return _time(text)
    local_s = datetime.fromisoformat(f"{text}Z").timestamp()
    first_s = min((float(v["t"]) for values in raw.values() for v in values if "t" in v), default=0)
    offset_s = round((first_s - local_s) / _ZONE_S) * _ZONE_S
    if abs(offset_s) > _FARTHEST_ZONE_S:
        raise ValueError(f"{text} is no time of its raw values in any time zone")
    return local_s + offset_s


def _rate(
    name: str,
    values: Sequence[Mapping[str, Any]],
    grid: Sequence[int],
    from_s: float,
    about: Mapping[str, Any],
) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """Take a flow's rates: each of its last `dur`, or of the time since the one before."""
    import numpy as np

    mss = int(about.get("TCP_MSS") or FULL_BYTES)
    if not 0 < mss < 65_536:
        raise ValueError(f"a segment of {mss} bytes")
    ends, so_far = [], []
    total, last_s = 0.0, None
    for value in values:
        if value.get("val") is None:
            continue
        at_s, mbps = float(value["t"]) - from_s, float(value["val"])
        lasted_s = float(value.get("dur") or (0.0 if last_s is None else at_s - last_s))
        if not (mbps >= 0 and lasted_s >= 0 and math.isfinite(mbps * lasted_s)):
            raise ValueError(f"{name}: {mbps} Mbit/s for {lasted_s} s")
        began_s = at_s - lasted_s if last_s is None else max(at_s - lasted_s, last_s)
        ends += [began_s, at_s]
        so_far += [total, total + mbps * 1e6 / 8 * lasted_s]
        total, last_s = so_far[-1], at_s
    if not ends:
        return None
    payload = np.interp(np.array(grid) / NS, ends, so_far)
    packets = np.ceil(payload / mss)
    wire = payload + packets * HEADER_BYTES
    counters = {
        "sent_bytes": wire, "received_bytes": wire, "delivered_bytes": payload,
        "sent_packets": packets, "retransmitted_packets": np.zeros(len(grid)),
    }  # fmt: skip
    states = empty_samples(len(grid))
    for column, key, unit in (
        ("cwnd_bytes", "tcp_cwnd", mss), ("rtt_s", "tcp_rtt", _MS), ("srtt_s", "tcp_rtt", _MS),
        ("pacing_rate_bps", "tcp_pacing_rate", 1e6),
    ):  # fmt: skip
        states[column] = _latest(values, key, unit, grid, from_s)
    described = flow_spec(name, "tcp", {"kind": "bulk"}, mss)
    described["controller"]["name"] = str(about.get("CONG_CONTROL") or "unknown")[:255]
    told = flow_samples(counters, states, len(grid))
    start_ns = min(max(round(ends[0] * NS), 0), grid[-1])
    described["start_ns"] = told["start_ns"] = start_ns
    return described, told


def _latest(
    values: Sequence[Mapping[str, Any]], key: str, unit: float, grid: Sequence[int], from_s: float
) -> list[float]:
    """Give what was said last by each time of the grid since the one before it."""
    said = [(round((float(v["t"]) - from_s) * NS), float(v[key])) for v in values if key in v]
    times = [at for at, _ in said]
    found = []
    for before, now in zip([-1, *grid[:-1]], grid, strict=True):
        last = bisect_right(times, now) - 1
        known = last >= 0 and times[last] > before
        value = said[last][1] * unit if known else math.nan
        if not (math.isnan(value) or 0 <= value < 1e15):
            raise ValueError(f"{key} of {value / unit}")
        found.append(value)
    return found


def _pings(
    name: str,
    values: Sequence[Mapping[str, Any]],
    grid: Sequence[int],
    from_s: float,
    about: Mapping[str, Any],
) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """Take round trips; those that are missing between two numbers (`seq`), or `lost`, are lost."""
    known: dict[int, tuple[float, float | None]] = {}
    numbers = SequenceNumbers()
    for at, value in enumerate(values):
        lost = bool(value.get("lost"))
        if not lost and value.get("val") is None:
            continue
        rtt_s = None if lost else float(value["val"]) * _MS
        if rtt_s is not None and not 0 <= rtt_s < 3600:
            raise ValueError(f"{name}: a round trip of {rtt_s} s")
        sent_s = float(value["t"]) - from_s - (rtt_s or 0.0)
        known.setdefault(numbers.unwrap(int(value.get("seq", at))), (sent_s, rtt_s))
    if not known:
        return None
    first, last = min(known), max(known)
    if last - first >= 10 * len(known) + 1_000:
        raise ValueError(f"{name}: of {last - first + 1} pings {len(known)} are known")
    every_s = (known[last][0] - known[first][0]) / max(last - first, 1) or 1.0
    pings: list[Ping] = []
    latest = 0
    for number in range(first, last + 1):
        sent_s, rtt_s = known.get(number, (known[first][0] + (number - first) * every_s, None))
        latest = max(round(sent_s * NS), latest)
        if latest < grid[-1]:
            pings.append(Ping(len(pings), latest, None if rtt_s is None else round(rtt_s * NS)))
    payload = int(about.get("DATA_SIZE") or _PAYLOAD)
    return ping_flow(name, pings, grid, payload, max(round(every_s * NS), 1_000))
