"""The series of both sides in one figure, as data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from jostle.figures.data import StackedData, stacked
from jostle.results.over_time import panels

if TYPE_CHECKING:
    import polars as pl

    from jostle.results import ResultSet

MOST_FLOWS: Final = 4
"""Flows that an overlay shows; each has two lines."""

# Colours that are told apart easily.
_COLOURS: Final = 6

_COLUMNS: Final = (
    "time_s", "flow", "seed", "throughput_bps", "srtt_s", "cwnd_bytes",
    "sent_packets", "retransmitted_packets",
)  # fmt: skip


def overlay_data(simulator: ResultSet, kernel: ResultSet, condition: int) -> StackedData:
    """Throughput, smoothed RTT and window of one condition over time, by both backends.

    Every line is a mean over runs with its band. The simulator's are whole and the kernel's dashed;
    each has its own colour while there are few, else each flow has.

    Parameters
    ----------
    simulator, kernel
        Results of the same plan; both need a run of the condition.
    condition
        Its position.
    """
    import polars as pl

    frames: list[pl.DataFrame] = []
    labels: dict[str, str] = {}
    styles: dict[str, tuple[int, int]] = {}
    specs = simulator.of(condition)[0].run.spec["flows"][:MOST_FLOWS]
    for side, results in (("simulator", simulator), ("kernel", kernel)):
        series = results.condition_series(condition).select(_COLUMNS)
        # Names of flows hold no line break, so these are new names.
        frames.append(series.with_columns(flow=pl.col("flow") + f"\n{side}"))
    few = 2 * len(specs) <= _COLOURS
    for colour, flow in enumerate(specs):
        for dash, side in enumerate(("simulator", "kernel")):
            key = f"{flow['name']}\n{side}"
            labels[key] = f"{flow['name']} ({flow['controller']['name']}), {side}"
            styles[key] = (2 * colour + dash if few else colour, dash)
    throughput, rtt, cwnd = panels(("throughput", "rtt", "cwnd"))
    return stacked(
        pl.concat(frames, how="vertical_relaxed"),
        labels,
        # Both sides know the smoothed RTT; the kernel tells no other.
        (throughput, rtt._replace(quantity="SRTT", column="srtt_s"), cwnd),
        simulator.labels[condition],
        styles=styles,
    )
