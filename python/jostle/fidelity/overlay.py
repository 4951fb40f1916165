"""Figure data with the time series of both sides."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from jostle.figures.data import StackedData, stacked
from jostle.results.time_series_data import panels

if TYPE_CHECKING:
    import polars as pl

    from jostle.results import ResultSet

MOST_FLOWS: Final = 4
"""Maximum number of flows in an overlay; each has two lines."""

_COLUMNS: Final = (
    "time_s", "flow", "seed", "throughput_bps", "srtt_s", "cwnd_bytes",
    "sent_packets", "retransmitted_packets",
)  # fmt: skip


def overlay_data(simulator: ResultSet, kernel: ResultSet, condition: int) -> StackedData:
    """Return throughput, smoothed RTT and cwnd of one condition over time for both backends.

    Lines are means over runs with a band, solid for the simulator and dashed for the kernel. Each
    flow has a colour.

    Parameters
    ----------
    simulator, kernel
        Results of the same plan; both must have a run of the condition.
    condition
        Position of the condition.
    """
    import polars as pl

    frames: list[pl.DataFrame] = []
    labels: dict[str, str] = {}
    styles: dict[str, tuple[int, int]] = {}
    specs = simulator.runs_of(condition)[0].run.spec["flows"][:MOST_FLOWS]
    for side, results in (("simulator", simulator), ("kernel", kernel)):
        series = results.condition_series(condition).select(_COLUMNS)
        # Flow names contain no line break, so these names are unique.
        frames.append(series.with_columns(flow=pl.col("flow") + f"\n{side}"))
    for colour, flow in enumerate(specs):
        for dash, side in enumerate(("simulator", "kernel")):
            key = f"{flow['name']}\n{side}"
            labels[key] = f"{flow['name']} ({flow['controller']['name']}), {side}"
            styles[key] = (colour, dash)
    throughput, rtt, cwnd = panels(("throughput", "rtt", "cwnd"))
    return stacked(
        pl.concat(frames, how="vertical_relaxed"),
        labels,
        # Use the smoothed RTT, because the kernel records no other.
        (throughput, rtt._replace(quantity="SRTT", column="srtt_s"), cwnd),
        simulator.labels[condition],
        styles=styles,
    )
