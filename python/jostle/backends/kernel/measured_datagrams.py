"""Datagrams that nobody answers, in the words of `crates/record/src/samples.rs`.

Both ends write down each of them (`guest/datagrams.py`): what is known of a flow at a sample is
exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle.backends.kernel import packets
from jostle.backends.kernel.guest.records import ARRIVAL, DEPARTURE
from jostle.foreign_files import GUEST_BYTES, read_bytes

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from jostle.run_spec import FlowSpec

_ARRIVAL = [("came_ns", "i8"), ("sent_ns", "i8"), ("number", "u4")]


def seen_of_datagram_flow(
    spec: FlowSpec,
    number: int,
    time_ns: NDArray[np.int64],
    events: Mapping[str, Any],
    folder: Path,
) -> dict[str, Any]:
    """Give what was seen of a flow.

    Parameters
    ----------
    number
        Its position.
    time_ns
        When samples were taken.
    events
        When it opened.
    folder
        Where the job left everything.
    """
    import numpy as np

    source = spec["source"]
    assert source["kind"] == "cbr"
    frame_bytes = packets.datagram_bytes(source["bytes"])
    left = folder / "datagrams" / str(number)
    sent = np.frombuffer(_whole(left.with_suffix(".sent"), DEPARTURE.size), "i8")
    came = np.frombuffer(_whole(left.with_suffix(".came"), ARRIVAL.size), np.dtype(_ARRIVAL))
    delays_ns = came["came_ns"] - came["sent_ns"]
    sent_packets = np.searchsorted(sent, time_ns, side="right").astype(float)
    received = np.searchsorted(came["came_ns"], time_ns, side="right").astype(float)
    unknown = np.full(len(time_ns), np.nan)
    return {
        "sent_bytes": frame_bytes * sent_packets,
        "received_bytes": frame_bytes * received,
        "delivered_bytes": source["bytes"] * received,
        "sent_packets": sent_packets,
        "retransmitted_packets": np.zeros(len(time_ns)),
        "rtt_s": unknown,
        "srtt_s": unknown,
        "rtt_min_s": unknown,
        "cwnd_bytes": unknown,
        "ssthresh_bytes": unknown,
        "in_flight_bytes": np.zeros(len(time_ns)),
        "pacing_rate_bps": unknown,
        "mode": ["datagrams"] * len(time_ns),
        "internals": {},
        "initial_cwnd_bytes": 0,
        "start_ns": spec["start_ns"] if spec["after"] is None else events.get("due_ns"),
        "completed_ns": None,
        "responses_ns": [],
        "datagrams_ns": list(
            zip(came["came_ns"].tolist(), came["number"].tolist(), delays_ns.tolist(), strict=True)
        ),
    }


def _whole(path: Path, record_bytes: int) -> bytes:
    """Read whole records: the run may have ended while one was written."""
    content = read_bytes(path, GUEST_BYTES)
    return content[: len(content) // record_bytes * record_bytes]
