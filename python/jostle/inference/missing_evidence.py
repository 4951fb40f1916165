"""Evidence that a measurement lacks for an identification of its sender, and substitutes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from jostle.results.number_format import percent

if TYPE_CHECKING:
    from jostle.inference.link_rate import LinkRate
    from jostle.stats.descriptive import Floats

__all__ = ["bridged", "lacks_sack", "of_capture", "of_network", "sender_side_s"]

_FEWEST_ROUNDS: Final = 100
"""Round trips below which a flow is short: growth and reductions of cwnd take tens of them."""
_FEWEST_LOSSES: Final = 3
"""Loss events below which the reaction to losses is hardly visible."""
_KNOWN: Final = 0.01
"""Relative error from which the rate is uncertain: candidates differ by as much."""
_WAY: Final = 0.05
"""Share of the base RTT between capture point and sender from which the point is not the sender."""
_SENDER_S: Final = 1e-3
"""Time that a sender needs for an answer."""


def lacks_sack(row: Mapping[str, Any]) -> bool:
    """Return whether SACK blocks are missing in a flow's summary, although packets were lost."""
    fast = row.get("fast_retransmissions") or 0
    return bool(row.get("cut_options")) or (row.get("sack_acks") == 0 and fast > 0)


def sender_side_s(row: Mapping[str, Any]) -> float | None:
    """Return the RTT between capture point and sender; None if the point is at the sender."""
    before_s: float | None = row.get("sender_side_rtt_s")
    handshake_s = row.get("handshake_s")
    if before_s is None or handshake_s is None or before_s < _SENDER_S:
        return None
    return before_s if before_s > _WAY * handshake_s else None


def bridged(
    throughput_bps: Floats, in_flight_bytes: Floats, interval_s: float
) -> tuple[Floats, Floats]:
    """Spread what cumulative ACKs deliver at once over the time since the ACK before.

    Without SACK blocks, packets beyond a gap count as in flight until the gap is filled. Packets
    that arrived meanwhile are taken to have arrived at equal distances.

    Returns
    -------
    Throughput and bytes in flight of each interval, shape (n,).
    """
    delivered = throughput_bps / 8 * interval_s
    total = np.concatenate([[0.0], np.cumsum(delivered)])
    silent = np.concatenate([[False], delivered <= 0.0, [False]])
    edges = np.flatnonzero(np.diff(silent.astype(int)))
    known = np.ones(total.size, dtype=bool)
    for low, high in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        # The interval in which ACKs stop is silent in part; those after it have all of them.
        known[low : high + 1] = False
    known[[0, -1]] = True
    at = np.arange(total.size)
    spread = np.interp(at, at[known], total[known])
    arrived = (spread - total)[1:]
    in_flight: Floats = np.where(in_flight_bytes > 0, in_flight_bytes - arrived, in_flight_bytes)
    throughput: Floats = np.diff(spread) * 8 / interval_s
    return throughput, np.maximum(in_flight, 0.0)


def of_capture(
    row: Mapping[str, Any], least_rtt_s: float | None, length_s: float, *, knows_flight: bool
) -> Iterator[str]:
    """Say what a capture does not contain.

    Parameters
    ----------
    row
        The flow in the summary of the measurement.
    least_rtt_s
        Smallest RTT.
    length_s
        Length of the flow.
    knows_flight
        Whether bytes in flight are known.
    """
    cut = row.get("cut_options") or 0.0
    if cut:
        yield (
            f"TCP options are cut in {percent(cut, 1)} of the segments. Capture with a "
            "snap length of at least 128 bytes."
        )
    if lacks_sack(row):
        yield (
            "SACK blocks are missing. While a loss is repaired, bytes in flight and RTT are "
            "interpolated."
        )
    if row.get("timestamped_share") == 0:
        yield "Time stamps are missing: RTTs are those of packets that were sent once."
    handshake_s = row.get("handshake_s")
    if "handshake_s" in row and handshake_s is None:
        yield "The handshake is missing: MSS and window scale are guessed or unknown."
    if not knows_flight:
        yield (
            "Bytes in flight are unknown: throughput × RTT replaces them. A capture near the "
            "sender has them."
        )
    elif least_rtt_s and (before_s := sender_side_s(row)) is not None:
        part = before_s / (before_s + least_rtt_s)
        yield (
            f"The capture point is not at the sender: {percent(part, 0)} of the base RTT is "
            "before it. It was added to RTTs and bytes in flight, by the handshake."
        )
    base_s = handshake_s or least_rtt_s
    if base_s and length_s < _FEWEST_ROUNDS * base_s:
        yield (
            f"The flow is short: {length_s:.3g} s are {length_s / base_s:.0f} base RTTs. At least "
            f"{_FEWEST_ROUNDS} show how cwnd grows."
        )
    bursts = row.get("loss_bursts")
    if bursts is not None and bursts < _FEWEST_LOSSES:
        yield (
            f"There are {bursts:.0f} loss events. Loss-based controllers hardly differ in fewer "
            f"than {_FEWEST_LOSSES}."
        )


def of_network(rate: LinkRate | None) -> Iterator[str]:
    """Say what the estimate of the network does not know."""
    if rate is None:
        return
    if not rate.is_constant:
        yield (
            f"The rate of the bottleneck is not constant, or other flows share it: {rate}. "
            "--link describes the network."
        )
    elif rate.relative_error > _KNOWN:
        yield (
            f"The rate of the bottleneck is known to ±{percent(rate.relative_error, 1)} only. "
            "Candidates differ by as much; --link gives the rate."
        )
