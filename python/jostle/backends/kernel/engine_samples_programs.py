"""Samples of flows over external QUIC, in the format of `crates/metrics/src/kernel_samples.rs`.

Packets are counted by the hosts' devices. All packets from the sender to the receiver count as
data, because ACK-only and handshake packets cannot be distinguished from outside. Other values come
from the sender's qlog; without a qlog they are unknown (NaN, not zero).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from jostle.backends.kernel import packet_sizes
from jostle.backends.kernel.guest.sample_format import UNKNOWN

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from jostle.backends.kernel.qlog_reader import Log
    from jostle.run_spec import FlowSpec

    Array = NDArray[np.float64]

_STATES = (
    "srtt_s", "rtt_min_s", "cwnd_bytes", "ssthresh_bytes", "in_flight_bytes", "pacing_rate_bps",
)  # fmt: skip
# State in qlog's `congestion_state_updated` → the simulator's name.
_MODES = {
    "slow_start": "slow_start", "congestion_avoidance": "avoidance", "recovery": "recovery",
    "recovery_start": "recovery", "application_limited": "application_limited",
}  # fmt: skip
_NO_MODE = "unknown"


def program_samples(
    spec: FlowSpec,
    time_ns: NDArray[np.int64],
    seen: NDArray[np.void],
    events: Mapping[str, Any],
    *,
    log: Log | None,
    log_starts_ns: float,
) -> dict[str, Any]:
    """Return the samples of a flow.

    Parameters
    ----------
    time_ns
        Times of the samples.
    seen
        Counters at each sample.
    log
        qlog of the sender.
    log_starts_ns
        Time 0 of the log, in ns of the run.
    """
    import numpy as np

    counters = {name: seen[name].astype(float) for name in seen.dtype.names or ()}
    counters["delivered_bytes"][seen["delivered_bytes"] == UNKNOWN] = np.nan
    unknown = np.full(len(seen), np.nan)
    states: dict[str, Array] = dict.fromkeys(_STATES, unknown)
    lost, fresh, modes = unknown, np.zeros(len(seen), bool), [_NO_MODE] * len(seen)
    if log is not None and len(log.time_s):
        at = log.at((time_ns - log_starts_ns) / 1e9)
        has_event = at >= 0
        states = {name: np.where(has_event, log.values[name][at], np.nan) for name in _STATES}
        lost = np.where(has_event, log.lost[at], 0.0)
        fresh = has_event & (np.diff(at, prepend=-1) > 0)
        modes = [_MODES.get(log.mode[event], _NO_MODE) if event >= 0 else _NO_MODE for event in at]
    start_ns = events.get("due_ns") if spec["after"] is not None else spec["start_ns"]
    return {
        **counters,
        "retransmitted_packets": lost,
        **states,
        "rtt_s": np.where(fresh, states["srtt_s"], np.nan),
        "mode": modes,
        "internals": {},
        "initial_cwnd_bytes": spec["initial_window_packets"] * packet_sizes.payload_bytes(spec),
        "start_ns": start_ns,
        "completed_ns": events.get("completed_ns"),
    }
