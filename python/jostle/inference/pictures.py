"""What was seen beside what explains it, as figure data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from jostle.figures.data import Line, PanelData, StackedData

if TYPE_CHECKING:
    from jostle.inference.identify import Identification
    from jostle.inference.observation import Observation
    from jostle.stats.describe import Floats

__all__ = ["beside_the_nearest"]

_SHOWN: Final = 3


def beside_the_nearest(found: Identification) -> StackedData:
    """Queueing delay and bytes in flight of the flow, and of the candidates that come closest."""
    flows = [(f"{found.observed.flow} as measured", found.observed)]
    for one in found.ranking[:_SHOWN]:
        flows.append((f"{one.controller}, {one.probability:.0%}", one.nearest))
    delays = [(label, one, one.queueing_delay_s * 1e3) for label, one in flows]
    in_flight = [(label, one, one.in_flight_bytes / 1e3) for label, one in flows]
    panels = (
        PanelData("Queueing delay", "ms", _lines(delays)),
        PanelData("In flight", "kB", _lines(in_flight)),
    )
    caption = "Each candidate's closest run, from its own start; runs may be shifted in time."
    return StackedData("", panels, (), 1, caption)


def _lines(curves: Sequence[tuple[str, Observation, Floats]]) -> tuple[Line, ...]:
    lines = []
    for label, one, values in curves:
        time_s = (np.arange(values.size, dtype=np.float64) + 0.5) * one.interval_s
        none = np.full(values.size, np.nan)
        lines.append(Line(label, time_s, values, none, none))
    return tuple(lines)
