"""Observed flows: series of a flow from a run of a store, or from a capture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from jostle.backends.kernel.packet_sizes import packet_bytes
from jostle.errors import InputError, unknown
from jostle.inference.cross_traffic import LEAST, LEAST_UNSURE, estimate_cross_traffic
from jostle.inference.link_rate import LinkRate, covering, estimate_rate
from jostle.inference.missing_evidence import bridged, lacks_sack, of_capture, sender_side_s
from jostle.scenario.parsing.quantities import PACKET_BYTES

if TYPE_CHECKING:
    import polars as pl

    from jostle.backends import Run
    from jostle.stats.descriptive import Floats

__all__ = ["FEWEST_INTERVALS", "ObservedFlow", "observe"]

_CAPTURED: Final = "handshake_s"
"""A measure that flows of captures have, and flows of tool logs lack."""
_NEARLY_ALL: Final = 0.99
"""Minimum share of all sent data of a flow that is selected by default."""
_THINNED: Final = 3.0
"""Packets per ACK from which ACKs are thinned on the path: receivers acknowledge at least every
second packet (RFC 9293 §3.8.6.3)."""
FEWEST_INTERVALS: Final = 40
"""Minimum length of an identifiable flow. Shorter flows contain little more than slow start."""


@dataclass(frozen=True)
class ObservedFlow:
    """One flow over its lifetime, by sampling interval.

    Attributes
    ----------
    flow
        Name of the flow.
    start_s
        Time of its first packet, in the time of the run or capture.
    interval_s
        Length of an interval.
    rtt_s
        Mean RTT of each interval, shape (n,); NaN if none was measured.
    in_flight_bytes
        Bytes in flight at the end of each interval, shape (n,); all 0 in captures of the receiver.
    throughput_bps
        Delivered data per time, shape (n,).
    least_rtt_s
        Minimum of all RTT samples, below the means of intervals; None if unknown.
    least_is_the_syn
        Whether this minimum is the kernel's, which includes the RTT of the SYN, whose transmission
        time on a bottleneck is negligible.
    least_full_rtt_s
        Minimum RTT of full-sized packets; None if packets were not captured individually.
    packets_per_ack
        Median of sent packets per ACK if a capture near the sender shows that ACKs are thinned on
        the path; None otherwise.
    missing
        Sentences on what the measurement lacks for an identification.
    shows_arrivals
        Whether the throughput shows when packets arrived, also while a loss is repaired.
    packet_bytes
        Size of a full packet on the wire.
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
    packets_per_ack: float | None = None
    missing: tuple[str, ...] = ()
    shows_arrivals: bool = True
    packet_bytes: int = PACKET_BYTES

    def quiet_rtt_s(self, packet_s: float) -> float:
        """Return the base RTT of a full-sized packet.

        Parameters
        ----------
        packet_s
            Transmission time of a full-sized packet on the bottleneck.
        """
        if self.least_rtt_s is None:
            return float(np.nanmin(self.rtt_s))
        if self.least_full_rtt_s is None:
            return self.least_rtt_s + (packet_s if self.least_is_the_syn else 0.0)
        # If all full-sized packets were queued, the RTT of a small packet gives an upper bound.
        return min(self.least_full_rtt_s, self.least_rtt_s + packet_s)

    @property
    def length_s(self) -> float:
        """Time from the first packet to the last."""
        return self.interval_s * self.rtt_s.size

    @property
    def knows_flight(self) -> bool:
        """Whether the bytes in flight are known."""
        return bool(np.any(self.in_flight_bytes))

    @property
    def carried_bytes(self) -> Floats:
        """Throughput × RTT, the mean of the bytes in flight by Little's law."""
        carried: Floats = self.throughput_bps / 8 * _filled(self.rtt_s)
        return carried

    @property
    def queueing_delay_s(self) -> Floats:
        """RTT minus the minimum RTT of full-sized packets, with gaps interpolated linearly."""
        filled = _filled(self.rtt_s)
        if self.least_full_rtt_s is not None:
            # Small packets, such as an application's greeting, have a shorter transmission time on
            # a slow link than the packets of the compared flows.
            filled = np.maximum(filled, self.least_full_rtt_s)
        above: Floats = filled - filled.min()
        return above

    @cached_property
    def link_rate(self) -> LinkRate | None:
        """Rate of the bottleneck, if the flow filled it; None if it delivered too little."""
        has_rtt = ~np.isnan(self.rtt_s)
        # If ACKs are thinned, each of them releases a burst. Its packets wait for each other, for
        # half of the burst on average, so that a longer queue alone shows that the link is busy.
        bursts = (
            (self.packets_per_ack / 2, self.packets_per_ack) if self.packets_per_ack else (0.0,)
        )
        return covering([
            estimate_rate(
                self.throughput_bps, self.queueing_delay_s, has_rtt, self.interval_s, burst,
                packet_bytes=self.packet_bytes,
            )
            for burst in bursts
        ])  # fmt: skip

    @cached_property
    def cross_traffic(self) -> Sequence[tuple[float, float]]:
        """Begin in seconds and rate in bit/s of each step of cross traffic at the bottleneck."""
        if self.link_rate is None:
            return ()
        is_sure = self.shows_arrivals and self.packets_per_ack is None
        return estimate_cross_traffic(
            self.throughput_bps, self.queueing_delay_s, self.link_rate.rate_bps, self.interval_s,
            LEAST if is_sure else LEAST_UNSURE, packet_bytes=self.packet_bytes,
        )  # fmt: skip


