"""What the guest program saw, as arrays; see `guest/sampling.py` for the file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle.backends.kernel.guest.sampling import DETAILS_BYTES, TCP_INFO_BYTES, XSTATS_BYTES
from jostle.foreign_files import GUEST_BYTES, STORED_BYTES, read_bytes, read_json

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Records = NDArray[np.void]

# struct tcp_info of linux/tcp.h: the fields that are used, where they are since Linux 4.19.
_TCP_INFO = {
    "state": ("u1", 0), "ca_state": ("u1", 1),
    "snd_mss": ("u4", 16), "unacked": ("u4", 24), "sacked": ("u4", 28), "lost": ("u4", 32),
    "retrans": ("u4", 36), "rtt_us": ("u4", 68), "ssthresh": ("u4", 76), "cwnd": ("u4", 80),
    "total_retrans": ("u4", 100), "pacing_rate": ("u8", 104), "bytes_received": ("u8", 128),
    "segs_in": ("u4", 140), "min_rtt_us": ("u4", 148), "data_segs_in": ("u4", 152),
    "data_segs_out": ("u4", 156), "bytes_sent": ("u8", 200),
}  # fmt: skip

# struct tcp_bbr_info, tcp_dctcp_info and tcpvegas_info of linux/inet_diag.h share their place.
_DETAILS = {
    "bbr_bytes_per_s": ("u8", 0), "bbr_min_rtt_us": ("u4", 8),
    "bbr_pacing_gain": ("u4", 12), "bbr_cwnd_gain": ("u4", 16),
    "dctcp_enabled": ("u2", 0), "dctcp_alpha": ("u4", 4),
    "vegas_rtt_us": ("u4", 8), "vegas_min_rtt_us": ("u4", 12),
}  # fmt: skip

_QUEUE = [
    ("bytes", "u8"), ("packets", "u8"), ("backlog", "u4"), ("qlen", "u4"), ("drops", "u4"),
    ("overlimits", "u4"), ("xstats", "u4", (XSTATS_BYTES // 4,)), ("losses", "u8"),
    ("outages", "u8"),
]  # fmt: skip


@dataclass(frozen=True)
class Samples:
    """Everything that was seen.

    Attributes
    ----------
    time_ns
        When, in ns of the run, rising.
    senders, details, receivers
        Per sample and flow: `tcp_info` of both ends, the controller's own.
    queues
        Per sample and link: counters.
    events
        Per flow: when it opened, completed, and had each response whole, if it did.
    """

    time_ns: NDArray[np.int64]
    senders: Records
    details: Records
    receivers: Records
    queues: Records
    events: list[Mapping[str, Any]]


def read(folder: Path, flows: int, links: int) -> Samples:
    """Read what a job left.

    Raises
    ------
    ValueError
        When it is not whole.
    """
    import numpy as np

    info = _struct(_TCP_INFO, TCP_INFO_BYTES)
    flow = np.dtype(
        [("sender", info), ("details", _struct(_DETAILS, DETAILS_BYTES)), ("receiver", info)]
    )
    record = np.dtype(
        [("time_ns", "i8"), ("flows", flow, (flows,)), ("queues", np.dtype(_QUEUE), (links,))]
    )
    content = read_bytes(folder / "samples", GUEST_BYTES)
    if not content or len(content) % record.itemsize:
        raise ValueError("the samples are not whole")
    samples = np.frombuffer(content, record)
    events = read_json(folder / "events.json", STORED_BYTES)
    return Samples(
        time_ns=samples["time_ns"],
        senders=samples["flows"]["sender"],
        details=samples["flows"]["details"],
        receivers=samples["flows"]["receiver"],
        queues=samples["queues"],
        events=events["flows"],
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
