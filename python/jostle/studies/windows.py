"""A run seen through windows: parts of its series by time or by bytes delivered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from jostle.scenario.text.units import parse_span
from jostle.stats.describe import Floats

if TYPE_CHECKING:
    from jostle.backends import Run, Spec
    from jostle.studies.models import Window

Columns = Mapping[str, Floats]

_COLUMNS = (
    "time_s", "throughput_bps", "goodput_bps", "sending_rate_bps", "rtt_mean_s", "cwnd_bytes",
    "sent_packets", "retransmitted_packets",
)  # fmt: skip
_LINK_COLUMNS = ("time_s", "utilisation", "queue_mean_bytes")


@dataclass(frozen=True)
class Span:
    """From and to, in s from the run's beginning."""

    from_s: float
    to_s: float


@dataclass(frozen=True)
class Pings:
    """What became of the pings of a flow, of which some came back.

    Attributes
    ----------
    counts
        As in the summary of the flow: `lost`, `losses_by_length`, `echoes_by_ms`, …
    overall
        The flow's measures of the whole run.
    """

    counts: Mapping[str, Any]
    overall: Mapping[str, Any]

    def rtt_ms(self, percentile: float) -> float:
        """Give a percentile of the round trips, exact to a millisecond; 0 and 100 are exact."""
        if percentile in (0.0, 100.0):
            s = self.overall["rtt_min_s"] if percentile == 0.0 else self.counts["rtt_max_s"]
            return 1e3 * float(s)
        ms, counts = self._echoes()
        below = np.searchsorted(np.cumsum(counts), percentile / 100 * counts.sum())
        return float(ms[min(int(below), ms.size - 1)]) + 0.5

    def share_within(self, above_ms: float | None, below_ms: float | None) -> float:
        """Share of the echoes whose round trip, in whole milliseconds, lies in a range, in %."""
        ms, counts = self._echoes()
        low = -np.inf if above_ms is None else above_ms
        high = np.inf if below_ms is None else below_ms
        return 100.0 * float(counts[(ms >= low) & (ms < high)].sum() / counts.sum())

    def in_a_row(self) -> tuple[Floats, Floats]:
        """Lengths of losses in a row, and how often there were as many; both may be empty."""
        pairs = np.array(self.counts["losses_by_length"], dtype=float).reshape(-1, 2)
        return pairs[:, 0], pairs[:, 1]

    def _echoes(self) -> tuple[Floats, Floats]:
        pairs = np.array(self.counts["echoes_by_ms"], dtype=float)
        return pairs[:, 0], pairs[:, 1]


