"""A flow over jostle's own QUIC, in the words of `crates/record/src/samples.rs`.

Both ends take samples of themselves (`crates/quic-host/src/samples.rs`), at the moments at which
the guest looks at the queues.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle.foreign_files import GUEST_BYTES, read_bytes

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from jostle.run_spec import FlowSpec

    Array = NDArray[np.float64]

    Line = Mapping[str, Any]


def seen_of_quic_flow(
    spec: FlowSpec, number: int, samples: int, events: Mapping[str, Any], folder: Path
) -> dict[str, Any]:
    """Give what was seen of a flow.

    Parameters
    ----------
    number
        Its position.
    samples
        How many there have to be.
    events
        When it opened and completed.
    folder
        Where the job left everything.

    Raises
    ------
    ValueError
        When what an end left is not whole.
    """
    import numpy as np

    sender, receiver = (_lines(folder / "quic" / f"{number}.{e}") for e in ("sender", "receiver"))
    # A flow that waited for another to the end has never begun.
    sender = sender or [_NOTHING] * samples
    if not len(sender) == len(receiver) == samples:
        raise ValueError(f"{len(sender)} and {len(receiver)} of {samples} samples of a QUIC flow")

    def column(lines: list[Line], name: str) -> Array:
        return np.array([line[name] for line in lines], float)

    connected = np.array([line["connected"] for line in sender])
    heard = np.diff(column(sender, "rtt_samples"), prepend=0)
    rtt_sum_s = np.diff(column(sender, "rtt_sum_ns"), prepend=0) / 1e9
    start_ns = spec["start_ns"] if spec["after"] is None else events.get("due_ns")
    return {
        "sent_bytes": column(sender, "sent_bytes"),
        "received_bytes": column(receiver, "received_bytes"),
        "delivered_bytes": column(receiver, "delivered_bytes"),
        "sent_packets": column(sender, "sent_packets"),
        "retransmitted_packets": column(sender, "repeated_packets"),
        "rtt_s": np.where(heard > 0, rtt_sum_s / np.maximum(heard, 1), np.nan),
        "srtt_s": column(sender, "srtt_ns") / 1e9,
        "rtt_min_s": column(sender, "rtt_min_ns") / 1e9,
        "cwnd_bytes": np.where(connected, column(sender, "cwnd_bytes"), np.nan),
        "ssthresh_bytes": column(sender, "ssthresh_bytes"),
        "in_flight_bytes": column(sender, "in_flight_bytes"),
        "pacing_rate_bps": column(sender, "pacing_rate_bps"),
        "mode": [line["mode"] for line in sender],
        "internals": _internals(sender),
        "initial_cwnd_bytes": _initial_window_bytes(spec),
        "start_ns": start_ns,
        "completed_ns": events.get("completed_ns"),
        "responses_ns": _responses(sender, receiver),
    }


def _lines(path: Path) -> list[Line]:
    if not path.exists():
        return []
    return [json.loads(line) for line in read_bytes(path, GUEST_BYTES).splitlines()]


def _internals(sender: list[Line]) -> dict[str, Array]:
    """Give what the controller shows, by name; NaN where it shows nothing."""
    import numpy as np

    found: dict[str, Array] = {}
    for number, line in enumerate(sender):
        for name, value in line["internals"]:
            found.setdefault(name, np.full(len(sender), np.nan))[number] = value
    return found


def _initial_window_bytes(spec: FlowSpec) -> int:
    quic = spec.get("quic")
    assert quic is not None
    return spec["initial_window_packets"] * quic["initial_mtu_bytes"]


def _responses(sender: list[Line], receiver: list[Line]) -> list[tuple[int, int]]:
    """When each response was whole, and how long after it was asked for."""
    asked = [at for line in sender for at in line["asked_ns"]]
    whole = [at for line in receiver for at in line["whole_ns"]]
    # What is not whole yet was asked for last.
    return [(end, end - begin) for begin, end in zip(asked, whole, strict=False)]


_NOTHING: Line = {
    "connected": False, "rtt_samples": 0, "rtt_sum_ns": 0, "rtt_min_ns": None, "srtt_ns": None,
    "cwnd_bytes": 0, "ssthresh_bytes": None, "in_flight_bytes": 0, "pacing_rate_bps": None,
    "mode": "handshake", "sent_packets": 0, "sent_bytes": 0, "repeated_packets": 0,
    "asked_ns": [], "internals": [],
}  # fmt: skip
