"""Samples of CBR and ping flows, in the format of `crates/metrics/src/kernel_samples.rs`.

Both ends record every datagram (`guest/datagrams.py`), so the samples are exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle.backends.kernel import packet_sizes
from jostle.backends.kernel.guest.sample_format import ARRIVAL, DEPARTURE
from jostle.safe_io.untrusted_files import GUEST_BYTES, read_bytes

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from jostle.run_spec import FlowSpec

_ARRIVAL = [("came_ns", "i8"), ("sent_ns", "i8"), ("number", "u4")]


def datagram_samples(
    spec: FlowSpec,
    number: int,
    time_ns: NDArray[np.int64],
    events: Mapping[str, Any],
    folder: Path,
) -> dict[str, Any]:
    """Return the samples of a flow.

    Parameters
    ----------
    number
        Index of the flow.
    time_ns
        Times of the samples.
    events
        Time at which the flow started.
    folder
        Folder with the job's results.
    """
    import numpy as np

    source = spec["source"]
    assert source["kind"] in ("cbr", "ping")
    frame_bytes = packet_sizes.datagram_bytes(source["bytes"])
    left = folder / "datagrams" / str(number)
    sent = np.frombuffer(_complete_records(left.with_suffix(".sent"), DEPARTURE.size), "i8")
    came = _arrivals(left.with_suffix(".came"))
    new = _without_duplicates(came)
    sent_packets = np.searchsorted(sent, time_ns, side="right").astype(float)
    received = np.searchsorted(came["came_ns"], time_ns, side="right").astype(float)
    delivered = np.searchsorted(new["came_ns"], time_ns, side="right").astype(float)
    unknown = np.full(len(time_ns), np.nan)
    waiting: NDArray[Any] = np.zeros(len(time_ns))
    per_datagram: dict[str, Any] = {}
    if source["kind"] == "ping":
        pings = _pings(sent, _arrivals(left.with_suffix(".back")), source["timeout_ns"])
        known = np.array([moment for moment, _, _ in pings], "i8")
        settled = np.searchsorted(known, time_ns, side="right")
        waiting = source["bytes"] * (sent_packets - settled)
        per_datagram["pings_ns"] = pings
    else:
        delays_ns = new["came_ns"] - new["sent_ns"]
        per_datagram["datagrams_ns"] = list(
            zip(new["came_ns"].tolist(), new["number"].tolist(), delays_ns.tolist(), strict=True)
        )
    return {
        "sent_bytes": frame_bytes * sent_packets,
        "received_bytes": frame_bytes * received,
        "delivered_bytes": source["bytes"] * delivered,
        "sent_packets": sent_packets,
        "retransmitted_packets": np.zeros(len(time_ns)),
        "rtt_s": unknown,
        "srtt_s": unknown,
        "rtt_min_s": unknown,
        "cwnd_bytes": unknown,
        "ssthresh_bytes": unknown,
        "in_flight_bytes": waiting,
        "pacing_rate_bps": unknown,
        "mode": ["pings" if source["kind"] == "ping" else "datagrams"] * len(time_ns),
        "internals": {},
        "initial_cwnd_bytes": 0,
        "start_ns": spec["start_ns"] if spec["after"] is None else events.get("due_ns"),
        "completed_ns": None,
        **per_datagram,
    }


def _arrivals(path: Path) -> NDArray[Any]:
    import numpy as np

    return np.frombuffer(_complete_records(path, ARRIVAL.size), np.dtype(_ARRIVAL))


def _without_duplicates(came: NDArray[Any]) -> NDArray[Any]:
    """Return the first arrival of each datagram: the application discards the others."""
    import numpy as np

    _, first = np.unique(came["number"], return_index=True)
    return came[np.sort(first)]


def _pings(
    sent_ns: NDArray[np.int64], back: NDArray[Any], timeout_ns: int
) -> list[tuple[int, int, int | None]]:
    """Return time, number and RTT (None if lost) of each ping, sorted by the time of the result."""
    rtt_ns = {
        number: came - sent for came, sent, number in back.tolist() if came - sent < timeout_ns
    }
    found = []
    for number, at in enumerate(sent_ns.tolist()):
        rtt = rtt_ns.get(number)
        found.append((at + (timeout_ns if rtt is None else rtt), number, rtt))
    return sorted(found)


def _complete_records(path: Path, record_bytes: int) -> bytes:
    """Read all complete records; the run may have ended during a write."""
    content = read_bytes(path, GUEST_BYTES)
    return content[: len(content) // record_bytes * record_bytes]
