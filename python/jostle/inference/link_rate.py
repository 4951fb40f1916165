"""Estimate of a bottleneck's rate with its uncertainty, from the bytes that it delivered.

While packets wait at a bottleneck of constant rate, the delivered bytes are a straight line over
time. The slope of that line is the rate. How far the measured bytes lie from the line is the
uncertainty: it includes packet boundaries, thinned ACKs, late packets and missing SACK blocks, and
it becomes smaller the longer the line is. The length of the sampling intervals has no effect.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from jostle.scenario.parsing.quantities import PACKET_BYTES

if TYPE_CHECKING:
    from jostle.stats.descriptive import Floats

Bools = npt.NDArray[np.bool_]

__all__ = ["LinkRate", "covering", "estimate_rate"]

_FEWEST_BINS: Final = 3
"""Minimum number of sampling intervals of a line."""
_FEWEST_PACKETS: Final = 10
"""Minimum number of packets of a line."""
_STRAIGHTER: Final = 0.7
"""A line is replaced by two if they lie that much closer to the bytes."""
_INDEPENDENT: Final = 1.5
"""Multiple of the uncertainty of all lines, if they were independent, that bounds the error…"""
_COMMON: Final = 0.5
"""…as does this share of their mean, because busy periods begin in the same way: with late ACKs."""
_MOST_LINES: Final = 500
"""Number of lines, those with the most bytes, whose slopes are compared."""
_ALIKE: Final = 0.002
"""Relative difference of slopes that count as equal."""
_CONSTANT: Final = 0.5
"""Share of the bytes whose lines agree, from which the rate counts as constant."""
_QUEUED: Final = 0.1
"""Share of the largest queueing delay from which a sampling interval counts as busy…"""
_WAITING: Final = 1.5
"""…and its least queueing delay in packets."""
_STALL: Final = 3.0
"""Time without an RTT sample, in packets, that is no part of a busy period."""
_ENOUGH: Final = 0.1
"""Least share of the time that busy periods last. If they are shorter, all intervals are used, as
for a flow that keeps the queue empty and the link full."""
_EXACT: Final = 0.005
"""Least relative uncertainty: of clocks, and of flows whose bursts leave the link idle now and
then although packets wait on average."""
_MARGIN: Final = 0.01
"""How much less than the link a flow may send that keeps the queue empty: BBR of Linux paces 1 %
below its estimate (`bbr_pacing_margin_percent`)."""
_SHOWN: Final = 0.3
"""Least bytes at the highest rate, as a share of the bytes at the most common rate."""


@dataclass(frozen=True)
class LinkRate:
    """A rate in bit/s.

    Attributes
    ----------
    rate_bps
        Estimate.
    low_bps, high_bps
        Ends of the interval that contains the rate.
    busy_s
        Length of the busy periods that gave the estimate.
    is_constant
        Whether most busy periods have the same rate. If not, the interval covers nine tenths of
        them.
    """

    rate_bps: float
    low_bps: float
    high_bps: float
    busy_s: float
    is_constant: bool = True

    def __str__(self) -> str:
        ends = f"{self.low_bps / 1e6:.4g} to {self.high_bps / 1e6:.4g} Mbit/s"
        return f"{self.rate_bps / 1e6:.4g} Mbit/s ({ends})"

    @property
    def relative_error(self) -> float:
        """Half of the interval ÷ rate."""
        return (self.high_bps - self.low_bps) / 2 / self.rate_bps


def covering(rates: Sequence[LinkRate | None]) -> LinkRate | None:
    """Return the fastest of several estimates, with an interval that contains all of theirs.

    A link is never faster than its rate, but a flow may be slower.
    """
    known = [one for one in rates if one is not None]
    if not known:
        return None
    fastest = max(known, key=lambda one: one.rate_bps)
    low_bps, high_bps = min(one.low_bps for one in known), max(one.high_bps for one in known)
    return replace(fastest, low_bps=low_bps, high_bps=high_bps)


@dataclass(frozen=True)
class _Line:
    """A straight part of the delivered bytes: duration, slope, and range of the residuals."""

    duration_s: float
    slope: float
    spread_bytes: float

    @property
    def bytes(self) -> float:
        return self.slope * self.duration_s

    @property
    def half(self) -> float:
        """Uncertainty of the slope."""
        return self.spread_bytes / self.duration_s


def estimate_rate(
    throughput_bps: Floats,
    queueing_delay_s: Floats,
    has_rtt: Bools,
    interval_s: float,
    burst_packets: float = 0.0,
    *,
    packet_bytes: int = PACKET_BYTES,
) -> LinkRate | None:
    """Estimate the rate of the bottleneck of a flow that filled it alone.

    Parameters
    ----------
    throughput_bps
        Delivered bits per time of each sampling interval, shape (n,).
    queueing_delay_s
        Mean queueing delay of each interval, shape (n,).
    has_rtt
        Whether an interval has an RTT sample, shape (n,).
    interval_s
        Length of an interval.
    burst_packets
        Packets that wait for each other although the link is idle before and after them.
    packet_bytes
        Size of a full packet of the flow.

    Returns
    -------
    LinkRate or None
        None if nothing was delivered in periods that are long enough.
    """
    delivered = throughput_bps / 8 * interval_s
    queued, known = _busy(
        delivered, queueing_delay_s, has_rtt, interval_s, burst_packets,
        packet_bytes=packet_bytes,
    )  # fmt: skip
    # The first and the last interval of a busy period are busy in part.
    for busy, margin in ((queued, 1), (queued, 0), (known, 0)):
        runs = [(low + margin, high - margin) for low, high in _runs(busy)]
        lines = [
            line
            for low, high in runs
            for line in _lines(delivered[low:high], interval_s, packet_bytes)
        ]
        lines = sorted((one for one in lines if one.slope > 0), key=lambda one: -one.bytes)
        if sum(one.duration_s for one in lines) >= _ENOUGH * delivered.size * interval_s:
            rate = _agreed(lines[:_MOST_LINES])
            if busy is known:
                fastest = (1 + _MARGIN) * _fastest(delivered, runs, interval_s, packet_bytes)
                rate = replace(rate, high_bps=max(rate.high_bps, fastest))
            return rate
    return None


def _fastest(
    delivered: Floats, runs: Sequence[tuple[int, int]], interval_s: float, packet_bytes: int
) -> float:
    """Return the highest rate over a second, and at least ten intervals, in bit/s.

    It bounds the rate of a link whose queue is often empty: the flow fills it for a second, rather
    than all the time.
    """
    wide = max(round(1.0 / interval_s), 10)
    most = max((_largest_sum(delivered[low:high], wide) for low, high in runs), default=0.0)
    return 8 * (most + packet_bytes) / (wide * interval_s)


def _largest_sum(delivered: Floats, wide: int) -> float:
    if delivered.size < wide:
        return 0.0
    total = np.concatenate([[0.0], np.cumsum(delivered)])
    return float((total[wide:] - total[:-wide]).max())


def _busy(
    delivered: Floats,
    queueing_delay_s: Floats,
    has_rtt: Bools,
    interval_s: float,
    burst_packets: float,
    *,
    packet_bytes: int,
) -> tuple[Bools, Bools]:
    """Return whether packets waited in each interval, and whether it is no stall.

    If SACK blocks are missing, nothing seems to arrive until a gap is filled. Such a stall, without
    an RTT sample, is no part of a busy period.
    """
    fastest = _fastest(delivered, [(0, delivered.size)], interval_s, packet_bytes)
    packet_s = 8 * packet_bytes / fastest
    highest = float(np.percentile(queueing_delay_s, 95))
    least_s = max(max(_WAITING, burst_packets) * packet_s, _QUEUED * highest)
    queued: Bools = queueing_delay_s >= least_s
    known = np.ones(delivered.size, dtype=bool)
    for low, high in _runs(~has_rtt) if has_rtt.any() else ():
        known[low:high] = (high - low) * interval_s <= _STALL * packet_s
    return queued & known, known


def _runs(busy: Bools) -> Iterator[tuple[int, int]]:
    """Return the runs of busy intervals."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], busy, [False]]).astype(int)))
    yield from zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)


