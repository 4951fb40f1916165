"""What a run's summary and series measure: names, units, and how a person reads them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from jostle.errors import InputError, unknown


@dataclass(frozen=True)
class Measure:
    """A measure of a summary.

    Attributes
    ----------
    name
        Name in `ResultSet.estimate`.
    key
        Key in the summary.
    unit
        Unit of the number there.
    scope
        Whether each flow, each link, or a run as a whole has a value.
    """

    name: str
    key: str
    unit: str
    scope: Literal["flow", "link", "run"] = "flow"


MEASURES: tuple[Measure, ...] = (
    Measure("sending_rate", "sending_rate_bps", "bit/s"),
    Measure("throughput", "throughput_bps", "bit/s"),
    Measure("goodput", "goodput_bps", "bit/s"),
    Measure("goodput_ratio", "goodput_ratio", "1"),
    Measure("rtt", "rtt_mean_s", "s"),
    Measure("rtt_min", "rtt_min_s", "s"),
    Measure("rtt_p50", "rtt_p50_s", "s"),
    Measure("rtt_p95", "rtt_p95_s", "s"),
    Measure("rtt_sd", "rtt_sd_s", "s"),
    Measure("cwnd", "cwnd_mean_bytes", "byte"),
    Measure("sent", "sent_packets", "packet"),
    Measure("retransmitted", "retransmitted_packets", "packet"),
    Measure("retransmission_ratio", "retransmission_ratio", "1"),
    Measure("power", "power_bits", "bit"),
    Measure("utilisation", "utilisation", "1", "link"),
    Measure("queue", "queue_mean_bytes", "byte", "link"),
    Measure("queue_p95", "queue_p95_bytes", "byte", "link"),
    Measure("dropped", "dropped_packets", "packet", "link"),
    Measure("marked", "marked_packets", "packet", "link"),
    Measure("jain", "jain", "1", "run"),
)

FLOW_KEYS = tuple(m.key for m in MEASURES if m.scope == "flow")
LINK_KEYS = tuple(m.key for m in MEASURES if m.scope == "link")

SERIES_NAMES = {
    "sending_rate": "sending_rate_bps",
    "throughput": "throughput_bps",
    "goodput": "goodput_bps",
    "rtt": "rtt_mean_s",
    "rtt_last": "rtt_last_s",
    "srtt": "srtt_s",
    "cwnd": "cwnd_bytes",
    "ssthresh": "ssthresh_bytes",
    "in_flight": "in_flight_bytes",
    "pacing_rate": "pacing_rate_bps",
    "sent": "sent_packets",
    "retransmitted": "retransmitted_packets",
}
"""Short names of the columns of a flow's series."""


def measure(name: str) -> Measure:
    """Find a measure by its name or its key.

    Raises
    ------
    InputError
        When there is none.
    """
    for candidate in MEASURES:
        if name in (candidate.name, candidate.key):
            return candidate
    raise InputError(unknown("measure", name, [m.name for m in MEASURES]))
