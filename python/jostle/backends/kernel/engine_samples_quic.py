"""Samples of a jostle QUIC flow, in the format of `crates/metrics/src/kernel_samples.rs`.

Both ends sample themselves (`crates/quic-endpoint/src/samples.rs`) at the times at which the guest
samples the queues.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle.safe_io.untrusted_files import GUEST_BYTES, read_bytes

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from jostle.run_spec import FlowSpec

    Array = NDArray[np.float64]

    Line = Mapping[str, Any]


def quic_samples(
    spec: FlowSpec, number: int, samples: int, events: Mapping[str, Any], folder: Path
) -> dict[str, Any]:
    """Return the samples of a flow.

    Parameters
    ----------
    number
        Index of the flow.
    samples
        Expected number of samples.
    events
        Times at which the flow started and completed.
    folder
        Folder with the job's results.

    Raises
    ------
    ValueError
        If the samples of an end are incomplete.
    """
    import numpy as np

    sender, receiver = (_lines(folder / "quic" / f"{number}.{e}") for e in ("sender", "receiver"))
    # A flow that waited for another until the end of the run has no samples.
    sender = sender or [_NOTHING] * samples
    if not len(sender) == len(receiver) == samples:
        raise ValueError(f"{len(sender)} and {len(receiver)} of {samples} samples of a QUIC flow")

    def column(lines: list[Line], name: str) -> Array:
        return np.array([line[name] for line in lines], float)

    connected = np.array([line["connected"] for line in sender])
    new_rtt_samples = np.diff(column(sender, "rtt_samples"), prepend=0)
    rtt_sum_s = np.diff(column(sender, "rtt_sum_ns"), prepend=0) / 1e9
    start_ns = spec["start_ns"] if spec["after"] is None else events.get("due_ns")
    return {
        "sent_bytes": column(sender, "sent_bytes"),
        "received_bytes": column(receiver, "received_bytes"),
        "delivered_bytes": column(receiver, "delivered_bytes"),
        "sent_packets": column(sender, "sent_packets"),
        "retransmitted_packets": column(sender, "repeated_packets"),
        "rtt_s": np.where(new_rtt_samples > 0, rtt_sum_s / np.maximum(new_rtt_samples, 1), np.nan),
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
        "messages": [_messages(sender, receiver)],
    }


def _lines(path: Path) -> list[Line]:
    if not path.exists():
        return []
    return [json.loads(line) for line in read_bytes(path, GUEST_BYTES).splitlines()]


def _internals(sender: list[Line]) -> dict[str, Array]:
    """Return the controller's internal values by name; NaN where it reports none."""
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


def _messages(sender: list[Line], receiver: list[Line]) -> str:
    """Return the log of the application, of which each end knows a part."""
    requested = [message for line in sender for message in line["requested"]]
    received = [at for line in receiver for at in line["whole_ns"]]
    # The last messages may not be complete yet.
    return json.dumps(
        [
            {"requested_ns": at, "bytes": size_bytes, "received_ns": end}
            for (at, size_bytes), end in itertools.zip_longest(
                requested, received[: len(requested)]
            )
        ]
    )


_NOTHING: Line = {
    "connected": False, "rtt_samples": 0, "rtt_sum_ns": 0, "rtt_min_ns": None, "srtt_ns": None,
    "cwnd_bytes": 0, "ssthresh_bytes": None, "in_flight_bytes": 0, "pacing_rate_bps": None,
    "mode": "handshake", "sent_packets": 0, "sent_bytes": 0, "repeated_packets": 0,
    "requested": [], "internals": [],
}  # fmt: skip
