"""The measures that tables show for each kind of traffic."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from jostle.results.measures import Measure, measures

__all__ = ["LIMITS", "NOTED", "SUITABLE", "shown_together"]

SUITABLE: Final[Mapping[str, tuple[str, ...]]] = {
    "datagrams": (
        "mos", "r_factor", "one_way_delay", "one_way_delay_p95", "jitter", "datagram_loss",
        "mouth_to_ear", "throughput",
    ),
    "pages": (
        "page_load_time", "page_load_time_mean", "page_load_time_p95", "pages",
        "pages_unfinished", "rtt",
        "throughput",
    ),
    "videos": (
        "bitrate", "rebuffering", "startup_delay", "bitrate_switches", "rebufferings", "rtt",
        "throughput",
    ),
    "media": (
        "frame_delay", "frame_delay_p95", "frame_delay_max", "late_frames", "frames", "rtt",
        "throughput", "retransmission_ratio",
    ),
    "requests": (
        "response_time", "response_time_p95", "response_time_p99", "responses", "rtt", "throughput",
        "retransmission_ratio",
    ),
    "transfers": (
        "completion_time", "completion_time_p50", "completion_time_p95", "unfinished",
        "completion_rate", "rtt",
        "retransmission_ratio", "completion_time_p99", "throughput", "efficiency",
    ),
    "bulk": (
        "goodput", "rtt", "retransmission_ratio", "harm", "share", "jain", "throughput", "cwnd",
        "starvation",
    ),
    "pings": ("rtt", "pings_lost", "rtt_p50", "rtt_p95", "rtt_min", "rtt_sd"),
    "relays": ("throughput", "rtt", "retransmission_ratio", "cwnd", "goodput", "rtt_p95"),
    "tunnels": ("throughput", "rtt", "retransmission_ratio", "cwnd", "goodput", "rtt_p95"),
    "link": (
        "utilisation", "queueing_delay", "queueing_delay_p95", "queue_length",
        "queue_length_p95", "dropped", "marked",
        "queue_delay_estimate", "queue_delay_estimate_p95",
    ),
}  # fmt: skip
"""Measures of each kind's table, most important first; later ones are omitted if too wide.

Tables are in this order: users notice the performance of applications, not the cwnd of a download.
"""

LIMITS: Final = ("receive_window_limited", "send_buffer_limited", "application_limited")
"""Measures of what limits a flow, for the notes below a table."""
NOTED: Final = ("goodput", "throughput", "retransmission_ratio")
"""Measures of which a note below a table warns."""
_ENDS: Final = ("unfinished",)
"""Measures that say whether means are of all flows."""


def shown_together(kinds: Collection[str]) -> list[Measure]:
    """Return the measures of tables of some kinds of traffic and of links, and of their notes.

    A group measure follows its flow measure, and replaces the mean over the flows.
    """
    shown = (name for kind in (*kinds, "link") for name in SUITABLE[kind])
    names = (
        name
        for one in dict.fromkeys([*shown, *LIMITS, *NOTED, *_ENDS])
        for name in (one, f"group_{one}")
    )
    known = measures()
    return [known[name] for name in names if name in known and known[name].key]
