"""Datagrams of a rate, and pings, in the words of `crates/record/src/samples.rs`.

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
    assert source["kind"] in ("cbr", "ping")
    frame_bytes = packets.datagram_bytes(source["bytes"])
    left = folder / "datagrams" / str(number)
    sent = np.frombuffer(_whole(left.with_suffix(".sent"), DEPARTURE.size), "i8")
    came = np.frombuffer(_whole(left.with_suffix(".came"), ARRIVAL.size), np.dtype(_ARRIVAL))
    delays_ns = came["came_ns"] - came["sent_ns"]
    sent_packets = np.searchsorted(sent, time_ns, side="right").astype(float)
    received = np.searchsorted(came["came_ns"], time_ns, side="right").astype(float)
    unknown = np.full(len(time_ns), np.nan)
    waiting: NDArray[Any] = np.zeros(len(time_ns))
    told: dict[str, Any] = {}
    if source["kind"] == "ping":
        back = np.frombuffer(_whole(left.with_suffix(".back"), ARRIVAL.size), np.dtype(_ARRIVAL))
        pings = _pings(sent, back, source["timeout_ns"])
        known = np.array([moment for moment, _, _ in pings], "i8")
        settled = np.searchsorted(known, time_ns, side="right")
        waiting = source["bytes"] * (sent_packets - settled)
        told["pings_ns"] = pings
    else:
        told["datagrams_ns"] = list(
            zip(came["came_ns"].tolist(), came["number"].tolist(), delays_ns.tolist(), strict=True)
        )
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
        "in_flight_bytes": waiting,
        "pacing_rate_bps": unknown,
        "mode": ["pings" if source["kind"] == "ping" else "datagrams"] * len(time_ns),
        "internals": {},
        "initial_cwnd_bytes": 0,
        "start_ns": spec["start_ns"] if spec["after"] is None else events.get("due_ns"),
        "completed_ns": None,
        "responses_ns": [],
        **told,
    }


def _pings(
    sent_ns: NDArray[np.int64], back: NDArray[Any], timeout_ns: int
) -> list[tuple[int, int, int | None]]:
    """Tell what became of each ping, in the order in which it was known."""
    rtt_ns = {
        number: came - sent for came, sent, number in back.tolist() if came - sent < timeout_ns
    }
    found = []
    for number, at in enumerate(sent_ns.tolist()):
        rtt = rtt_ns.get(number)
        found.append((at + (timeout_ns if rtt is None else rtt), number, rtt))
    return sorted(found)


def _whole(path: Path, record_bytes: int) -> bytes:
    """Read whole records: the run may have ended while one was written."""
    content = read_bytes(path, GUEST_BYTES)
    return content[: len(content) // record_bytes * record_bytes]