def observe(run: Run, flow: str | None = None) -> ObservedFlow:
    """Extract a flow from a run.

    Parameters
    ----------
    run
        Run with series of its flows.
    flow
        Name of the flow; optional if the run has only one, or one that carries nearly all data:
        iperf3, for example, opens an additional control connection.

    Raises
    ------
    InputError
        If the flow does not exist, there are several without a name, or it is too short.
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
    # A kernel run that sampled only the smoothed RTT has no other.
    measured = not np.isnan(numbers["rtt_mean_s"]).all()
    rtt_s = numbers["rtt_mean_s" if measured else "srtt_s"]
    if np.isnan(rtt_s).all() and lived.height >= FEWEST_INTERVALS:
        raise InputError(
            f"flow {flow} has no RTT: a capture near the receiver needs TCP time stamps, which "
            "the snap length may have cut — capture near the sender, or with at least 128 bytes"
        )
    if np.count_nonzero(~np.isnan(rtt_s)) < FEWEST_INTERVALS:
        raise InputError(
            f"flow {flow} has {np.count_nonzero(~np.isnan(rtt_s))} intervals with an RTT: "
            f"at least {FEWEST_INTERVALS} are needed, of a longer flow or a shorter "
            "`sampling_interval`"
        )
    times = rows["time_s"].to_numpy()
    interval_s = float(np.median(np.diff(times)))
    start_s = float(numbers["time_s"][0]) - interval_s
    in_flight = np.nan_to_num(numbers["in_flight_bytes"])
    throughput = np.nan_to_num(numbers["throughput_bps"])
    summaries: Any = run.summary["flows"]
    row = next(each for each in summaries if each["name"] == flow)
    spec = next(each for each in run.spec["flows"] if each["name"] == flow)
    is_bridged = lacks_sack(row)
    if is_bridged:
        throughput, in_flight = bridged(throughput, in_flight, interval_s)
    least_s = row["phases"]["overall"]["rtt_min_s"]
    seen = ObservedFlow(
        flow, start_s, interval_s, rtt_s, in_flight, throughput, least_s, _CAPTURED not in row,
        row.get("full_rtt_min_s"), packet_bytes=packet_bytes(spec),
    )  # fmt: skip
    if _CAPTURED not in row:
        return seen
    return _from_capture(replace(seen, shows_arrivals=not is_bridged), row, lived)


def _from_capture(seen: ObservedFlow, row: Mapping[str, Any], lived: pl.DataFrame) -> ObservedFlow:
    """Add what only packets show, and what the capture lacks."""
    least_s = seen.least_rtt_s
    least_full_s = row.get("full_rtt_min_s") or least_s
    missing = of_capture(row, least_full_s, seen.length_s, knows_flight=seen.knows_flight)
    seen = replace(seen, missing=tuple(missing))
    if seen.knows_flight and (per_ack := _packets_per_ack(lived)) is not None:
        # ACKs of data were delayed, but not the ACKs of the handshake.
        known = [one for one in (least_s, _handshake_s(row)) if one is not None]
        seen = replace(seen, packets_per_ack=per_ack, least_rtt_s=min(known, default=None))
    return _at_the_sender(seen, row)


def _handshake_s(row: Mapping[str, Any]) -> float | None:
    """Return the RTT between capture point and receiver in the handshake."""
    complete_s: float | None = row[_CAPTURED]
    return None if complete_s is None else complete_s - (sender_side_s(row) or 0.0)


def _packets_per_ack(rows: pl.DataFrame) -> float | None:
    """Return the packets per ACK if ACKs are thinned.

    Each ACK gives an RTT sample. The median excludes intervals after losses, because paths do not
    thin ACKs with SACK blocks, and samples of retransmissions are missing.
    """
    columns = (rows[name].cast(float).fill_null(0.0) for name in ("sent_packets", "rtt_samples"))
    packets, samples = (column.to_numpy() for column in columns)
    known = samples > 0
    per_ack = float(np.median(packets[known] / samples[known]))
    return per_ack if per_ack > _THINNED else None


def _at_the_sender(seen: ObservedFlow, row: Mapping[str, Any]) -> ObservedFlow:
    """Add the part of the path before the capture point, which RTTs from ACKs do not include."""
    before_s = sender_side_s(row)
    if not seen.knows_flight or before_s is None or seen.least_rtt_s is None:
        return seen
    full_s = seen.least_full_rtt_s
    in_flight = seen.in_flight_bytes
    return replace(
        seen,
        rtt_s=seen.rtt_s + before_s,
        in_flight_bytes=np.where(in_flight > 0, in_flight + seen.throughput_bps / 8 * before_s, 0),
        least_rtt_s=seen.least_rtt_s + before_s,
        least_full_rtt_s=None if full_s is None else full_s + before_s,
    )


def _main_flow(run: Run) -> str:
    """Return the name of the flow that carries nearly all data."""
    import polars as pl

    names = [each["name"] for each in run.summary["flows"]]
    if len(names) == 1:
        return str(names[0])
    sizes = run.flows.group_by("flow").agg(pl.col("sending_rate_bps").fill_nan(0.0).sum())
    sent = dict(sizes.iter_rows())
    largest = max(sent, key=lambda name: sent[name], default=None)
    # If the sent data are unknown or 0, no flow is the main one.
    if largest is None or not sent[largest] or sent[largest] < _NEARLY_ALL * sum(sent.values()):
        raise InputError(f"several flows: choose one by --flow, of {', '.join(names)}")
    return str(largest)


def _filled(values: Floats) -> Floats:
    """Interpolate gaps linearly."""
    there = ~np.isnan(values)
    at = np.arange(values.size)
    filled: Floats = np.interp(at, at[there], values[there])
    return filled
