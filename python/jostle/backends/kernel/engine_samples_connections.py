"""Samples of multi-connection flows, in the format of `crates/metrics/src/kernel_samples.rs`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from jostle.backends.kernel import packet_sizes
from jostle.backends.kernel.guest.sample_format import UNKNOWN

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from jostle.run_spec import FlowSpec


def connection_samples(
    spec: FlowSpec, time_ns: NDArray[np.int64], seen: NDArray[np.void], events: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the samples of a flow, summed over its connections; a sum has no cwnd.

    Parameters
    ----------
    time_ns
        Times of the samples.
    seen
        Content of the samples; see `CONNECTIONS` of `guest/sample_format.py`.
    events
        Logs of its connections or its browser.
    """
    import numpy as np

    sent = seen["sent_packets"].astype(float)
    sent_bytes = seen["sent_bytes"].astype(float)
    received = seen["received_packets"].astype(float)
    # As for one connection, received packets are assumed as large as sent ones
    # (`engine_samples.py`).
    received_bytes = received * (packet_sizes.HEADER_BYTES + sent_bytes / np.maximum(sent, 1))
    acks = seen["acks"].astype(float)
    rtt_s = np.where(acks > 0, seen["rtts_us"] / np.maximum(acks, 1) / 1e6, np.nan)
    min_rtt_us = seen["min_rtt_us"]
    unknown = np.full(len(time_ns), np.nan)
    return {
        "sent_bytes": sent_bytes + packet_sizes.HEADER_BYTES * sent,
        "received_bytes": np.maximum.accumulate(received_bytes),
        "delivered_bytes": seen["delivered_bytes"].astype(float),
        "sent_packets": sent,
        "retransmitted_packets": seen["retransmitted_packets"].astype(float),
        "rtt_s": rtt_s,
        "srtt_s": unknown,
        "rtt_min_s": np.where(min_rtt_us == UNKNOWN, np.nan, min_rtt_us / 1e6),
        # A sample with cwnd 0 counts as one before the handshake, which has no RTT.
        "cwnd_bytes": np.zeros(len(time_ns)),
        "ssthresh_bytes": unknown,
        "in_flight_bytes": seen["in_flight_bytes"].astype(float),
        "pacing_rate_bps": unknown,
        "mode": ["handshake"] * len(time_ns),
        "internals": {},
        "initial_cwnd_bytes": 0,
        "start_ns": spec["start_ns"] if spec["after"] is None else events.get("due_ns"),
        "completed_ns": events.get("completed_ns"),
        "messages": events.get("messages", []),
        "pages": events.get("pages", "[]"),
    }
