"""Rewards of monitor intervals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from jostle import _core

__all__ = ["INTERVAL", "Intervals", "Reward", "aurora_reward", "orca_reward"]

INTERVAL: Final = np.dtype([(name, np.float64) for name in _core.learning_features()[1]])
"""Values of an interval; names end with the unit."""

Intervals = npt.NDArray[Any]
"""Intervals as a structured array of `INTERVAL`: `intervals["rtt_mean_s"]`."""

Reward = Callable[[Intervals], npt.NDArray[np.float64]]
"""Function that returns the reward of each interval."""

_ORCA_LOSS_WEIGHT: Final = 5.0
_ORCA_DELAY_MARGIN: Final = 1.25


def _ratio(
    over: npt.NDArray[np.float64], under: npt.NDArray[np.float64], rest: float
) -> npt.NDArray[np.float64]:
    """Divide, and return `rest` where the divisor is not positive."""
    return np.divide(over, under, out=np.full_like(over, rest), where=under > 0)


def aurora_reward(intervals: Intervals) -> npt.NDArray[np.float64]:
    """Return Aurora's reward: 10 × throughput − 1000 × latency − 2000 × loss, in thousandths.

    Throughput is in packets per second, latency is the mean RTT in seconds, loss is a ratio
    (equation 3 of the paper; `Network.run_for_dur` of the release, with its scale). The weights are
    meant for the paper's 100 to 500 packets per second.
    """
    packets = _ratio(intervals["acked_packets"], intervals["duration_s"], 0.0)
    known = intervals["lost_packets"] + intervals["acked_packets"]
    loss = _ratio(intervals["lost_packets"], known, 0.0)
    return np.asarray(1e-3 * (10 * packets - 1e3 * intervals["rtt_mean_s"] - 2e3 * loss))


def orca_reward(intervals: Intervals) -> npt.NDArray[np.float64]:
    """Return Orca's reward: (throughput − 5 × loss) / highest throughput, times a delay metric.

    Loss is a rate. The delay metric is 1 while the smoothed RTT is at most 1.25 times the minimum
    RTT, else 1.25 × minimum RTT / smoothed RTT (`TCP_Env_Wrapper.get_state` of the release).
    """
    bits = intervals["lost_packets"] * intervals["packet_bytes"] * 8
    lost_bps = _ratio(bits, intervals["duration_s"], 0.0)
    gain = intervals["delivery_bps"] - _ORCA_LOSS_WEIGHT * lost_bps
    margin = _ORCA_DELAY_MARGIN * intervals["least_rtt_s"]
    metric = np.minimum(_ratio(margin, intervals["srtt_s"], 1.0), 1.0)
    return np.asarray(_ratio(gain, intervals["most_delivery_bps"], 0.0) * metric)
