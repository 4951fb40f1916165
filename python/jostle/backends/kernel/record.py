"""Samples of a run as a RunRecord: the same frames as the simulator's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle.backends.base import RunRecord, Spec
from jostle.backends.kernel import samples
from jostle.backends.kernel.measured import (
    REASONS,
    FlowTrack,
    LinkTrack,
    at,
    position,
    tracks,
)
from jostle.backends.kernel.summary import summary

if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

    Array = NDArray[np.float64]


def record(spec: Spec, folder: Path, backend: str, version: str, wall_s: float) -> RunRecord:
    """Read what a job left, as a record of its run.

    Raises
    ------
    ValueError
        When it is not whole.
    """
    seen = samples.read(folder, len(spec["flows"]), len(spec["links"]))
    flows, links = tracks(spec, seen)
    ends_ns = interval_ends_ns(spec)
    return RunRecord(
        spec=spec,
        backend=backend,
        backend_version=version,
        summary=summary(spec, flows, links),
        flows=_interleaved(flows, lambda flow: _flow_frame(flow, ends_ns)),
        links=_interleaved(links, lambda link: _link_frame(link, ends_ns)),
        internals=_internals(flows, ends_ns),
        acks=None,
        wall_s=wall_s,
    )


def interval_ends_ns(spec: Spec) -> Array:
    """List the ends of the intervals of the series; the last may be shorter than the others."""
    import numpy as np

    ends = range(spec["interval_ns"], spec["duration_ns"], spec["interval_ns"])
    return np.array([*ends, spec["duration_ns"]], float)


def _interleaved(
    tracks: Sequence[FlowTrack] | Sequence[LinkTrack], frame: Callable[[Any], pl.DataFrame]
) -> pl.DataFrame:
    """Rows in order of time, then of the spec."""
    import polars as pl

    frames = [
        frame(track).with_columns(_order=pl.lit(number)) for number, track in enumerate(tracks)
    ]
    return pl.concat(frames).sort("time_s", "_order").drop("_order")


def _flow_frame(flow: FlowTrack, ends_ns: Array) -> pl.DataFrame:
    import numpy as np
    import polars as pl

    edges_ns = np.concatenate(([0.0], ends_ns))
    lengths_s = np.diff(edges_ns) / 1e9
    grown = {name: np.diff(at(flow, name, edges_ns)) for name in flow.counters}
    last = position(flow, ends_ns)
    rtt_mean_s, rtt_last_s = _rtt_of_intervals(flow, edges_ns)
    modes = flow.modes
    return _frame(
        {
            "time_s": ends_ns / 1e9,
            "flow": [flow.spec["name"]] * len(ends_ns),
            "sending_rate_bps": grown["sent_bytes"] * 8 / lengths_s,
            "throughput_bps": grown["received_bytes"] * 8 / lengths_s,
            "goodput_bps": grown["delivered_bytes"] * 8 / lengths_s,
            "rtt_mean_s": rtt_mean_s,
            "rtt_last_s": rtt_last_s,
            "srtt_s": flow.srtt_s[last],
            # The window that the first flight will have.
            "cwnd_bytes": np.nan_to_num(flow.cwnd_bytes[last], nan=flow.initial_cwnd_bytes),
            "ssthresh_bytes": flow.ssthresh_bytes[last],
            "in_flight_bytes": flow.in_flight_bytes[last],
            "sent_packets": _counts(at(flow, "sent_packets", edges_ns)),
            "retransmitted_packets": _counts(at(flow, "retransmitted_packets", edges_ns)),
            "pacing_rate_bps": flow.pacing_rate_bps[last],
            "mode": pl.Series([modes[number] for number in last], dtype=pl.String),
        }
    )


def _rtt_of_intervals(flow: FlowTrack, edges_ns: Array) -> tuple[Array, Array]:
    """Mean and last of the smoothed RTTs that each interval saw; NaN where it saw none."""
    import numpy as np

    positions = position(flow, edges_ns)
    means, lasts = [], []
    for before, last in pairwise(positions):
        # Samples after the start of an interval up to its end.
        inside = slice(before + 1, last + 1)
        rtt_s = flow.srtt_s[inside][flow.fresh[inside]]
        means.append(rtt_s.mean() if rtt_s.size else np.nan)
        lasts.append(rtt_s[-1] if rtt_s.size else np.nan)
    return np.array(means), np.array(lasts)


def _link_frame(link: LinkTrack, ends_ns: Array) -> pl.DataFrame:
    import numpy as np

    edges_ns = np.concatenate(([0.0], ends_ns))
    offered = np.diff(link.offered_bytes(edges_ns))
    sent = np.diff(at(link, "sent_bytes", edges_ns))
    counted = {
        f"{what}_{reason}": _counts(at(link, f"{what}_{reason}", edges_ns))
        for what in ("dropped", "marked")
        for reason in REASONS
    }
    positions = position(link, edges_ns)
    means = [
        link.queue_bytes[before + 1 : last + 1].mean() if last > before else np.nan
        for before, last in pairwise(positions)
    ]
    return _frame(
        {
            "time_s": ends_ns / 1e9,
            "link": [link.spec["name"]] * len(ends_ns),
            "utilisation": np.divide(
                sent, offered, out=np.full_like(sent, np.nan), where=offered > 0
            ),
            "queue_bytes": link.queue_bytes[positions[1:]],
            "queue_mean_bytes": np.array(means),
            "sent_packets": _counts(at(link, "sent_packets", edges_ns)),
            **counted,
        }
    )


def _internals(flows: Iterable[FlowTrack], ends_ns: Array) -> pl.DataFrame:
    import numpy as np
    import polars as pl

    schema = {"time_s": pl.Float64, "flow": pl.String, "quantity": pl.String, "value": pl.Float64}
    parts = [pl.DataFrame(schema=schema)]
    for flow in flows:
        last = position(flow, ends_ns)
        for name, values in flow.internals.items():
            known = ~np.isnan(values[last])
            parts.append(
                pl.DataFrame({"time_s": ends_ns[known] / 1e9, "value": values[last][known]})
                .with_columns(flow=pl.lit(flow.spec["name"]), quantity=pl.lit(name))
                .select(list(schema))
            )
    return pl.concat(parts).sort("time_s", maintain_order=True)


def _counts(values: Array) -> NDArray[np.uint32]:
    """Whole numbers of each interval, that together are the whole number of all."""
    import numpy as np

    return np.diff(np.rint(values)).astype(np.uint32)


def _frame(columns: Mapping[str, Any]) -> pl.DataFrame:
    """Columns as a frame: NaN becomes null."""
    import polars as pl
    import polars.selectors as cs

    return pl.DataFrame(columns).with_columns(cs.float().fill_nan(None))
