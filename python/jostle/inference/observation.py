"""What is taken from a flow that somebody measured: a run of a store, or a capture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from jostle.errors import InputError, unknown

if TYPE_CHECKING:
    from jostle.backends import Run
    from jostle.stats.describe import Floats

__all__ = ["FEWEST_INTERVALS", "Observation", "observe"]

_CAPTURED: Final = "handshake_s"
"""A measure that flows of captures have, and those of logs have not."""
_NEARLY_ALL: Final = 0.99
"""Part of what all flows send that makes one of them the flow that is meant."""
FEWEST_INTERVALS: Final = 40
"""Of a flow that can be told from others: shorter ones show no more than a slow start."""


@dataclass(frozen=True)
class Observation:
    """One flow over its life, interval by interval.

    Attributes
    ----------
    flow
        Its name.
    start_s
        When its first packet left, in the time of the run or capture.
    interval_s
        Length of an interval.
    rtt_s
        Shape (n,): mean RTT of each interval; NaN where none was measured.
    in_flight_bytes
        Shape (n,): what was under way at the end of each; all 0 where only the receiver was seen.
    throughput_bps
        Shape (n,): what arrived.
    least_rtt_s
        The shortest of all RTTs, which no mean of an interval shows; None if it is not known.
    least_is_the_syn
        Whether that is the kernel's own, which begins with the SYN: its time on a bottleneck is
        next to nothing.
    least_full_rtt_s
        The shortest of full packets; None where packets were not seen one by one.
    """

    flow: str
    start_s: float
    interval_s: float
    rtt_s: Floats
    in_flight_bytes: Floats
    throughput_bps: Floats
    least_rtt_s: float | None = None
    least_is_the_syn: bool = False
    least_full_rtt_s: float | None = None

    def quiet_rtt_s(self, packet_s: float) -> float:
        """Give what a full packet takes for a round trip of the path when nothing waits there.

        Parameters
        ----------
        packet_s
            How long its bottleneck takes to send one.
        """
        if self.least_rtt_s is None:
            return float(np.nanmin(self.rtt_s))
        if self.least_full_rtt_s is None:
            return self.least_rtt_s + (packet_s if self.least_is_the_syn else 0.0)
        # Where every full packet met a queue, a smaller one still says how long it is at most.
        return min(self.least_full_rtt_s, self.least_rtt_s + packet_s)

    @property
    def length_s(self) -> float:
        """From the first packet to the last."""
        return self.interval_s * self.rtt_s.size

    @property
    def knows_flight(self) -> bool:
        """Whether its sender told what was under way."""
        return bool(np.any(self.in_flight_bytes))

    @property
    def carried_bytes(self) -> Floats:
        """Throughput × RTT: by Little's law the mean of what was under way, wherever it is seen."""
        carried: Floats = self.throughput_bps / 8 * _filled(self.rtt_s)
        return carried

    @property
    def queueing_delay_s(self) -> Floats:
        """RTT above the least one of a full packet, gaps filled along a line."""
        filled = _filled(self.rtt_s)
        if self.least_full_rtt_s is not None:
            # The few bytes with which a program says who it is take less time on a slow link than
            # any packet of the flows that this one is held against.
            filled = np.maximum(filled, self.least_full_rtt_s)
        above: Floats = filled - filled.min()
        return above


def observe(run: Run, flow: str | None = None) -> Observation:
    """Take a flow out of a run.

    Parameters
    ----------
    run
        A run with series of its flows.
    flow
        Its name; may be left out if the run has one alone, or one that carries nearly everything:
        programs as iperf3 have a connection beside it to control it.

    Raises
    ------
    InputError
        When there is no such flow, several without a name, or too little to see.
    """
    import polars as pl

    names = [each["name"] for each in run.summary["flows"]]
    if flow is None:
        flow = _main_flow(run)
    if flow not in names:
        raise InputError(unknown("flow", flow, names))
    rows = run.flows.filter(pl.col("flow") == flow).sort("time_s")
    sent = np.flatnonzero(rows["sent_packets"].cast(pl.Float64).fill_null(0.0).to_numpy() > 0)
    if sent.size == 0:
        raise InputError(f"flow {flow} sent nothing")
    lived = rows[int(sent[0]) : int(sent[-1]) + 1]
    numbers = {
        name: lived[name].cast(pl.Float64).fill_null(np.nan).to_numpy()
        for name in ("time_s", "rtt_mean_s", "srtt_s", "in_flight_bytes", "throughput_bps")
    }
    # A kernel that only sampled its smoothed RTT has no other.
    measured = not np.isnan(numbers["rtt_mean_s"]).all()
    rtt_s = numbers["rtt_mean_s" if measured else "srtt_s"]
    if np.count_nonzero(~np.isnan(rtt_s)) < FEWEST_INTERVALS:
        raise InputError(
            f"flow {flow} has {np.count_nonzero(~np.isnan(rtt_s))} intervals with an RTT: "
            f"at least {FEWEST_INTERVALS} are needed, of a longer flow or a shorter `interval`"
        )
    times = rows["time_s"].to_numpy()
    interval_s = float(np.median(np.diff(times)))
    start_s = float(numbers["time_s"][0]) - interval_s
    in_flight = np.nan_to_num(numbers["in_flight_bytes"])
    summaries: Any = run.summary["flows"]
    row = next(each for each in summaries if each["name"] == flow)
    return Observation(
        flow, start_s, interval_s, rtt_s, in_flight, np.nan_to_num(numbers["throughput_bps"]),
        row["phases"]["overall"]["rtt_min_s"], _CAPTURED not in row, row.get("full_rtt_min_s"),
    )  # fmt: skip


def _main_flow(run: Run) -> str:
    """Name the flow that carries nearly everything that is sent."""
    import polars as pl

    names = [each["name"] for each in run.summary["flows"]]
    if len(names) == 1:
        return str(names[0])
    sizes = run.flows.group_by("flow").agg(pl.col("sending_rate_bps").fill_nan(0.0).sum())
    sent = dict(sizes.iter_rows())
    largest = max(sent, key=lambda name: sent[name], default=None)
    # Where nothing is known to have been sent, none is the largest.
    if largest is None or not sent[largest] or sent[largest] < _NEARLY_ALL * sum(sent.values()):
        raise InputError(f"several flows: choose one by --flow, of {', '.join(names)}")
    return str(largest)


def _filled(values: Floats) -> Floats:
    """Fill gaps along a line between their ends."""
    there = ~np.isnan(values)
    at = np.arange(values.size)
    filled: Floats = np.interp(at, at[there], values[there])
    return filled
