"""Estimate of the cross traffic at the bottleneck of an observed flow.

While packets wait, the link sends at its rate. Bytes that the flow does not receive then belong to
other flows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from jostle.scenario.parsing.quantities import PACKET_BYTES

if TYPE_CHECKING:
    from jostle.stats.descriptive import Floats

__all__ = ["LEAST", "LEAST_UNSURE", "estimate_cross_traffic"]

Step = tuple[float, float]
"""Begin in seconds, and rate in bit/s until the next step."""

_PACKETS: Final = 20
"""Length of a block in packets. Counts of the flow's packets are wrong by one or two."""
_VISIBLE: Final = 0.15
"""Share of the link from which the missing bytes of a block are cross traffic: three packets."""
_WAITING: Final = 1.5
"""Least queueing delay of a busy block, in packets."""
LEAST: Final = 0.04
"""Share of the link's bytes below which there is no cross traffic…"""
LEAST_UNSURE: Final = 0.09
"""…and below which it is not certain if SACK blocks are missing or ACKs are thinned."""


def estimate_cross_traffic(
    throughput_bps: Floats,
    queueing_delay_s: Floats,
    rate_bps: float,
    interval_s: float,
    least: float = LEAST,
    *,
    packet_bytes: int = PACKET_BYTES,
) -> Sequence[Step]:
    """Estimate the rate of cross traffic over time.

    Parameters
    ----------
    throughput_bps
        Delivered bits per time of each sampling interval of the flow, shape (n,).
    queueing_delay_s
        Mean queueing delay of each interval, shape (n,).
    rate_bps
        Rate of the bottleneck.
    interval_s
        Length of an interval.
    least
        Share of the link's bytes below which nothing is estimated.
    packet_bytes
        Size of a full packet of the flow.

    Returns
    -------
    Steps of the rate; empty if the flow was alone. Times are those at which the bytes left the
    queue.

    Examples
    --------
    >>> own = np.array([10e6] * 10 + [6e6] * 5 + [10e6] * 10)
    >>> estimate_cross_traffic(own, np.full(25, 0.01), 10e6, 0.1)
    ((0.0, 0.0), (1.0, 4000000.0), (1.5, 0.0))
    """
    packet_s = packet_bytes * 8 / rate_bps
    size = max(1, int(np.ceil(_PACKETS * packet_s / interval_s)))
    count = throughput_bps.size // size
    blocks = throughput_bps[: count * size].reshape(count, size).mean(axis=1)
    waited_s = queueing_delay_s[: count * size].reshape(count, size).min(axis=1)
    missing = np.where(waited_s >= _WAITING * packet_s, rate_bps - blocks, 0.0)
    missing[missing < _VISIBLE * rate_bps] = 0.0
    if missing.sum() < least * rate_bps * count:
        return ()
    changes = np.flatnonzero(np.diff(missing, prepend=-1.0, append=0.0))
    steps = [(float(at * size * interval_s), float(missing[at])) for at in changes if at < count]
    return (*steps, (count * size * interval_s, 0.0)) if missing[-1] else tuple(steps)
