"""The sampling interval of the time series: as configured, or from base RTTs and duration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from jostle.scenario.models import ScenarioFile
from jostle.scenario.parsing.problems import Report
from jostle.scenario.parsing.quantities import format_amount
from jostle.scenario.resolve.links import LinkFacts

__all__ = ["MOST_ROWS", "automatic_interval", "check_interval", "interval_ns"]

MOST_ROWS: Final = 2_000_000
"""Maximum number of rows of a run's time series. All columns together take up to 930 bytes per row.
The engine, which has other callers too, accepts five times as many rows."""
_MOST_POINTS: Final = 1000
"""Maximum number of intervals. Rounding to 1, 2 or 5 × 10ᵏ leaves at least 400."""
_LEAST_POINTS: Final = 10
_ROWS: Final = 20_000
"""Number of rows above which an interval is longer, up to `_LONGEST_FOR_ROWS_NS`."""
_LONGEST_FOR_ROWS_NS: Final = 10**9
_PACKETS_PER_ROW: Final = 10
"""Packets that the links can carry per row: finer rows would count single packets, and would take
more time than the packets."""
_PACKET_BITS: Final = 8 * 1514


def check_interval(file: ScenarioFile, report: Report) -> None:
    """Report a sampling interval that is longer than the run."""
    if file.sampling_interval != "auto" and file.sampling_interval > file.duration:
        shown = format_amount(file.sampling_interval, "time")
        run = format_amount(file.duration, "time")
        report.add(
            ("sampling_interval",), f"{shown} is longer than the run of {run}", ("duration",)
        )


def interval_ns(
    file: ScenarioFile,
    rtts: Sequence[int],
    flows: Sequence[Mapping[str, Any]],
    links: Sequence[LinkFacts],
) -> int:
    """Return the sampling interval of a run with the given base RTTs, flows and links."""
    if file.sampling_interval != "auto":
        return file.sampling_interval
    peaks = [link.peak_bps for link in links]
    return automatic_interval(file.duration, rtts, flows, peaks)


def automatic_interval(
    duration_ns: int,
    rtts_ns: Sequence[int],
    flows: Sequence[Mapping[str, Any]],
    peaks: Sequence[int],
) -> int:
    """Return the default sampling interval of a run: 1, 2 or 5 × 10ᵏ ns.

    There are at most 1000 intervals, and no interval is shorter than the longest base RTT, than the
    period of pings and datagrams, or than 10 packets per flow and link. Runs with many flows have
    longer intervals. The number of intervals does not fall below 10, except to limit the rows.

    Parameters
    ----------
    duration_ns
        Length of the run.
    rtts_ns
        Base RTTs.
    flows
        Flows of the run specification.
    peaks
        Largest rate of each link in bit/s.
    """
    series = len(flows) + len(peaks)
    wanted = max(
        -(-duration_ns // _MOST_POINTS),
        *rtts_ns,
        *(_period_ns(flow["source"]) for flow in flows),
        min(-(-duration_ns * series // _ROWS), _LONGEST_FOR_ROWS_NS),
        series * _PACKETS_PER_ROW * _packet_ns(flows, peaks),
    )
    interval = _round_up(wanted)
    longest = max(duration_ns // _LEAST_POINTS, 1)
    if interval > longest:
        interval = _round_down(longest)
    if -(-duration_ns // interval) * series > MOST_ROWS:
        interval = _round_up(-(-duration_ns * series // MOST_ROWS))
    return min(interval, duration_ns)


def _period_ns(source: Mapping[str, Any]) -> int:
    """Return the time between two datagrams of a source; 0 for other sources."""
    match source["kind"]:
        case "ping":
            return int(source["every_ns"])
        case "cbr":
            fastest_bps = max(step["rate_bps"] for step in source["steps"])
            return 8 * 10**9 * int(source["bytes"]) // max(int(fastest_bps), 1)
    return 0


def _packet_ns(flows: Sequence[Mapping[str, Any]], peaks: Sequence[int]) -> int:
    """Return the mean time between full-sized packets on the slowest links of all flows."""
    # Tunnels come after the links, and their connections cross the links below.
    paths = ([at for at in flow["path"] if at < len(peaks)] for flow in flows)
    slowest = {min(path, key=lambda at: peaks[at]) for path in paths if path}
    rate_bps: int = sum(peaks[at] for at in slowest)
    return _PACKET_BITS * 10**9 // rate_bps if rate_bps else 0


def _round_down(ns: int) -> int:
    power: int = 10 ** (len(str(ns)) - 1)
    return max(number * power for number in (1, 2, 5) if number * power <= ns)


def _round_up(ns: int) -> int:
    below = _round_down(ns)
    if below == ns:
        return ns
    # 1 → 2 → 5 → 10
    return below * 5 // 2 if str(below)[0] == "2" else below * 2
