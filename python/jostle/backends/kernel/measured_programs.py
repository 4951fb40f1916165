"""A flow that other people's programs carry, in the words of `crates/record/src/samples.rs`.

What passed is known from its hosts' devices: every packet from the sender to the receiver counts as
one of data, as those that carry nothing but ACKs or a handshake cannot be told from outside. All
else is what the stack says in its qlog; without one it is unknown: NaN, and no zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from jostle.backends.kernel import packets
from jostle.backends.kernel.guest.records import UNKNOWN

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from jostle.backends.kernel.qlogs import Log
    from jostle.run_spec import FlowSpec

    Array = NDArray[np.float64]

_STATES = (
    "srtt_s", "rtt_min_s", "cwnd_bytes", "ssthresh_bytes", "in_flight_bytes", "pacing_rate_bps",
)  # fmt: skip
# States of qlog's `congestion_state_updated`, by the simulator's names.
_MODES = {
    "slow_start": "slow_start", "congestion_avoidance": "avoidance", "recovery": "recovery",
    "recovery_start": "recovery", "application_limited": "application_limited",
}  # fmt: skip
_NO_MODE = "unknown"


def seen_of_program_flow(
    spec: FlowSpec,
    time_ns: NDArray[np.int64],
    seen: NDArray[np.void],
    events: Mapping[str, Any],
    *,
    log: Log | None,
    log_starts_ns: float,
) -> dict[str, Any]:
    """Give what was seen of a flow.

    Parameters
    ----------
    time_ns
        When the samples were taken.
    seen
        What was counted at each.
    log
        What the sender's stack wrote.
    log_starts_ns
        When the log's time 0 was, in ns of the run.
    """
    import numpy as np

    counters = {name: seen[name].astype(float) for name in seen.dtype.names or ()}
    counters["delivered_bytes"][seen["delivered_bytes"] == UNKNOWN] = np.nan
    unknown = np.full(len(seen), np.nan)
    states: dict[str, Array] = dict.fromkeys(_STATES, unknown)
    lost, fresh, modes = unknown, np.zeros(len(seen), bool), [_NO_MODE] * len(seen)
    if log is not None and len(log.time_s):
        at = log.at((time_ns - log_starts_ns) / 1e9)
        told = at >= 0
        states = {name: np.where(told, log.values[name][at], np.nan) for name in _STATES}
        lost = np.where(told, log.lost[at], 0.0)
        fresh = told & (np.diff(at, prepend=-1) > 0)
        modes = [_MODES.get(log.mode[one], _NO_MODE) if one >= 0 else _NO_MODE for one in at]
    start_ns = events.get("due_ns") if spec["after"] is not None else spec["start_ns"]
    return {
        **counters,
        "retransmitted_packets": lost,
        **states,
        "rtt_s": np.where(fresh, states["srtt_s"], np.nan),
        "mode": modes,
        "internals": {},
        "initial_cwnd_bytes": spec["initial_window_packets"] * packets.payload_bytes(spec),
        "start_ns": start_ns,
        "completed_ns": events.get("completed_ns"),
        "responses_ns": [],
    }
