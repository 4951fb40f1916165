"""Figure data that compare a measurement with its explanation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from jostle.figures.data import Line, PanelData, StackedData
from jostle.results.number_format import percent

if TYPE_CHECKING:
    import polars as pl

    from jostle.backends import Run
    from jostle.inference.identify import Identification
    from jostle.inference.observed_flow import ObservedFlow
    from jostle.stats.descriptive import Floats

__all__ = ["candidate_overlay", "fit_overlay"]

_SHOWN: Final = 3


def candidate_overlay(found: Identification) -> StackedData:
    """Return queueing delay and bytes in flight of the flow and of the closest candidates."""
    flows = [(f"{found.observed.flow} as measured", found.observed)]
    for one in found.ranking[:_SHOWN]:
        flows.append((f"{one.controller}, {percent(one.probability, 0)}", one.nearest))
    delays = [(label, one, one.queueing_delay_s * 1e3) for label, one in flows]
    # Show the curves that the comparison used.
    known = found.observed.knows_flight
    in_flight = [
        (label, one, (one.in_flight_bytes if known else one.carried_bytes) / 1e3)
        for label, one in flows
    ]
    panels = (
        PanelData("Queueing delay", "ms", _lines(delays)),
        PanelData("In flight" if known else "Throughput × RTT", "kB", _lines(in_flight)),
    )
    caption = "Each candidate's closest run, from its own start; runs may be shifted in time."
    return StackedData("", panels, (), 1, caption)


def fit_overlay(pairs: Sequence[tuple[str, Run, Run]]) -> StackedData:
    """Return throughput and RTT of the first flow, measured and from the fitted scenario.

    Parameters
    ----------
    pairs
        Name, measured run and a run of the fitted scenario for each experiment.
    """
    panels = []
    for name, measured, fitted in pairs:
        sides = [("measured", _first_flow(measured)), ("fitted", _first_flow(fitted))]
        for quantity, unit, column, factor in (
            ("Throughput", "Mbit/s", "throughput_bps", 1e-6),
            ("RTT", "ms", "rtt_mean_s", 1e3),
        ):
            lines = []
            for label, frame in sides:
                values = frame[column].cast(float).fill_null(np.nan).to_numpy() * factor
                none = np.full(values.size, np.nan)
                lines.append(Line(label, frame["time_s"].to_numpy(), values, none, none))
            # Names of folders are too long for the label of an axis.
            shown = f"{quantity}, {name.rpartition('/')[2]}" if len(pairs) > 1 else quantity
            panels.append(PanelData(shown, unit, tuple(lines)))
    caption = "First flow. Random events, such as the time of a loss, are not fitted."
    return StackedData("", tuple(panels), (), 1, caption)


def _first_flow(run: Run) -> pl.DataFrame:
    import polars as pl

    first = run.summary["flows"][0]["name"]
    frame = run.flows.filter(pl.col("flow") == first).sort("time_s")
    if frame["rtt_mean_s"].is_null().all():
        # A kernel run that sampled only the smoothed RTT has no other.
        frame = frame.with_columns(rtt_mean_s=pl.col("srtt_s"))
    return frame


def _lines(curves: Sequence[tuple[str, ObservedFlow, Floats]]) -> tuple[Line, ...]:
    lines = []
    for label, one, values in curves:
        time_s = (np.arange(values.size, dtype=np.float64) + 0.5) * one.interval_s
        none = np.full(values.size, np.nan)
        lines.append(Line(label, time_s, values, none, none))
    return tuple(lines)