class RunView:
    """A run, its series as arrays.

    Parameters
    ----------
    run
        A finished run.
    """

    def __init__(self, run: Run) -> None:
        self._run = run

    @property
    def seed(self) -> int:
        """Seed of the run."""
        return int(self._spec["seed"])

    @cached_property
    def flows(self) -> tuple[str, ...]:
        """Names of the flows."""
        return tuple(flow["name"] for flow in self._run.summary["flows"])

    def span(self, name: str, window: Window | None, flow: str) -> Span:
        """Where a window lies in this run."""
        if window is None:
            phase = next(one for one in self._spec["phases"] if one["name"] == name)
            return Span(phase["from_ns"] / 1e9, phase["to_ns"] / 1e9)
        if window.time is not None:
            low, high = (parse_span(text) / 1e9 for text in window.time)
            return Span(low, high)
        assert window.bytes is not None
        shares = [float(text.removesuffix("%")) / 100 for text in window.bytes]
        ends, delivered = self._delivered(flow)
        low, high = (float(np.interp(share * delivered[-1], delivered, ends)) for share in shares)
        return Span(low, high)

    def part(self, flow: str, span: Span) -> Columns:
        """Bins of a flow whose middle lies in a window."""
        return _cut(self._series[flow], span)

    def link_part(self, link: str, span: Span) -> Columns:
        """Bins of a link whose middle lies in a window."""
        return _cut(self._links[link], span)

    def mean_rate(self, flow: str, column: str, span: Span) -> float | None:
        """Mean of a rate over a window, in Mbit/s; what lies partly in it counts for that part."""
        series = self._series[flow]
        ends = series["time_s"]
        starts = _starts(ends)
        inside = np.clip(np.minimum(ends, span.to_s) - np.maximum(starts, span.from_s), 0.0, None)
        length = float(inside.sum())
        return float((series[column] * inside).sum()) / length * 1e-6 if length else None

    def rebinned(self, flow: str, column: str, span: Span, bin_s: float | None) -> Floats:
        """Values of a column per bin of `bin_s`; of the series' own bins if that is absent."""
        part = self.part(flow, span)
        values = part[column]
        if bin_s is None or values.size < 2:
            return values
        step = round(bin_s / float(part["time_s"][1] - part["time_s"][0]))
        whole = values[: values.size // max(step, 1) * max(step, 1)].reshape(-1, max(step, 1))
        there = ~np.isnan(whole)
        count = there.sum(axis=1)
        total = np.where(there, whole, 0.0).sum(axis=1)
        mean: Floats = np.divide(total, count, out=np.full(count.shape, np.nan), where=count > 0)
        return mean

    def completion_s(self, flow: str) -> float | None:
        """Completion time of a transfer."""
        found = next(one for one in self._run.summary["flows"] if one["name"] == flow)
        completion_s: float | None = found["completion_s"]
        return completion_s

    def download_s(self, flow: str, size_bytes: int) -> float | None:
        """Time until `size_bytes` were delivered, from the flow's start; None if they were not."""
        ends, delivered = self._delivered(flow)
        # Bytes are whole, sums of rates times bins not quite.
        if round(delivered[-1]) < size_bytes:
            return None
        start_s = self._start_s(flow)
        return None if start_s is None else float(np.interp(size_bytes, delivered, ends)) - start_s

    def _start_s(self, flow: str) -> float | None:
        """Time at which a flow started; None if it waits for a flow that did not complete."""
        spec = next(one for one in self._spec["flows"] if one["name"] == flow)
        wait_s: float = spec["start_ns"] / 1e9
        after: int | None = spec.get("after")
        if after is None:
            return wait_s
        before: str = self._spec["flows"][after]["name"]
        start_s, took_s = self._start_s(before), self.completion_s(before)
        return None if start_s is None or took_s is None else start_s + took_s + wait_s

    def pings(self, flow: str) -> Pings | None:
        """Give what became of a flow's pings; None of other flows, and without an echo."""
        found = next(one for one in self._run.summary["flows"] if one["name"] == flow)
        counts = found.get("pings")
        return Pings(counts, found["phases"]["overall"]) if counts and counts["echoed"] else None

    def transfer(self, flow: str) -> tuple[float, float, float] | None:
        """Bytes of a transfer, capacity of its bottleneck in bit/s, and its quiet RTT in s."""
        spec = next(one for one in self._spec["flows"] if one["name"] == flow)
        links = [self._spec["links"][at] for at in (*spec["path"], *spec["reverse_path"])]
        capacities = [link["capacity"] for link in links]
        rates = [one["rate_bps"] for one in capacities if one["kind"] == "constant"]
        source = spec["source"]
        if len(rates) < len(links) or source["kind"] == "bulk" or source["kind"] == "on_off":
            return None
        size = source["bytes"]
        delays_ns = sum(link["delay"]["steps"][0]["delay_ns"] for link in links)
        return float(size), float(min(rates)), (spec["access_delay_ns"] + delays_ns) / 1e9

    def last_internal(self, flow: str, quantity: str) -> float | None:
        """Last value of an internal quantity of a flow's controller; None if it shows none."""
        import polars as pl

        rows = self._run.internals.filter(pl.col("flow") == flow, pl.col("quantity") == quantity)
        values = rows["value"].drop_nulls()
        return float(values[-1]) if values.len() else None

    @cached_property
    def _spec(self) -> Spec:
        return self._run.spec

    def _delivered(self, flow: str) -> tuple[Floats, Floats]:
        """Give the ends of the bins and the bytes delivered by then, both from 0.

        They end with the bin in which the last byte arrived.
        """
        series = self._series[flow]
        ends = series["time_s"]
        amounts = series["goodput_bps"] / 8 * (ends - _starts(ends))
        busy = int(np.nonzero(amounts)[0].max(initial=0)) + 1
        delivered = np.cumsum(amounts[:busy])
        return np.concatenate(([0.0], ends[:busy])), np.concatenate(([0.0], delivered))

    @cached_property
    def _series(self) -> Mapping[str, Columns]:
        frame = self._run.flows.select("flow", *_COLUMNS)
        return {
            str(key[0]): {name: part[name].cast(float).fill_null(np.nan).to_numpy()
                          for name in _COLUMNS}
            for key, part in frame.group_by("flow", maintain_order=True)
        }  # fmt: skip

    @cached_property
    def _links(self) -> Mapping[str, Columns]:
        frame = self._run.links.select("link", *_LINK_COLUMNS)
        return {
            str(key[0]): {name: part[name].cast(float).fill_null(np.nan).to_numpy()
                          for name in _LINK_COLUMNS}
            for key, part in frame.group_by("link", maintain_order=True)
        }  # fmt: skip


def _starts(ends: Floats) -> Floats:
    return np.concatenate(([0.0], ends[:-1]))


def _cut(columns: Columns, span: Span) -> Columns:
    ends = columns["time_s"]
    middle = (ends + _starts(ends)) / 2
    inside = (middle >= span.from_s) & (middle < span.to_s)
    return {name: values[inside] for name, values in columns.items()}