def _lines(delivered: Floats, interval_s: float, packet_bytes: int) -> list[_Line]:
    """Return the lines closest to the delivered bytes: one, or the lines of both halves."""
    if delivered.size < _FEWEST_BINS or delivered.sum() < _FEWEST_PACKETS * packet_bytes:
        return []
    at = np.arange(delivered.size + 1) * interval_s
    total = np.concatenate([[0.0], np.cumsum(delivered)])
    away = at - at.mean()
    slope = float(away @ total / (away @ away))
    residuals = total - slope * at
    whole = _Line(float(at[-1]), slope, max(float(np.ptp(residuals)), float(packet_bytes)))
    half = delivered.size // 2
    halves = (delivered[:half], delivered[half:])
    parts = [line for part in halves for line in _lines(part, interval_s, packet_bytes)]
    if parts and _spread(parts) < _STRAIGHTER * whole.spread_bytes:
        return parts
    return [whole]


def _spread(lines: Sequence[_Line]) -> float:
    """Return the uncertainty in bytes of several lines, whose errors are independent."""
    return float(np.sqrt(sum(one.spread_bytes**2 for one in lines)))


def _agreed(lines: Sequence[_Line]) -> LinkRate:
    """Return the rate on which the lines with the most bytes agree."""
    slopes = np.array([one.slope for one in lines])
    halves = np.array([one.half for one in lines])
    weights = np.array([one.bytes for one in lines])
    apart = np.abs(slopes[:, None] - slopes)
    alike = apart <= halves[:, None] + halves + _ALIKE * slopes[:, None]
    agreeing = alike @ weights
    best = int(np.argmax(agreeing))
    # A link is never faster than its rate, but a flow may be slower most of the time.
    faster = slopes - halves > slopes[best] + halves[best]
    if (common := np.flatnonzero(faster & (agreeing >= _SHOWN * agreeing[best]))).size:
        best = int(common[np.argmax(agreeing[common])])
    near = alike[best]
    busy_s = sum(one.duration_s for one, is_near in zip(lines, near, strict=True) if is_near)
    # The inverse of the variance: a line with a stall in it counts little.
    trust = near / halves**2
    rate = float(trust @ slopes / trust.sum())
    mean_half = float(trust @ halves / trust.sum())
    half = max(_INDEPENDENT / np.sqrt(trust.sum()), _COMMON * mean_half, _EXACT * rate)
    if agreeing[best] >= _CONSTANT * weights.sum():
        return LinkRate(8 * rate, 8 * (rate - half), 8 * (rate + half), busy_s)
    order = np.argsort(slopes)
    share = np.cumsum(weights[order]) / weights.sum()
    low, high = (float(slopes[order[np.searchsorted(share, at)]]) for at in (0.05, 0.95))
    return LinkRate(8 * rate, 8 * min(low, rate - half), 8 * max(high, rate + half), busy_s, False)
