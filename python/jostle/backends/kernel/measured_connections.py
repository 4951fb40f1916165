"""Flows that are many connections, in the words of `crates/record/src/samples.rs`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from jostle.backends.kernel import packets
from jostle.backends.kernel.guest.records import UNKNOWN

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from jostle.run_spec import FlowSpec


def seen_of_connections(
    spec: FlowSpec, time_ns: NDArray[np.int64], seen: NDArray[np.void], events: Mapping[str, Any]
) -> dict[str, Any]:
    """Give what was seen of all connections of a flow together, which has no window.

    Parameters
    ----------
    time_ns
        When samples were taken.
    seen
        What they say; see `CONNECTIONS` of `guest/records.py`.
    events
        When it opened, and its transfers.
    """
    import numpy as np

    sent = seen["sent_packets"].astype(float)
    sent_bytes = seen["sent_bytes"].astype(float)
    received = seen["received_packets"].astype(float)
    # As of a single one, a received packet is as large as one that was sent (`measured.py`).
    received_bytes = received * (packets.HEADER_BYTES + sent_bytes / np.maximum(sent, 1))
    acks = seen["acks"].astype(float)
    rtt_s = np.where(acks > 0, seen["rtts_us"] / np.maximum(acks, 1) / 1e6, np.nan)
    min_rtt_us = seen["min_rtt_us"]
    unknown = np.full(len(time_ns), np.nan)
    answers = spec["source"]["kind"] == "request_response"
    transfers = events.get("transfers_ns", ()) if answers else ()
    return {
        "sent_bytes": sent_bytes + packets.HEADER_BYTES * sent,
        "received_bytes": np.maximum.accumulate(received_bytes),
        "delivered_bytes": seen["delivered_bytes"].astype(float),
        "sent_packets": sent,
        "retransmitted_packets": seen["retransmitted_packets"].astype(float),
        "rtt_s": rtt_s,
        "srtt_s": unknown,
        "rtt_min_s": np.where(min_rtt_us == UNKNOWN, np.nan, min_rtt_us / 1e6),
        # A sample without one is taken for one before the handshake, with no RTT.
        "cwnd_bytes": np.zeros(len(time_ns)),
        "ssthresh_bytes": unknown,
        "in_flight_bytes": seen["in_flight_bytes"].astype(float),
        "pacing_rate_bps": unknown,
        "mode": ["handshake"] * len(time_ns),
        "internals": {},
        "initial_cwnd_bytes": 0,
        "start_ns": spec["start_ns"],
        "completed_ns": None,
        "responses_ns": sorted(
            (asked_ns + took_ns, took_ns)
            for _, asked_ns, _, took_ns, _ in transfers
            if took_ns is not None
        ),
    }
