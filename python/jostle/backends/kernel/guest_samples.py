"""Samples of the guest program as arrays; see `guest/sampling.py` for the file format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle.backends.kernel.guest.sample_format import (
    DETAILS_BYTES,
    FLOW_BYTES,
    TCP_INFO_BYTES,
    XSTATS_BYTES,
)
from jostle.safe_io.untrusted_files import GUEST_BYTES, STORED_BYTES, read_bytes, read_json

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Records = NDArray[np.void]

# struct tcp_info of linux/tcp.h: the used fields, with their offsets since Linux 4.19.
_TCP_INFO = {
    "state": ("u1", 0), "ca_state": ("u1", 1),
    "snd_mss": ("u4", 16), "unacked": ("u4", 24), "sacked": ("u4", 28), "lost": ("u4", 32),
    "retrans": ("u4", 36), "rtt_us": ("u4", 68), "ssthresh": ("u4", 76), "cwnd": ("u4", 80),
    "total_retrans": ("u4", 100), "pacing_rate": ("u8", 104), "bytes_acked": ("u8", 120),
    "bytes_received": ("u8", 128),
    "notsent_bytes": ("u4", 144), "min_rtt_us": ("u4", 148),
    "data_segs_in": ("u4", 152), "data_segs_out": ("u4", 156), "busy_us": ("u8", 168),
    "rwnd_limited_us": ("u8", 176), "sndbuf_limited_us": ("u8", 184), "bytes_sent": ("u8", 200),
}  # fmt: skip

# struct tcp_bbr_info, tcp_dctcp_info and tcpvegas_info of linux/inet_diag.h, a union.
_DETAILS = {
    "bbr_bytes_per_s": ("u8", 0), "bbr_min_rtt_us": ("u4", 8),
    "bbr_pacing_gain": ("u4", 12), "bbr_cwnd_gain": ("u4", 16),
    "dctcp_enabled": ("u2", 0), "dctcp_alpha": ("u4", 4),
    "vegas_rtt_us": ("u4", 8), "vegas_min_rtt_us": ("u4", 12),
}  # fmt: skip

_QUEUE = [
    ("bytes", "u8"), ("packets", "u8"), ("backlog", "u4"), ("qlen", "u4"), ("drops", "u4"),
    ("overlimits", "u4"), ("xstats", "u4", (XSTATS_BYTES // 4,)), ("losses", "u8"),
    ("outages", "u8"), ("thinned", "u8"), ("held_bytes", "u8"), ("corrupted", "u8"),
    ("duplicated", "u8"), ("delay_full", "u8"), ("rejected", "u8"), ("marked", "u8"),
]  # fmt: skip


# See `PROGRAMS` of `guest/sample_format.py`.
_PROGRAMS = {
    "sent_packets": ("u8", 0), "sent_bytes": ("u8", 8), "received_packets": ("u8", 16),
    "received_bytes": ("u8", 24), "delivered_bytes": ("u8", 32),
}  # fmt: skip

# See `CONNECTIONS` of `guest/sample_format.py`.
_CONNECTIONS = {
    "sent_packets": ("u8", 0), "sent_bytes": ("u8", 8), "retransmitted_packets": ("u8", 16),
    "received_packets": ("u8", 24), "delivered_bytes": ("u8", 32), "in_flight_bytes": ("u8", 40),
    "acks": ("u8", 48), "rtts_us": ("u8", 56), "min_rtt_us": ("u8", 64),
}  # fmt: skip


@dataclass(frozen=True)
class Samples:
    """All samples and events of a run.

    Attributes
    ----------
    time_ns
        Times of the samples in ns of the run, increasing.
    flows
        Per sample and flow: raw data; see `tcp`, `programs` and `connections`.
    queues
        Per sample and queue: counters of the links, then of their classes.
    events
        Per flow: times at which it started and completed, and the log of its application.
    start_ns
        Time 0 of the run, in ns since 1970 on the guest's clock.
    """

    time_ns: NDArray[np.int64]
    flows: Records
    queues: Records
    events: list[Mapping[str, Any]]
    start_ns: int

    def tcp(self, flow: int) -> tuple[Records, Records, Records]:
        """Return `tcp_info` of the sender, the controller's details, `tcp_info` of the receiver."""
        import numpy as np

        info, details = _struct(_TCP_INFO, TCP_INFO_BYTES), _struct(_DETAILS, DETAILS_BYTES)
        both = np.dtype([("sender", info), ("details", details), ("receiver", info)])
        seen = self._of(flow, both)
        return seen["sender"], seen["details"], seen["receiver"]

    def programs(self, flow: int) -> Records:
        """Return the counters of devices and client of a flow over external QUIC programs."""
        return self._of(flow, _struct(_PROGRAMS, FLOW_BYTES))

    def connections(self, flow: int) -> Records:
        """Return the sums over all connections, for multi-connection flows."""
        return self._of(flow, _struct(_CONNECTIONS, FLOW_BYTES))

    def _of(self, flow: int, kind: np.dtype[np.void]) -> Records:
        import numpy as np

        return np.ascontiguousarray(self.flows[:, flow]).view(kind)


def read(folder: Path, flows: int, queues: int) -> Samples:
    """Read the samples and events of a job.

    Raises
    ------
    ValueError
        If the samples are incomplete.
    """
    import numpy as np

    queue = np.dtype(_QUEUE)
    record = np.dtype(
        [("time_ns", "i8"), ("flows", f"V{FLOW_BYTES}", (flows,)), ("queues", queue, (queues,))]
    )
    content = read_bytes(folder / "samples", GUEST_BYTES)
    if not content or len(content) % record.itemsize:
        raise ValueError("the samples are not whole")
    samples = np.frombuffer(content, record)
    events = read_json(folder / "events.json", STORED_BYTES)
    return Samples(
        time_ns=samples["time_ns"],
        flows=samples["flows"],
        queues=samples["queues"],
        events=events["flows"],
        start_ns=events.get("start_ns", 0),
    )


def _struct(fields: Mapping[str, tuple[str, int]], size_bytes: int) -> np.dtype[np.void]:
    import numpy as np

    return np.dtype(
        {
            "names": list(fields),
            "formats": [kind for kind, _ in fields.values()],
            "offsets": [offset for _, offset in fields.values()],
            "itemsize": size_bytes,
        }
    )
