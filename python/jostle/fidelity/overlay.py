"""Figure data with the time series of both sides."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from jostle.figures.data import FEWEST_IN_A_BOX, StackedData, stacked
from jostle.results.number_format import count
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
    flow has a colour. Of few runs the band is from the smallest to the largest: the 95 % interval
    of two runs is far wider and would hide the other lines.

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
    runs = [len(results.runs_of(condition)) for results in (simulator, kernel)]
    few = min(runs) < FEWEST_IN_A_BOX
    data = stacked(
        pl.concat(frames, how="vertical_relaxed"),
        labels,
        # Use the smoothed RTT, because the kernel records no other.
        (throughput, rtt._replace(quantity="SRTT", column="srtt_s"), cwnd),
        simulator.labels[condition],
        styles=styles,
        extremes=few,
    )
    band = "from the smallest to the largest run" if few else "95 % interval of the mean"
    of = f"{count(runs[0], 'run')} of the simulator and {runs[1]} of the kernel"
    return replace(data, caption=f"Mean over {of}. Band: {band}.")
